"""Group by group against fairlearn and scikit-learn."""

import fairlearn.metrics as peer
import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from jaxfair import fairness

RATES = {
  "accuracy": accuracy_score,
  "selection_rate": peer.selection_rate,
  "true_positive_rate": peer.true_positive_rate,
  "false_positive_rate": peer.false_positive_rate,
  "true_negative_rate": peer.true_negative_rate,
  "false_negative_rate": peer.false_negative_rate,
}
SHARES = [(0.7, 0.3), (0.97, 0.01, 0.01, 0.01)]


@pytest.mark.slow
@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RATES)
def test_rates_by_group_agree_with_fairlearn(people, shares, weighted, name):
  undefined = 0
  for seed in range(4):
    y_true, y_pred, group, weight = people(seed, shares)
    weight = weight if weighted else None
    ours = getattr(fairness, name)(
      y_true, y_pred, sensitive_features=group, sample_weight=weight, num_groups=len(shares)
    )
    theirs = peer.MetricFrame(
      metrics=RATES[name],
      y_true=y_true,
      y_pred=y_pred,
      sensitive_features=group,
      sample_params={"sample_weight": weight},
    ).by_group
    for g, value in theirs.items():
      if np.isnan(ours[g]):  # fairlearn calls 0 of 0 a rate of 0
        undefined += 1
        assert value == 0
      else:
        np.testing.assert_allclose(ours[g], value, rtol=2e-6, atol=1e-7)
    absent = set(range(len(shares))) - set(theirs.index)
    assert all(np.isnan(ours[g]) for g in absent)
  if name in ("accuracy", "selection_rate"):
    assert undefined == 0


def test_mean_loss_is_the_weighted_average(people):
  *_, group, weight = people(0)
  losses = np.random.default_rng(1).exponential(size=group.size)
  plain = fairness.mean_loss(losses, sensitive_features=group)
  weighted = fairness.mean_loss(losses, sensitive_features=group, sample_weight=weight)
  for g in range(3):
    rows = group == g
    np.testing.assert_allclose(plain[g], losses[rows].mean(), rtol=1e-5)
    np.testing.assert_allclose(
      weighted[g], np.average(losses[rows], weights=weight[rows]), rtol=1e-5
    )


def test_mean_loss_takes_several_losses_and_absent_groups():
  losses = np.array([[1.0, 10.0], [3.0, 30.0]])
  means = fairness.mean_loss(losses, sensitive_features=[1, 1], num_groups=2)
  np.testing.assert_allclose(means[1], [2, 20])
  assert np.isnan(means[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in RATES if n != "accuracy"])
def test_more_classes_are_taken_in_turn(people, name):
  y_true, y_pred, group, _ = people(5, num_classes=4)
  ours = getattr(fairness, name)
  by_class = ours(y_true, y_pred, sensitive_features=group)
  assert by_class.shape == (3, 4)
  for k in range(4):
    one = ours(y_true, y_pred, sensitive_features=group, pos_label=k)
    np.testing.assert_array_equal(one, by_class[:, k])
    # Fairlearn sees the same question as a problem of two classes.
    expected = peer.MetricFrame(
      metrics=RATES[name],
      y_true=(y_true == k).astype(int),
      y_pred=(y_pred == k).astype(int),
      sensitive_features=group,
    ).by_group
    np.testing.assert_allclose(one, expected, rtol=2e-6)
