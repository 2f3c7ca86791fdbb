"""The gaps: fairlearn's values, and one suite that every metric passes."""

import functools

import fairlearn.metrics as peer
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from jaxfair import fairness

METHODS = ["between_groups", "to_overall"]
SHARED = [
  "demographic_parity_difference",
  "demographic_parity_ratio",
  "equal_opportunity_difference",
  "equal_opportunity_ratio",
  "equalized_odds_difference",
  "equalized_odds_ratio",
]
OURS = ["accuracy_parity_difference", "accuracy_parity_ratio"]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SHARED)
def test_agrees_with_fairlearn(people, name, weighted, method):
  for seed, shares in enumerate([(30, 3, 1), (1, 1, 1), (8, 1, 1)]):
    y_true, y_pred, group, weight = people(seed, shares)
    options = {
      "sensitive_features": group,
      "sample_weight": weight if weighted else None,
      "method": method,
    }
    ours = getattr(fairness, name)(y_true, y_pred, **options)
    theirs = getattr(peer, name)(y_true, y_pred, **options)
    np.testing.assert_allclose(ours, theirs, rtol=5e-6, atol=2e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHARED[4:])
def test_the_mean_of_both_odds_agrees_with_fairlearn(people, name, method):
  y_true, y_pred, group, _ = people(7)
  options = {"sensitive_features": group, "method": method, "agg": "mean"}
  np.testing.assert_allclose(
    getattr(fairness, name)(y_true, y_pred, **options),
    getattr(peer, name)(y_true, y_pred, **options),
    rtol=5e-6,
  )


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_accuracy_parity_agrees_with_a_metric_frame(people, kind, method):
  y_true, y_pred, group, _ = people(8, num_classes=3)
  frame = peer.MetricFrame(
    metrics=accuracy_score, y_true=y_true, y_pred=y_pred, sensitive_features=group
  )
  np.testing.assert_allclose(
    getattr(fairness, f"accuracy_parity_{kind}")(
      y_true, y_pred, sensitive_features=group, method=method
    ),
    getattr(frame, kind)(method=method),
    rtol=5e-6,
  )


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_an_absent_group_is_unknown_or_skipped_as_fairlearn_does(people, name):
  y_true, y_pred, group, _ = people(9, (1, 1))
  group = 2 * group  # nobody has id 1
  metric = getattr(fairness, name)
  assert np.isnan(metric(y_true, y_pred, sensitive_features=group))
  np.testing.assert_allclose(
    metric(y_true, y_pred, sensitive_features=group, skip_empty=True),
    getattr(peer, name)(y_true, y_pred, sensitive_features=group),
    rtol=5e-6,
  )


def test_a_group_without_positives_is_unknown_where_fairlearn_says_zero():
  y_true = np.array([1, 1, 0, 0, 0, 0])
  y_pred = np.array([1, 1, 0, 0, 1, 0])
  group = np.array([0, 0, 0, 1, 1, 1])
  options = {"sensitive_features": group}
  assert peer.equal_opportunity_difference(y_true, y_pred, **options) == 1
  ours = fairness.equal_opportunity_difference
  assert np.isnan(ours(y_true, y_pred, **options))
  assert ours(y_true, y_pred, skip_empty=True, **options) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_of_more_classes_the_worst_counts(people, name):
  y_true, y_pred, group, _ = people(10, num_classes=4)
  each = [
    getattr(peer, name)(
      (y_true == k).astype(int), (y_pred == k).astype(int), sensitive_features=group
    )
    for k in range(4)
  ]
  metric = getattr(fairness, name)
  worst = max(each) if name.endswith("difference") else min(each)
  np.testing.assert_allclose(metric(y_true, y_pred, sensitive_features=group), worst, rtol=5e-6)
  np.testing.assert_allclose(
    metric(y_true, y_pred, sensitive_features=group, pos_label=2), each[2], rtol=5e-6
  )


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED + OURS)
def test_conformance(people, name):
  """Pure, jit-able, vmap-able; one group, equal groups and renamed groups."""
  num_classes = 3 if name in OURS else 2
  y_true, y_pred, group, weight = people(11, num_classes=num_classes)
  metric = functools.partial(getattr(fairness, name), num_groups=3, num_classes=num_classes)

  def of(y_true, y_pred, group, weight):
    return metric(y_true, y_pred, sensitive_features=group, sample_weight=weight)

  value = of(y_true, y_pred, group, weight)
  np.testing.assert_allclose(jax.jit(of)(y_true, y_pred, group, weight), value, rtol=1e-6)
  others = [people(seed, num_classes=num_classes) for seed in (12, 13)]
  batch = jax.tree.map(lambda *x: jnp.stack(x), *others)
  np.testing.assert_allclose(
    jax.jit(jax.vmap(of))(*batch), [of(*other) for other in others], rtol=1e-6
  )
  np.testing.assert_allclose(of(y_true, y_pred, (group + 1) % 3, weight), value, rtol=1e-5)
  order = np.random.default_rng(0).permutation(group.size)
  np.testing.assert_allclose(
    of(y_true[order], y_pred[order], group[order], weight[order]), value, rtol=1e-5
  )
  alike = 0.0 if name.endswith("difference") else 1.0
  alone = metric.func(y_true, y_pred, sensitive_features=np.zeros_like(group), num_groups=1)
  assert alone == alike
  twice = metric.func(
    np.tile(y_true, 2), np.tile(y_pred, 2), sensitive_features=np.repeat([0, 1], y_true.size)
  )
  np.testing.assert_allclose(twice, alike, atol=1e-7)
