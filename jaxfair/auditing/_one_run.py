"""Audit one training: guess which of many canaries were in it.

Each of m canaries takes part by the flip of a fair coin. From what the training
released, an attacker guesses the coins of some canaries and abstains on the
others. Of r guesses about an epsilon-DP training no more are right than of r
tosses of a coin that shows heads with probability e^epsilon / (1 + e^epsilon).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from jaxfair import checks
from jaxfair.types import ArrayLike, PerPersonLike

# How many ways to abstain are tried if none is planned, each with a quarter of
# the guesses of the one before, and its share of the level.
WAYS = 5
MAX_EPSILON = 50.0


class OneRunBound(NamedTuple):
  """What the canaries of one run showed: epsilon is at least this much.

  Attributes:
    epsilon: the lower bound; 0 says nothing.
    delta: the delta it goes with.
    confidence: probability with which the procedure gives a true bound.
    num_canaries: m.
    guessed_in: number of canaries that were guessed to have taken part.
    guessed_out: number of canaries that were guessed not to have.
    correct: number of those guesses that were right.
  """

  epsilon: float
  delta: float
  confidence: float
  num_canaries: int
  guessed_in: int
  guessed_out: int
  correct: int


def audit_one_run(
  scores: PerPersonLike,
  included: ArrayLike,
  *,
  delta: float,
  confidence: float = 0.95,
  guesses: tuple[int, int] | None = None,
) -> OneRunBound:
  """Bounds epsilon from below by the canaries of a single training.

  The canaries with the highest scores are guessed to have taken part, those
  with the lowest not to have; for the others no guess is made.

  Args:
    scores: [m] numbers computed from what was released and nothing else, the
      higher the likelier the canary took part.
    included: [m] booleans: each canary's own fair coin, independent of
      everything else.
    delta: delta of the claim that is audited.
    confidence: confidence level of the bound.
    guesses: how many are guessed in and out, fixed before the scores were
      seen; `plan_guesses` proposes numbers. None tries five ways, each at a
      fifth of the level, and reports the best.

  Returns:
    The bound.

  Assumptions:
    Neighbors are trainings with and without one canary: adding or removing
    it, or replacing it by an empty record, whichever the coin does.

  Reference:
    Steinke, Nasr & Jagielski (2023), Theorem 5.2.
  """
  checks.number(
    "delta",
    delta,
    low=0.0,
    high=1.0,
    open_high=True,
    remedy="pass the delta of the claim that is audited",
  )
  checks.number("confidence", confidence, low=0.0, high=1.0, open_low=True, open_high=True)
  ranked = _ranked(scores, included)
  m = len(ranked)
  ways = _ways(m) if guesses is None else [guesses]
  alpha = (1 - confidence) / len(ways)
  found = []
  for guessed_in, guessed_out in ways:
    _check_guesses(guessed_in, guessed_out, m)
    correct = int(ranked[:guessed_in].sum())
    correct += int(guessed_out - ranked[m - guessed_out :].sum())
    epsilon = _largest_epsilon(m, guessed_in + guessed_out, correct, delta, alpha)
    found.append(OneRunBound(epsilon, delta, confidence, m, guessed_in, guessed_out, correct))
  return max(found, key=lambda bound: bound.epsilon)


def one_run_p_value(
  *, num_canaries: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
  """Bounds the probability of at least `correct` right guesses if training is (epsilon, delta)-DP.

  Pr[correct >= v] <= Pr[W >= v] + 2 m delta max_i Pr[v - i <= W < v] / i,
  W ~ Binomial(r, e^epsilon / (1 + e^epsilon))

  Args:
    num_canaries: m.
    guesses: r, abstentions left out.
    correct: v.
    epsilon: epsilon of the hypothesis.
    delta: delta of the hypothesis.

  Returns:
    An upper bound on the probability, at most 1.

  Reference:
    Steinke, Nasr & Jagielski (2023), Theorem 5.2.
  """
  right = float(special.expit(epsilon))
  enough = float(stats.binom.sf(correct - 1, guesses, right))
  if delta == 0 or correct == 0:
    return enough
  missing = np.arange(1, correct + 1)
  short = np.cumsum(stats.binom.pmf(correct - missing, guesses, right))
  return min(1.0, enough + 2 * num_canaries * delta * (short / missing).max())


def plan_guesses(
  num_canaries: int, *, separation: float, delta: float, confidence: float = 0.95
) -> tuple[int, int]:
  """Plans, before any training, how many guesses give the largest expected bound.

  The plan assumes that scores are normal and that taking part moves a score by `separation`
  standard deviations. If that assumption is wrong, the bound gets weaker but stays valid.

  Args:
    num_canaries: m.
    separation: shift of a score over its standard deviation.
    delta: delta of the claim that is to be audited.
    confidence: confidence level of the bound.

  Returns:
    (how many to guess in, how many to guess out).
  """
  checks.integer("num_canaries", num_canaries, low=2)
  checks.non_negative("separation", separation)
  half = num_canaries // 2
  best, found = -1.0, half
  for each in np.unique(np.geomspace(1, half, 40).astype(int))[::-1]:
    right = _share_right(each / num_canaries, separation)
    expected = math.floor(2 * each * right)
    promised = _largest_epsilon(num_canaries, 2 * int(each), expected, delta, 1 - confidence)
    if promised > best:
      best, found = promised, int(each)
  return found, found


def _share_right(share: float, separation: float) -> float:
  """The share of canaries that took part among the top `share` of scores."""
  ends = (-40.0, 40.0 + separation)
  for _ in range(60):  # bisection for the score that cuts off the share
    middle = sum(ends) / 2
    above = (special.ndtr(-middle) + special.ndtr(separation - middle)) / 2
    ends = (middle, ends[1]) if above > share else (ends[0], middle)
  present = special.ndtr(separation - ends[0])
  return float(present / (present + special.ndtr(-ends[0])))


def _largest_epsilon(m: int, guesses: int, correct: int, delta: float, alpha: float) -> float:
  """The epsilon up to which all hypotheses are rejected."""

  def rejected(epsilon: float) -> bool:
    found = one_run_p_value(
      num_canaries=m, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta
    )
    return found <= alpha

  # In small steps: where m delta is large the p-value need not be monotone,
  # and only the first hypothesis that stands may end the search.
  low, step = 0.0, 0.1
  if not rejected(low):
    return 0.0
  while low < MAX_EPSILON and rejected(low + step):
    low += step
  high = low + step
  while high - low > 1e-6:
    middle = (low + high) / 2
    low, high = (middle, high) if rejected(middle) else (low, middle)
  return low


def _ranked(scores: PerPersonLike, included: ArrayLike) -> np.ndarray:
  """Whether each canary took part, the highest score first."""
  scores, coins = np.asarray(scores, np.float64), np.asarray(included)
  checks.require(
    scores.ndim == 1 and scores.shape == coins.shape,
    f"scores has shape {scores.shape} and included {coins.shape}; pass one of each per canary",
  )
  checks.require(
    coins.dtype == bool,
    f"included holds {coins.dtype} values; pass booleans, True for canaries that took part",
  )
  checks.require(
    len(scores) >= 2, "an audit needs at least 2 canaries, and thousands for a useful bound"
  )
  checks.require(
    not np.isnan(scores).any(),
    "scores has NaN values; did the training diverge? lower its learning_rate",
  )
  # Ties are broken by position, which knows nothing of the coins.
  return coins[np.argsort(-scores, kind="stable")]


def _ways(m: int) -> list[tuple[int, int]]:
  each = {max(1, m // 2 // 4**i) for i in range(WAYS)}
  return [(k, k) for k in sorted(each, reverse=True)]


def _check_guesses(guessed_in: int, guessed_out: int, m: int) -> None:
  for count in (guessed_in, guessed_out):
    checks.integer("guesses", count, low=0, high=m)
  checks.require(
    0 < guessed_in + guessed_out <= m,
    f"guesses={(guessed_in, guessed_out)} must be between 1 and {m} together",
  )
