import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.fairness import _groups


def numbers(low, high):
  """Twelve float32; XLA takes those below the normal range for zero."""
  one = st.floats(low, high, width=32, allow_subnormal=False)
  return st.lists(one, min_size=12, max_size=12)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
  group=st.lists(st.integers(0, 3), min_size=12, max_size=12),
  values=numbers(-10, 10),
  weights=numbers(0, 5),
)
def test_agrees_with_a_loop_over_groups(group, values, weights):
  group, values, weights = map(np.array, (group, values, weights))
  counts = _groups.group_counts(group, 4)
  totals = _groups.group_counts(group, 4, weights)
  sums = _groups.group_sums(values, group, 4, weights)
  means = _groups.group_means(values, group, 4, weights)
  for g in range(4):
    rows = group == g
    assert counts[g] == rows.sum()
    np.testing.assert_allclose(totals[g], weights[rows].sum(), rtol=1e-5)
    expected = (weights * values)[rows].sum()
    np.testing.assert_allclose(sums[g], expected, rtol=1e-4, atol=1e-4)
    if weights[rows].sum() == 0:
      assert np.isnan(means[g])
    elif weights[rows].sum() > 1e-3:
      mean = np.average(values[rows], weights=weights[rows])
      np.testing.assert_allclose(means[g], mean, rtol=1e-4, atol=1e-4)


def test_values_may_have_more_axes():
  values = np.arange(24.0).reshape(4, 3, 2)
  group = np.array([1, 0, 1, 1])
  means = _groups.group_means(values, group, 2, np.array([1.0, 2.0, 0.0, 3.0]))
  np.testing.assert_allclose(means[0], values[1])
  np.testing.assert_allclose(means[1], (values[0] + 3 * values[3]) / 4)


def test_an_empty_group_is_nan_with_count_zero():
  means = _groups.group_means(np.ones(3), np.array([0, 2, 2]), 4)
  np.testing.assert_array_equal(means, [1, np.nan, 1, np.nan])
  counts = _groups.group_counts(np.array([0, 2, 2]), 4)
  np.testing.assert_array_equal(counts, [1, 0, 2, 0])
  assert counts.dtype == jnp.int32


def test_rows_out_of_range_belong_to_nobody():
  group = np.array([-1, 0, 1, 7])
  np.testing.assert_array_equal(_groups.group_counts(group, 2), [1, 1])
  sums = _groups.group_sums(np.array([5.0, 1.0, 2.0, 5.0]), group, 2)
  np.testing.assert_array_equal(sums, [1, 2])


def test_counts_beyond_float32_stay_exact():
  n = 2**24 + 3
  assert _groups.group_counts(np.zeros(n, np.int8), 1)[0] == n


def test_a_long_float32_sum_does_not_drift():
  values = np.full(1_000_000, 0.1, np.float32)
  mean = _groups.group_means(values, np.zeros(1_000_000, np.int32), 1)
  np.testing.assert_allclose(mean, values[:1], rtol=5e-6)


def test_boolean_values_are_counted():
  sums = _groups.group_sums(np.array([True, True, False]), np.zeros(3, int), 1)
  assert sums[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("argument", [0, 1])
def test_a_group_without_weight_leaves_all_gradients_clean(argument):
  """Group 1 has people, all of weight 0: its mean is unknown, not its slope."""
  values, weights = jnp.array([1.0, 3.0, 7.0]), jnp.array([1.0, 1.0, 0.0])

  def total(values, weights):
    means = _groups.group_means(values, jnp.array([0, 0, 1]), 2, weights)
    return jnp.nansum(means)

  gradient = jax.grad(total, argument)(values, weights)
  expected = [[0.5, 0.5, 0.0], [-0.5, 0.5, 0.0]][argument]
  np.testing.assert_allclose(gradient, expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_jit_and_vmap_change_nothing(weighted):
  rng = np.random.default_rng(0)
  values = rng.normal(size=(5, 30)).astype(np.float32)
  group = rng.integers(0, 3, (5, 30))
  weights = rng.random((5, 30)).astype(np.float32) if weighted else None

  def means(v, g, w):
    return _groups.group_means(v, g, 3, w)

  together = jax.jit(jax.vmap(means))(values, group, weights)
  for i in range(5):
    alone = means(values[i], group[i], None if weights is None else weights[i])
    np.testing.assert_allclose(together[i], alone, rtol=1e-6)


def test_divide_by_zero_is_nan_not_infinity():
  result = _groups.divide(jnp.array([1.0, 0.0, 3.0]), jnp.array([0.0, 0, 2]))
  np.testing.assert_array_equal(result, [np.nan, np.nan, 1.5])
