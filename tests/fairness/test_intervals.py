import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _intervals

RNG = np.random.default_rng(0)


def test_seed_interval_is_scipys_t_interval():
  values = RNG.normal(2.0, 3.0, (20, 4))
  interval = fairness.seed_interval(values, level=0.9)
  low, high = stats.t.interval(0.9, 19, loc=values.mean(0), scale=stats.sem(values, axis=0))
  np.testing.assert_allclose(interval.estimate, values.mean(0))
  np.testing.assert_allclose(interval.low, low)
  np.testing.assert_allclose(interval.high, high)
  np.testing.assert_array_equal(interval.dropped, 0)
  assert interval.level == 0.9


def test_any_axis_can_be_the_seeds():
  values = RNG.normal(size=(3, 10, 2))
  by_axis = fairness.seed_interval(values, axis=1)
  moved = fairness.seed_interval(np.moveaxis(values, 1, 0))
  np.testing.assert_array_equal(by_axis.low, moved.low)
  assert by_axis.low.shape == (3, 2)


def test_seeds_without_a_value_are_dropped_and_counted():
  values = RNG.normal(size=(12, 2))
  gaps = values.copy()
  gaps[[2, 5], 0] = np.nan
  interval = fairness.seed_interval(gaps)
  kept = fairness.seed_interval(np.delete(values[:, 0], [2, 5]))
  np.testing.assert_allclose(interval.low[0], kept.low)
  np.testing.assert_array_equal(interval.dropped, [2, 0])


def test_one_seed_has_an_estimate_and_no_ends():
  interval = fairness.seed_interval(np.array([[3.0, np.nan]]))
  np.testing.assert_array_equal(interval.estimate, [3, np.nan])
  assert np.isnan(interval.low).all()
  assert np.isnan(interval.high).all()
  np.testing.assert_array_equal(interval.dropped, [0, 1])


def test_paired_interval_is_of_the_differences():
  luck = RNG.normal(size=30)
  first = luck + 1 + 0.1 * RNG.normal(size=30)
  second = luck + 0.1 * RNG.normal(size=30)
  interval = fairness.paired_interval(first, second)
  expected = stats.ttest_rel(first, second).confidence_interval()
  np.testing.assert_allclose([interval.low, interval.high], list(expected))
  alone = fairness.seed_interval(first)
  assert interval.high - interval.low < (alone.high - alone.low) / 3


def test_a_pair_with_a_missing_half_is_dropped():
  first, second = np.arange(5.0), np.zeros(5)
  first[1] = second[3] = np.nan
  interval = fairness.paired_interval(first, second)
  assert interval.dropped == 2
  np.testing.assert_allclose(interval.estimate, 2.0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_percentile_ends_are_numpys_quantiles_without_nan(level):
  draws = RNG.normal(size=(101, 3))
  draws[:7, 1] = np.nan
  draws[:, 2] = np.nan
  interval = _intervals.interval_of_draws(np.zeros(3), draws, level=level)
  tails = [(1 - level) / 2, (1 + level) / 2]
  expected = np.nanquantile(draws[:, :2], tails, axis=0)
  np.testing.assert_allclose(interval.low[:2], expected[0])
  np.testing.assert_allclose(interval.high[:2], expected[1])
  assert np.isnan(interval.low[2])
  np.testing.assert_array_equal(interval.dropped, [0, 7, 101])


def test_the_basic_interval_mirrors_the_percentile_one():
  draws = RNG.exponential(size=500)
  percentile = _intervals.interval_of_draws(np.array(1.0), draws)
  basic = _intervals.interval_of_draws(np.array(1.0), draws, kind="basic")
  np.testing.assert_allclose(basic.low, 2 - percentile.high)
  np.testing.assert_allclose(basic.high, 2 - percentile.low)


def test_bca_by_hand():
  draws = RNG.normal(size=1001)
  estimate, a = 0.2, 0.05
  bias = stats.norm.ppf(np.mean(draws < estimate))
  levels = [
    stats.norm.cdf(bias + (bias + z) / (1 - a * (bias + z))) for z in stats.norm.ppf([0.05, 0.95])
  ]
  interval = _intervals.interval_of_draws(
    np.array(estimate), draws, level=0.9, kind="bca", acceleration=np.array(a)
  )
  np.testing.assert_allclose([interval.low, interval.high], np.quantile(draws, levels))


def test_bca_without_bias_and_acceleration_is_the_percentile_interval():
  draws = np.linspace(-1, 1, 1001)
  bca, percentile = (
    _intervals.interval_of_draws(np.array(0.0), draws, kind=kind, acceleration=np.array(0.0))
    for kind in ("bca", "percentile")
  )
  np.testing.assert_allclose(bca.low, percentile.low)
  np.testing.assert_allclose(bca.high, percentile.high)


@pytest.mark.parametrize("estimate", [-1.0, 5.0, 2.0])
def test_bca_stays_within_the_draws(estimate):
  """Every draw above, every draw below, every draw equal."""
  draws = np.full(100, 2.0)
  interval = _intervals.interval_of_draws(
    np.array(estimate), draws, kind="bca", acceleration=np.array(0.0)
  )
  assert interval.low == interval.high == 2


def test_an_interval_keeps_the_structure_of_its_statistic():
  estimate = {"a": np.zeros(2), "b": (np.array(1.0), None)}
  draws = jax.tree.map(lambda leaf: np.stack([leaf] * 10), estimate)
  interval = _intervals.interval_of_draws(estimate, draws)
  for field in (interval.estimate, interval.low, interval.dropped):
    assert jax.tree.structure(field) == jax.tree.structure(estimate)
  assert interval.high["a"].shape == (2,)


def test_bad_options_are_refused():
  with pytest.raises(ArgumentError, match=r"level=1.*0\.95 is usual"):
    fairness.seed_interval(np.ones(3), level=1)
  with pytest.raises(ArgumentError, match="did you mean percentile"):
    _intervals.interval_of_draws(np.ones(()), np.ones(3), kind="percentiles")
  with pytest.raises(ArgumentError, match="acceleration"):
    _intervals.interval_of_draws(np.ones(()), np.ones(3), kind="bca")
  with pytest.raises(ArgumentError, match="same seeds"):
    fairness.paired_interval(np.ones(3), np.ones(4))
  with pytest.raises(ArgumentError, match="outside jit"):
    jax.jit(fairness.seed_interval)(np.ones(3))
