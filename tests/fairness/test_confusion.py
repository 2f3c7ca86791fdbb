import jax
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from jaxfair.fairness import _confusion


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn_group_by_group(people, num_classes, weighted):
  y_true, y_pred, group, weight = people(0, num_classes=num_classes)
  counts = _confusion.confusion_counts(
    y_true, y_pred, sensitive_features=group, sample_weight=weight if weighted else None
  )
  assert counts.shape == (3, num_classes, num_classes)
  for g in range(3):
    rows = group == g
    expected = confusion_matrix(
      y_true[rows],
      y_pred[rows],
      labels=range(num_classes),
      sample_weight=weight[rows] if weighted else None,
    )
    np.testing.assert_allclose(counts[g], expected, rtol=1e-5)


@pytest.mark.slow
def test_given_counts_make_room_for_the_absent():
  counts = _confusion.confusion_counts(
    [0, 1], [1, 1], sensitive_features=[0, 0], num_classes=3, num_groups=2
  )
  assert counts.shape == (2, 3, 3)
  assert counts.sum() == counts[0, :2, 1].sum() == 2


def test_ids_out_of_range_inside_jit_are_left_out_of_every_cell():
  count = jax.jit(
    lambda y, p, g: _confusion.confusion_counts(
      y, p, sensitive_features=g, num_classes=2, num_groups=2
    )
  )
  good = count(np.array([0, 1]), np.array([1, 1]), np.array([0, 1]))
  mixed = count(
    np.array([0, 1, 0, 2, -1, 0]), np.array([1, 1, 2, 0, 0, 0]), np.array([0, 1, 0, 0, 0, -1])
  )
  np.testing.assert_array_equal(mixed, good)


def test_prediction_counts_add_up_the_true_classes(people):
  y_true, y_pred, group, weight = people(1, num_classes=4)
  full = _confusion.confusion_counts(y_true, y_pred, sensitive_features=group, sample_weight=weight)
  counts = _confusion.prediction_counts(y_pred, sensitive_features=group, sample_weight=weight)
  np.testing.assert_allclose(counts, full.sum(axis=1), rtol=1e-5)
