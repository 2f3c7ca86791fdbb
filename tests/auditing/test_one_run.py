"""The audit of one run: its p-value, its coverage, its plan."""

import math

import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.auditing import audit_one_run, plan_guesses
from jaxfair.auditing._one_run import one_run_p_value


def p_value(m, r, v, epsilon, delta):
  return one_run_p_value(num_canaries=m, guesses=r, correct=v, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("correct", [0, 1, 40, 57, 60])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_without_delta_it_is_a_binomial_test(correct, epsilon):
  right = math.exp(epsilon) / (1 + math.exp(epsilon))
  exact = stats.binomtest(correct, 60, right, alternative="greater").pvalue
  assert p_value(100, 60, correct, epsilon, 0.0) == pytest.approx(exact)


@pytest.mark.parametrize("correct", [1, 30, 45, 60])
def test_with_delta_it_is_the_sum_of_the_theorem(correct):
  """Term by term, from factorials."""
  m, r, epsilon, delta = 200, 60, 0.7, 1e-3
  right = 1 / (1 + math.exp(-epsilon))

  def mass(k):
    return math.comb(r, k) * right**k * (1 - right) ** (r - k)

  enough = sum(mass(k) for k in range(correct, r + 1))
  most = max(sum(mass(k) for k in range(correct - i, correct)) / i for i in range(1, correct + 1))
  expected = min(1.0, enough + 2 * m * delta * most)
  assert p_value(m, r, correct, epsilon, delta) == pytest.approx(expected)


def test_a_bound_by_hand():
  """Top 3 and bottom 2: four of five are right."""
  scores = [9.0, 8.0, 7.0, 5.0, 5.0, 5.0, 1.0, 0.0]
  included = np.array([1, 0, 1, 1, 0, 1, 0, 0], bool)
  found = audit_one_run(scores, included, delta=0.0, confidence=0.5, guesses=(3, 2))
  assert (found.guessed_in, found.guessed_out, found.correct) == (3, 2, 4)
  # Pr[Binomial(5, p) >= 4] = 5 p^4 - 4 p^5 = 1/2 at the bound.
  p = 1 / (1 + math.exp(-found.epsilon))
  assert 5 * p**4 - 4 * p**5 == pytest.approx(0.5, abs=1e-5)
  assert (found.num_canaries, found.delta, found.confidence) == (8, 0.0, 0.5)


def responses(rng, m, epsilon, delta):
  """Each canary's coin told with error, or plainly with chance delta."""
  included = rng.random(m) < 0.5
  keep = rng.random(m) < math.exp(epsilon) / (1 + math.exp(epsilon))
  told = np.where(keep, included, ~included).astype(float)
  plainly = rng.random(m) < delta
  return np.where(plainly, 10.0 * (2 * included - 1), told), included


def failures(audits, level, guesses, *, epsilon, delta, m=60):
  rng = np.random.default_rng(3)
  return sum(
    audit_one_run(
      *responses(rng, m, epsilon, delta), delta=delta, confidence=1 - level, guesses=guesses
    ).epsilon
    > epsilon
    for _ in range(audits)
  )


@pytest.mark.slow
@pytest.mark.parametrize("guesses", [None, (30, 30), (10, 5), (60, 0)])
def test_the_bound_holds_with_its_confidence(guesses):
  audits, level = 600, 0.2
  failed = failures(audits, level, guesses, epsilon=1.0, delta=0.0)
  assert failed <= stats.binom.isf(1e-7, audits, level)


@pytest.mark.slow
def test_randomized_response_on_all_canaries_uses_up_the_level():
  """The worst case of the theorem: all guesses made, each right by chance."""
  audits, level = 600, 0.2
  rng = np.random.default_rng(4)
  failed = 0
  for _ in range(audits):
    included = rng.random(200) < 0.5
    told = rng.random(200) < 0.75
    # The order of equal scores is by position, so give them their sides.
    scores = np.where(told, included, ~included) + 0.0
    k = int(scores.sum())
    found = audit_one_run(scores, included, delta=0.0, confidence=1 - level, guesses=(k, 200 - k))
    failed += found.epsilon > math.log(3)
  # Binomial tails jump: at 200 guesses the level is met within 0.05.
  low, high = stats.binom.interval(1 - 1e-6, audits, [level - 0.05, level])
  assert low[0] <= failed <= high[1]


def test_the_bound_holds_where_delta_is_used():
  audits, level = 600, 0.2
  for guesses in (None, (5, 5)):
    failed = failures(audits, level, guesses, epsilon=0.5, delta=0.02)
    assert failed <= stats.binom.isf(1e-7, audits, level)


def test_five_ways_find_a_few_sure_canaries_among_many():
  """Guessing about everybody would show nothing here."""
  rng = np.random.default_rng(0)
  included = rng.random(2000) < 0.5
  scores = rng.normal(size=2000)
  scores[:60] += np.where(included[:60], 100, -100)
  found = audit_one_run(scores, included, delta=1e-6)
  assert found.guessed_in + found.guessed_out < 500
  everybody = audit_one_run(scores, included, delta=1e-6, guesses=(1000, 1000))
  assert found.epsilon > 0.3 > everybody.epsilon


def test_each_of_five_ways_has_a_fifth_of_the_level():
  rng = np.random.default_rng(6)
  included = rng.random(1000) < 0.5
  scores = rng.normal(size=1000) + 1.5 * included
  found = audit_one_run(scores, included, delta=1e-5, confidence=0.9)
  ways = [
    audit_one_run(scores, included, delta=1e-5, confidence=0.98, guesses=(each, each)).epsilon
    for each in (500, 125, 31, 7, 1)
  ]
  assert found.epsilon == pytest.approx(max(ways))
  assert found.confidence == 0.9


def test_scores_by_chance_show_nothing():
  rng = np.random.default_rng(1)
  found = audit_one_run(
    rng.normal(size=1000), rng.random(1000) < 0.5, delta=1e-5, confidence=1 - 1e-7
  )
  assert found.epsilon == 0.0


def test_a_perfect_attack_is_limited_by_the_number_of_canaries():
  """All m right: p^m = level."""
  included = np.arange(1000) % 2 == 0
  found = audit_one_run(included.astype(float), included, delta=0.0, guesses=(500, 500))
  p = 0.05 ** (1 / 1000)
  assert found.epsilon == pytest.approx(math.log(p / (1 - p)), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("separation", [0.3, 1.0, 2.5])
def test_the_plan_is_nearly_the_best_choice_of_guesses(separation):
  """Against the mean bound of every choice, simulated."""
  m, delta = 2000, 1e-5
  planned = plan_guesses(m, separation=separation, delta=delta)
  rng = np.random.default_rng(2)
  runs = []
  for _ in range(20):
    included = rng.random(m) < 0.5
    runs.append((rng.normal(size=m) + separation * included, included))

  def mean(guesses):
    return np.mean([audit_one_run(*run, delta=delta, guesses=guesses).epsilon for run in runs])

  others = [mean((k, k)) for k in (1000, 500, 250, 125, 60, 30)]
  assert planned[0] == planned[1]
  assert mean(planned) > 0.85 * max(others)


def test_a_plan_without_a_signal_is_still_a_plan():
  each, out = plan_guesses(100, separation=0.0, delta=1e-5)
  assert 1 <= each == out <= 50


GOOD = {"delta": 1e-5}
COINS = np.arange(10) % 2 == 0


@pytest.mark.parametrize(
  ("scores", "included", "settings", "told"),
  [
    (np.zeros(9), COINS, GOOD, r"shape \(9,\) and included \(10,\)"),
    (np.zeros(10), COINS.astype(int), GOOD, "included holds int64 values"),
    (np.full(10, np.nan), COINS, GOOD, "scores has NaN values"),
    (np.zeros(1), COINS[:1], GOOD, "at least 2 canaries"),
    (np.zeros(10), COINS, {"delta": 1.0}, "delta=1.0 must be in"),
    (np.zeros(10), COINS, {**GOOD, "confidence": 0.0}, "confidence=0.0 must"),
    (np.zeros(10), COINS, {**GOOD, "guesses": (6, 6)}, "between 1 and 10"),
    (np.zeros(10), COINS, {**GOOD, "guesses": (0, 0)}, "between 1 and 10"),
    (np.zeros(10), COINS, {**GOOD, "guesses": (-1, 5)}, "guesses=-1 must be"),
  ],
)
def test_what_cannot_be_audited_is_refused(scores, included, settings, told):
  with pytest.raises(checks.ArgumentError, match=told):
    audit_one_run(scores, included, **settings)
