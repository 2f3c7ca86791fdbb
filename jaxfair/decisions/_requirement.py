"""The smallest epsilon at which no place loses more than is tolerated."""

import math
from typing import NamedTuple

import jax
import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.decisions._ways import NonPrivateCase, Way, outcomes
from jaxfair.types import Key

CONFIDENCE = 0.99
ATTEMPTS = 10  # confirmations, each at 1 - (1 - CONFIDENCE) / ATTEMPTS
LEAST, MOST, STEP = 1e-4, 1e4, 4.0
CLOSE = 1.02  # ratio of epsilons at which the search ends
GRID = 8  # epsilons at which the chance is checked to rise


class NonPrivateRequirement(NamedTuple):
  """An epsilon that meets a requirement on these counts.

  Attributes:
    epsilon: found, rounded up to three digits.
    chance: the share of fresh draws in which no place lost more.
    low: lower confidence bound of that chance; at least what was required.
    draws: fresh draws.
    rises: whether the chance rose with epsilon wherever it was checked, up to chance.
    curve: (epsilon, chance) where it was checked.
  """

  epsilon: float
  chance: float
  low: float
  draws: int
  rises: bool
  curve: tuple[tuple[float, float], ...]


def find_epsilon(
  case: NonPrivateCase, way: str, *, at_most: float, probability: float, draws: int, key: Key
) -> NonPrivateRequirement:
  """Finds the least epsilon with Pr[max_i (truth_i - outcome_i) <= at_most] >= probability.

  All places are considered at once. The search bisects log epsilon with the same draws of noise
  at every epsilon. What it finds is confirmed with fresh draws, as a search that looks at draws
  favors them: the lower Clopper-Pearson bound of the chance must reach `probability`. Up to
  `ATTEMPTS` epsilons, each 5% larger, are tried, each at level (1 - CONFIDENCE) / ATTEMPTS, so the
  answer holds with CONFIDENCE. The chance need not rise with epsilon for every rule: `rises` says
  whether it does on a grid around the answer.

  Args:
    case: a rule on true counts.
    way: name of the way that is used.
    at_most: tolerated loss, in the units of the rule; for decisions 0 means that no place loses
      what it is due.
    probability: required chance.
    draws: releases that are simulated at each epsilon.
    key: for all draws.

  Privacy:
    None: the answer depends on the true counts. Use counts that are public, such as last year's.
  """
  checks.non_negative("at_most", at_most, "a loss is 0 or above")
  checks.number("probability", probability, low=0, high=1, open_low=True, open_high=True)
  level = (1 - CONFIDENCE) / ATTEMPTS
  needed = math.ceil(math.log(level) / math.log(probability))
  checks.integer(
    "draws", draws, low=max(needed, 100), remedy=f"probability={probability:g} needs that many"
  )
  key_search, key_confirm = jax.random.split(key)
  seen: dict[float, int] = {}

  def met(epsilon: float) -> bool:
    seen[epsilon] = kept(case, case.way(way, epsilon), at_most, draws, key_search)
    return chance_bound(seen[epsilon], draws, level) >= probability

  low = high = 1.0
  if met(1.0):
    while low > LEAST and met(low / STEP):
      low /= STEP
    low, high = low / STEP, low
    checks.require(
      high > LEAST, f"at_most={at_most:g} is met at any epsilon; require a smaller loss"
    )
  else:
    while not met(high * STEP):
      high *= STEP
      checks.require(
        high < MOST,
        f"at_most={at_most:g} is not met by any epsilon up to {MOST:g}; allow a larger loss",
      )
    low, high = high, high * STEP
  while high / low > CLOSE:
    middle = math.sqrt(low * high)
    low, high = (low, middle) if met(middle) else (middle, high)

  for attempt in range(ATTEMPTS):
    epsilon = _rounded_up(high * 1.05**attempt)
    own = jax.random.fold_in(key_confirm, attempt)
    count = kept(case, case.way(way, epsilon), at_most, draws, own)
    bound = chance_bound(count, draws, level)
    if bound >= probability:
      for other in np.geomspace(epsilon / 8, epsilon * 8, GRID):
        met(float(other))
      curve = tuple((e, seen[e] / draws) for e in sorted(seen))
      return NonPrivateRequirement(
        epsilon, count / draws, bound, draws, _rises(curve, draws), curve
      )
  raise checks.ArgumentError(
    f"draws={draws} are too few to find the epsilon for probability={probability:g}; use more"
  )


def kept(case: NonPrivateCase, way: Way, at_most: float, draws: int, key: Key) -> int:
  """In how many of the draws no place loses more than `at_most`."""
  truth = case.truth.astype(np.float64)
  allowed = at_most + 1e-12 * np.abs(truth).max()  # rounding is not a loss
  return sum(
    int(np.sum((truth - found[0]).max(axis=1) <= allowed))
    for found in outcomes(case, way, draws=draws, key=key)
  )


def chance_bound(count: int, draws: int, level: float) -> float:
  """Lower Clopper-Pearson bound of a chance, wrong with probability `level` at most."""
  return float(special.betaincinv(count, draws - count + 1, level)) if count else 0.0


def _rises(curve: tuple[tuple[float, float], ...], draws: int) -> bool:
  """No chance is below an earlier one by more than four standard errors of their difference."""
  chances = np.array([chance for _, chance in curve])
  best = np.maximum.accumulate(chances)
  spread = np.sqrt((best * (1 - best) + chances * (1 - chances) + 1 / draws) / draws)
  return bool(np.all(best - chances <= 4 * spread))


def _rounded_up(value: float) -> float:
  unit = 10.0 ** (math.floor(math.log10(value)) - 2)
  return float(f"{math.ceil(value / unit - 1e-9) * unit:.3g}")
