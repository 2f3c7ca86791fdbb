import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from jaxfair import fairness
from jaxfair.fairness import _wasserstein


def make_scores(seed, n=300, num_groups=3, decimals=2):
  rng = np.random.default_rng(seed)
  group = rng.choice(num_groups, n, p=np.array([6, 3, 1]) / 10)
  scores = rng.beta(2 + group, 3, n).round(decimals)  # with ties
  return scores.astype(np.float32), group


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_pair_agrees_with_scipy(seed, weighted):
  scores, group = make_scores(seed)
  weight = np.random.default_rng(9).random(group.size) if weighted else None
  distances = _wasserstein.wasserstein_distances(
    scores, sensitive_features=group, sample_weight=weight
  )
  overall = _wasserstein.wasserstein_distances(
    scores, sensitive_features=group, sample_weight=weight, method="to_overall"
  )

  def parts(rows):
    return scores[rows], None if weight is None else weight[rows]

  everybody = np.full(group.size, True)
  for a in range(3):
    u, u_weight = parts(group == a)
    v, v_weight = parts(everybody)
    expected = wasserstein_distance(u, v, u_weight, v_weight)
    np.testing.assert_allclose(overall[a], expected, rtol=1e-4, atol=1e-6)
    for b in range(3):
      v, v_weight = parts(group == b)
      expected = wasserstein_distance(u, v, u_weight, v_weight)
      np.testing.assert_allclose(distances[a, b], expected, rtol=1e-4, atol=1e-6)
  options = {"sensitive_features": group, "sample_weight": weight}
  np.testing.assert_allclose(fairness.wasserstein_disparity(scores, **options), distances.max())
  np.testing.assert_allclose(
    fairness.wasserstein_disparity(scores, method="to_overall", **options), overall.max()
  )


def test_of_labels_it_is_the_demographic_parity_difference(people):
  y_true, y_pred, group, _ = people(0)
  np.testing.assert_allclose(
    fairness.wasserstein_disparity(y_pred, sensitive_features=group),
    fairness.demographic_parity_difference(y_true, y_pred, sensitive_features=group),
    rtol=1e-6,
  )


@pytest.mark.slow
def test_a_shift_is_its_own_distance_and_sees_what_a_threshold_misses():
  scores = np.concatenate([np.linspace(0.6, 0.7, 50), np.linspace(0.8, 0.9, 50)])
  group = np.repeat([0, 1], 50)
  labels = (scores > 0.5).astype(int)
  assert fairness.demographic_parity_difference(labels, labels, sensitive_features=group) == 0
  np.testing.assert_allclose(
    fairness.wasserstein_disparity(scores, sensitive_features=group), 0.2, rtol=1e-5
  )


@pytest.mark.slow
def test_integer_weights_are_repeated_people():
  scores, group = make_scores(4, n=60)
  times = np.random.default_rng(1).integers(1, 4, 60)
  np.testing.assert_allclose(
    _wasserstein.wasserstein_distances(scores, sensitive_features=group, sample_weight=times),
    _wasserstein.wasserstein_distances(
      np.repeat(scores, times), sensitive_features=np.repeat(group, times)
    ),
    rtol=1e-4,
    atol=1e-7,
  )


def test_of_several_columns_the_worst_counts():
  scores, group = make_scores(5)
  both = np.stack([scores, scores**2], axis=1)
  distances = _wasserstein.wasserstein_distances(both, sensitive_features=group)
  assert distances.shape == (2, 3, 3)
  each = [fairness.wasserstein_disparity(column, sensitive_features=group) for column in both.T]
  np.testing.assert_allclose(
    fairness.wasserstein_disparity(both, sensitive_features=group), max(each)
  )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_an_empty_group_is_unknown_or_skipped(method):
  scores, group = make_scores(6)
  options = {"sensitive_features": group, "method": method}
  metric = fairness.wasserstein_disparity
  assert np.isnan(metric(scores, num_groups=4, **options))
  np.testing.assert_allclose(
    metric(scores, num_groups=4, skip_empty=True, **options), metric(scores, **options)
  )


@pytest.mark.slow
def test_jit_vmap_and_gradient():
  scores, group = make_scores(7, decimals=6)

  def metric(s):
    return fairness.wasserstein_disparity(s, sensitive_features=group, num_groups=3)

  batch = jnp.stack([scores, scores**2])
  np.testing.assert_allclose(
    jax.jit(jax.vmap(metric))(batch), [metric(s) for s in batch], rtol=1e-5
  )
  # The distance is linear along a move of the scores that keeps their order.
  direction = scores
  slope = jax.grad(metric)(jnp.asarray(scores)) @ direction
  np.testing.assert_allclose(slope, metric(scores), rtol=1e-3)


def test_one_person_is_no_distance():
  assert fairness.wasserstein_disparity([0.3], sensitive_features=[0]) == 0
  alone = _wasserstein.wasserstein_distances([0.3], sensitive_features=[0], num_groups=2)
  np.testing.assert_array_equal(alone, [[0, np.nan], [np.nan, np.nan]])
