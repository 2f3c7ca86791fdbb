"""Bootstrap: exact distributions, brute force over rows, NaN draws, keys.

Tolerances come from the Dvoretzky-Kiefer-Wolfowitz inequality: with B draws
the empirical distribution is within sqrt(log(2 / p) / 2B) of the true one
everywhere, but for a probability p. Here p = 1e-7.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _bootstrap, _confusion, _groups, _resampling
from jaxfair.fairness._bootstrap import _acceleration

KEY = jax.random.key(7)


def dkw(num_draws, p=1e-7):
  return np.sqrt(np.log(2 / p) / (2 * num_draws))


def small_sample(people, n=60):
  return [column[:n] for column in people(0, (3, 2))[:3]]


@pytest.mark.parametrize("kind", ["percentile", "basic"])
def test_accuracy_of_one_group_has_binomial_ends(kind):
  """Drawing n people with a share p right is Binomial(n, p) right answers."""
  n, right, num_draws, level = 50, 37, 200_000, 0.9
  y_true = np.zeros(n, int)
  y_pred = (np.arange(n) >= right).astype(int)
  interval = fairness.bootstrap(
    fairness.accuracy,
    y_true,
    y_pred,
    sensitive_features=y_true,
    key=KEY,
    num_draws=num_draws,
    level=level,
    kind=kind,
  )
  np.testing.assert_allclose(interval.estimate, [right / n], rtol=1e-6)
  error = dkw(num_draws)
  exact = stats.binom(n, right / n)
  low, high = interval.low[0], interval.high[0]
  if kind == "basic":
    low, high = 2 * right / n - high, 2 * right / n - low
  for end, tail in ((low, 0.05), (high, 0.95)):
    assert exact.ppf(tail - error) <= end * n + 1e-4
    assert end * n - 1e-4 <= exact.ppf(tail + error)


def test_bca_ends_of_one_accuracy_are_the_analytic_ones():
  n, right, num_draws = 50, 45, 200_000
  y_true = np.zeros(n, int)
  y_pred = (np.arange(n) >= right).astype(int)
  interval = fairness.bootstrap(
    fairness.accuracy,
    y_true,
    y_pred,
    sensitive_features=y_true,
    key=KEY,
    num_draws=num_draws,
    level=0.9,
    kind="bca",
  )
  exact = stats.binom(n, right / n)
  centered = (y_pred == 0) - right / n
  a = np.sum(centered**3) / (6 * np.sum(centered**2) ** 1.5)
  error = dkw(num_draws)
  below = exact.cdf(right - 1) + exact.pmf(right) / 2
  for end, tail in ((interval.low[0], 0.05), (interval.high[0], 0.95)):
    levels = []
    for share in (below - error, below + error):
      bias = stats.norm.ppf(share)
      shifted = bias + stats.norm.ppf(tail)
      levels.append(stats.norm.cdf(bias + shifted / (1 - a * shifted)))
    assert exact.ppf(levels[0] - error) <= end * n + 1e-4
    assert end * n - 1e-4 <= exact.ppf(levels[1] + error)
  plain = exact.ppf([0.05, 0.95]) / n
  assert interval.low[0] < plain[0] - 1e-3  # and that is not the percentile one


def gap_draws(y_true, y_pred, group, num_draws, seed):
  """Plain bootstrap: draw rows, recompute, in a loop."""
  rng = np.random.default_rng(seed)
  values = []
  for _ in range(num_draws):
    rows = rng.integers(0, len(group), len(group))
    selected, member = y_pred[rows] == 1, group[rows]
    rates = [selected[member == g].mean() for g in (0, 1)]
    values.append(abs(rates[0] - rates[1]))
  return np.array(values)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["tables", "rows"])
def test_draws_follow_the_row_bootstrap(people, path):
  y_true, y_pred, group = small_sample(people)
  num_draws = 20_000
  brute = gap_draws(y_true, y_pred, group, num_draws, seed=1)
  options = {"sensitive_features": group, "key": KEY, "num_draws": num_draws}
  metric = fairness.demographic_parity_difference
  error = 2 * dkw(num_draws)
  for level in (0.2, 0.5, 0.8):
    if path == "tables":
      interval = fairness.bootstrap(metric, y_true, y_pred, level=level, **options)
    else:
      interval = _bootstrap.bootstrap_rows(
        functools.partial(metric, num_classes=2), y_true, y_pred, level=level, **options
      )
    for end, tail in ((interval.low, (1 - level) / 2), (interval.high, (1 + level) / 2)):
      # Values repeat: compare with the distribution on both sides of the end.
      assert np.mean(brute < end - 1e-6) <= tail + error
      assert np.mean(brute <= end + 1e-6) >= tail - error


def test_many_chunks_give_the_draws_asked_for(people, monkeypatch):
  *_, group, weight = people(0)
  call = functools.partial(
    _bootstrap.bootstrap_rows,
    fairness.mean_loss,
    weight,
    sensitive_features=group,
    key=KEY,
    num_draws=50,
  )
  whole = call()
  monkeypatch.setattr(_resampling, "_CHUNK", 7 * group.size)
  chunked = call()
  # The same generator is read in the same order; only the cut differs.
  np.testing.assert_allclose(chunked.low, whole.low, rtol=1e-6)
  np.testing.assert_allclose(chunked.high, whole.high, rtol=1e-6)


def test_many_chunks_of_tables_give_the_draws_asked_for(people, monkeypatch):
  y_true, y_pred, group, _ = people(0)
  call = functools.partial(
    fairness.bootstrap,
    fairness.accuracy,
    y_true,
    y_pred,
    sensitive_features=group,
    key=KEY,
    num_draws=50,
  )
  whole = call()
  monkeypatch.setattr(_resampling, "_CHUNK", 7 * 12)
  chunked = call()
  np.testing.assert_allclose(chunked.estimate, whole.estimate, rtol=1e-6)
  np.testing.assert_allclose(chunked.low, whole.low, rtol=1e-6)
  np.testing.assert_allclose(chunked.high, whole.high, rtol=1e-6)


def test_the_standard_error_of_a_mean_is_recovered(people):
  *_, group, losses = people(1)
  num_draws = 4000
  interval = _bootstrap.bootstrap_rows(
    fairness.mean_loss, losses, sensitive_features=group, key=KEY, num_draws=num_draws, level=0.6827
  )
  for g in range(3):
    own = losses[group == g]
    half = (interval.high[g] - interval.low[g]) / 2
    # Ends of nearly normal draws: se / se_true within quantile noise, and the
    # group's size varies, which adds a term of order 1 / size.
    quantile_noise = 5.5 * np.sqrt(0.16 * 0.84 / num_draws) / stats.norm.pdf(1)
    slack = quantile_noise + 3 / own.size
    np.testing.assert_allclose(half, own.std() / np.sqrt(own.size), rtol=slack)


def test_weighted_people_keep_their_weights(people):
  y_true, y_pred, group, weight = people(2)
  interval = _bootstrap.bootstrap_rows(
    functools.partial(fairness.accuracy, num_classes=2),
    y_true,
    y_pred,
    sensitive_features=group,
    sample_weight=weight,
    key=KEY,
    num_draws=100,
  )
  expected = fairness.accuracy(y_true, y_pred, sensitive_features=group, sample_weight=weight)
  np.testing.assert_allclose(interval.estimate, expected, rtol=1e-6)
  assert np.all(interval.low < expected)
  assert np.all(expected < interval.high)


@pytest.mark.slow
def test_acceleration_of_a_gap_is_that_of_its_influence_values(people):
  """BCa on tables and on rows agree with influence values derived by hand."""
  _, y_pred, group = small_sample(people)
  rates = np.array([y_pred[group == g].mean() for g in (0, 1)])
  share = np.array([np.mean(group == g) for g in (0, 1)])
  sign = np.where(np.arange(2) == rates.argmax(), 1, -1)
  influence = (sign / share)[group] * (y_pred - rates[group])
  expected = np.sum(influence**3) / (6 * np.sum(influence**2) ** 1.5)

  def gap(weights):
    return fairness.demographic_parity_difference(
      y_pred, y_pred, sensitive_features=group, sample_weight=weights
    )

  slopes = jax.grad(gap)(jnp.ones(len(group)))
  found = _acceleration(np.asarray(slopes), np.ones(len(group)))
  np.testing.assert_allclose(found, expected, rtol=1e-4)

  def gap_of_counts(counts):
    return fairness.difference(_groups.divide(counts[:, 1], counts.sum(1)))

  counts = np.array(_confusion.prediction_counts(y_pred, sensitive_features=group))
  slopes = jax.grad(gap_of_counts)(counts.astype(np.float32))
  found = _acceleration(np.asarray(slopes), counts)
  np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_acceleration_of_a_sum_is_the_skewness_of_its_terms():
  values = np.random.default_rng(0).exponential(size=(2, 30)) + 5
  expected = stats.skew(values, axis=1) / (6 * np.sqrt(30))
  np.testing.assert_allclose(_acceleration(values, np.ones(30)), expected)
  assert _acceleration(np.ones(30), np.ones(30)) == 0


def test_draws_that_empty_a_group_are_dropped_and_counted():
  """One person in the last group is missed with probability (1 - 1/n)^n."""
  n, num_draws = 30, 10_000
  y = np.arange(n) % 2
  group = (np.arange(n) == 0).astype(int)
  options = {"sensitive_features": group, "key": KEY, "num_draws": num_draws}
  interval = fairness.bootstrap(fairness.accuracy, y, y, **options)
  missed = (1 - 1 / n) ** n
  noise = 5.5 * np.sqrt(missed * (1 - missed) / num_draws)
  assert interval.dropped[0] == 0
  assert abs(interval.dropped[1] / num_draws - missed) < noise
  np.testing.assert_array_equal(interval.low, [1, 1])
  rows = _bootstrap.bootstrap_rows(fairness.mean_loss, y.astype(float), **options)
  assert abs(rows.dropped[1] / num_draws - missed) < noise


def test_a_group_nobody_is_in_drops_every_draw(people):
  y_true, y_pred, group, _ = people(3)
  interval = fairness.bootstrap(
    fairness.accuracy_parity_difference,
    y_true,
    y_pred,
    sensitive_features=group,
    num_groups=4,
    key=KEY,
    num_draws=20,
  )
  assert np.isnan([interval.estimate, interval.low, interval.high]).all()
  assert interval.dropped == 20


@pytest.mark.slow
def test_a_whole_report_gets_intervals_in_one_call(people):
  y_true, y_pred, group, losses = people(4)
  report = fairness.by_group(y_true, y_pred, sensitive_features=group)
  for interval in (
    fairness.bootstrap(
      fairness.by_group, y_true, y_pred, sensitive_features=group, key=KEY, num_draws=200
    ),
    _bootstrap.bootstrap_rows(
      functools.partial(fairness.by_group, num_classes=2),
      y_true,
      y_pred,
      losses,
      sensitive_features=group,
      key=KEY,
      num_draws=200,
    ),
  ):
    np.testing.assert_allclose(interval.estimate.groups.accuracy, report.groups.accuracy, rtol=1e-6)
    assert interval.low.overall.count == group.size
    assert np.all(interval.low.groups.accuracy < report.groups.accuracy)
    assert np.all(interval.high.groups.accuracy > report.groups.accuracy)
  assert interval.low.groups.loss.shape == (3,)


def test_any_table_and_any_statistic_of_it():
  counts = np.array([[324, 287], [420, 274], [445, 250]])
  interval = _bootstrap.bootstrap_counts(
    fairness.demographic_disparity, counts, key=KEY, num_draws=500
  )
  np.testing.assert_allclose(interval.estimate, fairness.demographic_disparity(counts), rtol=1e-5)
  assert np.all(interval.low < interval.estimate)
  assert np.all(interval.estimate < interval.high)


def test_two_models_on_the_same_people(people):
  """A paired comparison is narrower than the two intervals apart."""
  y_true, y_pred, group, _ = people(5)
  other = np.where(np.arange(group.size) % 20 == 0, 1 - y_pred, y_pred)

  def accuracy_lost(y, before, after, **options):
    of = functools.partial(fairness.accuracy, num_classes=2, **options)
    return of(y, before) - of(y, after)

  options = {"sensitive_features": group, "key": KEY, "num_draws": 300}
  lost = _bootstrap.bootstrap_rows(accuracy_lost, y_true, y_pred, other, **options)
  alone = fairness.bootstrap(fairness.accuracy, y_true, y_pred, **options)
  assert np.all(lost.high - lost.low < alone.high - alone.low)


def test_the_key_decides(people):
  y_true, y_pred, group, _ = people(6)
  call = functools.partial(
    fairness.bootstrap, fairness.accuracy, y_true, y_pred, sensitive_features=group, num_draws=100
  )
  once, again = call(key=KEY), call(key=KEY)
  np.testing.assert_array_equal(once.low, again.low)
  assert np.any(once.low != call(key=jax.random.key(8)).low)
  with pytest.raises(TypeError, match="key"):
    call()
  with pytest.raises(ArgumentError, match=r"jax\.random\.key"):
    call(key=3)


def test_a_metric_is_compiled_once(people):
  y_true, y_pred, group, _ = people(7)
  traces = []

  def counted(*columns, **options):
    traces.append(1)
    return fairness.accuracy(*columns, **options)

  for seed in range(3):
    fairness.bootstrap(
      counted, y_true, y_pred, sensitive_features=group, num_draws=10, key=jax.random.key(seed)
    )
  assert len(traces) == 1


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"num_draws": 1}, "num_draws=1 must be at least 2"),
    ({"level": 95}, "level=95"),
    ({"kind": "BCa"}, "use one of percentile, basic, bca"),
  ],
)
def test_bad_options_are_refused(people, options, message):
  y_true, y_pred, group, _ = people(8)
  with pytest.raises(ArgumentError, match=message):
    fairness.bootstrap(
      fairness.accuracy, y_true, y_pred, sensitive_features=group, **{"key": KEY, **options}
    )


def test_bad_tables_and_columns_are_refused(people):
  statistic = fairness.demographic_disparity
  with pytest.raises(ArgumentError, match="bootstrap_rows"):
    _bootstrap.bootstrap_counts(statistic, np.full((2, 2), 0.5), key=KEY)
  with pytest.raises(ArgumentError, match="nobody"):
    _bootstrap.bootstrap_counts(statistic, np.zeros((2, 2)), key=KEY)
  with pytest.raises(ArgumentError, match="nobody"):
    _bootstrap.bootstrap_counts(statistic, np.zeros((0, 2)), key=KEY)
  with pytest.raises(ArgumentError, match="losses has 1 rows with NaN"):
    _bootstrap.bootstrap_rows(
      fairness.mean_loss, np.array([1.0, np.nan]), sensitive_features=[0, 0], key=KEY
    )
  with pytest.raises(ArgumentError, match="one row per person"):
    _bootstrap.bootstrap_rows(fairness.mean_loss, np.ones(3), sensitive_features=[0, 0], key=KEY)
  with pytest.raises(ArgumentError, match="y_pred has ids from 0 to 2"):
    _bootstrap.bootstrap_rows(
      functools.partial(fairness.accuracy, num_classes=2),
      np.array([0, 1, 1]),
      np.array([0, 1, 2]),
      sensitive_features=[0, 0, 0],
      key=KEY,
    )
  with pytest.raises(ArgumentError, match="outside jit"):
    jax.jit(lambda y: fairness.bootstrap(fairness.accuracy, y, y, sensitive_features=y, key=KEY))(
      np.array([0, 1])
    )
