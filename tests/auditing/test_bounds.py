"""Lower bounds from scores: exact ends, true coverage, both directions."""

import math

import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.accounting import _gaussian
from jaxfair.auditing import _bounds as bounds
from jaxfair.auditing._bounds import epsilon_lower_bound


@pytest.mark.parametrize(("count", "total"), [(0, 9), (3, 9), (9, 9), (1, 500)])
def test_ends_are_clopper_and_pearsons(count, total):
  level = 1e-3
  exact = stats.binomtest(count, total).proportion_ci(1 - 2 * level, method="exact")
  low = bounds.clopper_pearson_low(count, total, level)
  high = bounds.clopper_pearson_high(count, total, level)
  np.testing.assert_allclose((low, high), exact, rtol=1e-9)


def binary(ones, total):
  """Scores whose halves, by position, have the same number of ones."""
  half = np.zeros(total // 2)
  half[: ones // 2] = 1.0
  return np.concatenate([half, half])


def test_a_bound_by_hand():
  """900 of 1000 against 100 of 1000; half of them are counted."""
  found = epsilon_lower_bound(binary(100, 1000), binary(900, 1000), delta=0.01, confidence=0.9)
  level = 0.05
  low = stats.beta.ppf(level, 450, 51)
  high = stats.beta.ppf(1 - level, 51, 450)
  assert found.epsilon == pytest.approx(math.log((low - 0.01) / high), rel=1e-9)
  assert (found.delta, found.confidence) == (0.01, 0.9)
  assert (found.method, found.num_runs) == ("threshold", 1000)
  assert found.threshold == 0.5


def test_a_gaussian_bound_by_hand():
  found = epsilon_lower_bound(
    binary(100, 1000), binary(900, 1000), delta=1e-5, confidence=0.9, method="gaussian"
  )
  low, high = stats.beta.ppf(0.05, 450, 51), stats.beta.ppf(0.95, 51, 450)
  mu = stats.norm.ppf(low) - stats.norm.ppf(high)
  exact = _gaussian.gaussian_epsilon(sigma=1 / mu, delta=1e-5)
  assert found.epsilon == pytest.approx(exact, rel=1e-7)
  assert found.epsilon < exact


@pytest.mark.parametrize("method", ["threshold", "gaussian"])
def test_neither_order_nor_sign_of_the_scores_matters(method):
  rng = np.random.default_rng(0)
  a, b = rng.normal(size=4000), rng.normal(2.0, size=4000)
  bounds = [
    epsilon_lower_bound(*pair, delta=1e-3, method=method).epsilon
    for pair in ((a, b), (b, a), (-a, -b))
  ]
  assert bounds[0] > 1.5
  assert bounds[0] == pytest.approx(bounds[1])
  assert bounds[0] == pytest.approx(bounds[2])


def test_an_event_that_is_rare_for_one_neighbor_only_counts():
  """A leak with probability 0.1 shows, though the scores mostly agree."""
  rng = np.random.default_rng(1)
  leaks = rng.random(20_000) < 0.1
  without = rng.integers(0, 5, 20_000)
  present = np.where(leaks, np.inf, rng.integers(0, 5, 20_000))
  found = epsilon_lower_bound(without, present, delta=1e-6)
  level = 0.025
  most = math.log(0.1 / stats.beta.ppf(1 - level, 1, 10_000))
  assert most - 0.2 < found.epsilon < most + 0.1
  assert 4 < found.threshold < np.inf


def failures(mechanism, truth, *, audits, **settings):
  rng = np.random.default_rng(5)
  return sum(
    epsilon_lower_bound(*mechanism(rng), **settings).epsilon > truth for _ in range(audits)
  )


def not_above(count, audits, level):
  """Whether so many failures are consistent with the level, up to 1e-7."""
  return count <= stats.binom.isf(1e-7, audits, level)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_bound_holds_with_its_confidence_for_randomized_response(delta):
  """(epsilon, delta)-DP with equality: with chance delta the truth is told."""
  epsilon, audits = 1.0, 1000
  keep = math.exp(epsilon) / (1 + math.exp(epsilon))

  def mechanism(rng):
    answers = []
    for truth in (0, 1):
      told = np.where(rng.random(300) < keep, truth, 1 - truth)
      # Truth told: a score beyond all others, on its own side.
      leaked = rng.random(300) < delta
      answers.append(np.where(leaked, 10 * (2 * truth - 1), told))
    return answers

  failed = failures(mechanism, epsilon, audits=audits, delta=delta, confidence=0.8)
  assert not_above(failed, audits, 0.2)


@pytest.mark.slow
def test_the_gaussian_bound_holds_with_its_confidence():
  """And not by much more: one threshold costs a fraction of the level."""
  audits, mu = 1000, 1.0
  truth = _gaussian.gaussian_epsilon(sigma=1 / mu, delta=1e-4)

  def mechanism(rng):
    return rng.normal(size=300), rng.normal(mu, size=300)

  failed = failures(mechanism, truth, audits=audits, delta=1e-4, confidence=0.8, method="gaussian")
  assert not_above(failed, audits, 0.2)


@pytest.mark.slow
def test_many_thresholds_do_not_make_a_bound_of_nothing():
  """Equal distributions: a search over the counted runs would find a gap."""
  audits = 1000

  def mechanism(rng):
    return rng.normal(size=100), rng.normal(size=100)

  failed = failures(mechanism, 0.0, audits=audits, delta=0.0, confidence=0.8)
  assert not_above(failed, audits, 0.2)


def test_runs_that_choose_are_not_counted():
  """The first halves are told apart without error, the others not at all."""
  rng = np.random.default_rng(3)
  rest = rng.integers(0, 2, (2, 500))
  scores = [np.concatenate([np.full(500, i), rest[i]]) for i in (0, 1)]
  found = epsilon_lower_bound(*scores, delta=0.0, confidence=1 - 1e-7)
  assert found.epsilon == 0.0
  assert found.threshold == 0.5


def test_a_larger_delta_and_a_higher_confidence_lower_the_bound():
  rng = np.random.default_rng(2)
  scores = rng.normal(size=5000), rng.normal(1.5, size=5000)
  by_delta = [epsilon_lower_bound(*scores, delta=delta).epsilon for delta in (0.0, 0.01, 0.1, 0.9)]
  assert by_delta == sorted(by_delta, reverse=True)
  assert by_delta[-1] == 0.0
  sure = epsilon_lower_bound(*scores, delta=0.0, confidence=1 - 1e-7)
  assert 0 < sure.epsilon < by_delta[0]


GOOD = {"delta": 1e-5}


@pytest.mark.parametrize(
  ("scores", "settings", "told"),
  [
    (np.zeros(5), GOOD, "scores_without holds 5 runs"),
    (np.zeros((9, 2)), GOOD, "one score per run"),
    (np.full(9, np.nan), GOOD, "9 NaN scores"),
    (np.zeros(9), {"delta": 1.0}, "delta=1.0 must be in"),
    (np.zeros(9), {"delta": -0.1}, "delta=-0.1 must be in"),
    (np.zeros(9), {**GOOD, "confidence": 1.0}, "confidence=1.0 must be in"),
    (np.zeros(9), {**GOOD, "method": "guess"}, "method='guess' is not known"),
    (np.zeros(9), {"delta": 0.0, "method": "gaussian"}, "delta=0.0 must be"),
    (np.zeros(9), {**GOOD, "selection": 0.0}, "selection=0.0 must be in"),
  ],
)
def test_what_cannot_be_bounded_is_refused(scores, settings, told):
  with pytest.raises(checks.ArgumentError, match=told):
    epsilon_lower_bound(scores, np.zeros(9), **settings)


def test_scores_that_never_vary_show_nothing():
  found = epsilon_lower_bound(np.zeros(100), np.zeros(100), delta=1e-5)
  assert found.epsilon == 0.0
  found = epsilon_lower_bound(np.zeros(100), np.zeros(100), delta=1e-5, method="gaussian")
  assert found.epsilon == 0.0
