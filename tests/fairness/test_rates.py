import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import recall_score

from jaxfair.fairness import _confusion, rates

BINARY = jnp.array([[50, 10], [5, 35]])  # rows: true class
THREE = jnp.array([[10, 2, 3], [1, 20, 4], [0, 5, 15]])


@pytest.mark.parametrize(
  ("rate", "expected"),
  [
    (rates.selection_rate, 45 / 100),
    (rates.true_positive_rate, 35 / 40),
    (rates.false_negative_rate, 5 / 40),
    (rates.false_positive_rate, 10 / 60),
    (rates.true_negative_rate, 50 / 60),
  ],
)
def test_two_classes_by_hand(rate, expected):
  np.testing.assert_allclose(rate(BINARY), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("rate", "expected"),
  [
    (rates.selection_rate, [11 / 60, 27 / 60, 22 / 60]),
    (rates.true_positive_rate, [10 / 15, 20 / 25, 15 / 20]),
    (rates.false_negative_rate, [5 / 15, 5 / 25, 5 / 20]),
    (rates.false_positive_rate, [1 / 45, 7 / 35, 7 / 40]),
    (rates.true_negative_rate, [44 / 45, 28 / 35, 33 / 40]),
  ],
)
def test_three_classes_by_hand_each_against_the_rest(rate, expected):
  np.testing.assert_allclose(rate(THREE), expected, rtol=1e-6)
  for k in range(3):
    np.testing.assert_allclose(rate(THREE, k), expected[k], rtol=1e-6)


def test_accuracy_by_hand():
  np.testing.assert_allclose(rates.accuracy(BINARY), 0.85)
  np.testing.assert_allclose(rates.accuracy(THREE), 45 / 60)


def test_pos_label_zero_turns_the_table_around():
  turned = BINARY[::-1, ::-1]
  for rate in (rates.selection_rate, rates.true_positive_rate):
    np.testing.assert_allclose(rate(BINARY, 0), rate(turned, 1))
  np.testing.assert_allclose(
    rates.true_positive_rate(BINARY, 0), rates.true_negative_rate(BINARY, 1)
  )


def test_leading_axes_are_kept():
  tables = jnp.stack([jnp.stack([THREE, THREE.T])] * 5)
  assert rates.accuracy(tables).shape == (5, 2)
  assert rates.selection_rate(tables).shape == (5, 2, 3)
  assert rates.selection_rate(tables, 1).shape == (5, 2)
  np.testing.assert_allclose(
    rates.false_positive_rate(tables)[3, 1], rates.false_positive_rate(THREE.T)
  )


def test_an_empty_denominator_is_nan():
  only_negatives = jnp.array([[3, 1], [0, 0]])
  assert np.isnan(rates.true_positive_rate(only_negatives))
  assert np.isnan(rates.false_negative_rate(only_negatives))
  assert rates.false_positive_rate(only_negatives) == 0.25
  only_positives = only_negatives[::-1, ::-1]
  assert np.isnan(rates.false_positive_rate(only_positives))
  assert np.isnan(rates.true_negative_rate(only_positives))
  nobody = jnp.zeros((2, 2))
  assert np.isnan(rates.accuracy(nobody))
  assert np.isnan(rates.selection_rate(nobody))


def test_a_few_people_beside_millions_keep_their_rates():
  few_negatives = jnp.array([[1.0, 2.0], [3e7, 0.0]])
  np.testing.assert_allclose(rates.false_positive_rate(few_negatives), 2 / 3, rtol=1e-6)
  few_misses = jnp.array([[0.0, 0.0], [3.0, 3e7]])
  np.testing.assert_allclose(rates.false_negative_rate(few_misses), 1e-7, rtol=1e-6)


def test_true_positive_rates_are_scikit_learns_recalls(people):

  y_true, y_pred, group, weight = people(3, num_classes=4)
  counts = _confusion.confusion_counts(
    y_true, y_pred, sensitive_features=group, sample_weight=weight
  )
  for g in range(3):
    rows = group == g
    expected = recall_score(y_true[rows], y_pred[rows], average=None, sample_weight=weight[rows])
    np.testing.assert_allclose(rates.true_positive_rate(counts)[g], expected, rtol=1e-5)
