"""From limits to settings: which satisfy them, and which of those to take."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from jaxfair import checks
from jaxfair.frontier._dominance import non_dominated
from jaxfair.frontier._objectives import Objective, Points, bounds, costs

Rule: TypeAlias = Literal["fair", "private", "accurate"]
# The objective with a hard limit, then the one that is made best.
RULES: dict[Rule, tuple[str, str]] = {
  "fair": ("gap", "accuracy"),
  "private": ("epsilon", "accuracy"),
  "accurate": ("accuracy", "epsilon"),
}


class Specified(NamedTuple):
  """The settings that limits leave.

  Attributes:
    satisfied: [n] whether a setting keeps all limits.
    on: [n] whether it does, and no other that does dominates it.
  """

  satisfied: np.ndarray
  on: np.ndarray


def specify(
  points: Points, limits: Mapping[str, float], *, confidence: float | None = None
) -> Specified:
  """The settings that satisfy given limits, and the frontier among them.

  Args:
    points: settings and seeds.
    limits: objective -> worst value allowed; an upper limit where low values
      are wanted, else a lower one. Empty for none.
    confidence: a setting satisfies a limit if its mean over seeds does; with
      a confidence such as 0.95, only if the one-sided Student bound does.

  Assumptions:
    With a confidence, a given setting that violates a limit passes with at
    most the probability 1 - confidence, however many limits there are: it
    must pass all of them. The best of many that pass has a selection
    bias; measure it again on fresh seeds before you report it.
  """
  worst = _worst_case(points, confidence)
  satisfied = np.ones(len(worst), bool)
  for name, limit in limits.items():
    column = points.column(name)
    checks.require(not np.isnan(limit), f"limit {name} is NaN; pass a number")
    _check_reachable(points.objectives[column], limit)
    sign = -1.0 if points.better[column] == "high" else 1.0
    satisfied &= worst[:, column] <= sign * limit
  on = np.zeros(len(worst), bool)
  on[satisfied] = non_dominated(points.means[satisfied], points.better).on
  return Specified(satisfied, on)


def _check_reachable(objective: Objective, limit: float) -> None:
  """Raises for a limit that no value can keep, such as an accuracy of 85."""
  name, least, most = objective.name, objective.least, objective.most
  wanted_high = objective.better == "high"
  if limit <= most if wanted_high else limit >= least:
    return
  share = most == 1.0  # what people may write in percent
  if wanted_high:
    bound = f"above {most:g}"
    remedy = "write 85% as 0.85" if share else f"pass at most {most:g}"
  else:
    bound = f"below {least:g}"
    remedy = "write 5% as 0.05" if share else f"pass a number above {least:g}"
  raise checks.ArgumentError(
    f"limit {name}={limit:g} cannot be met: {name} is never {bound}; {remedy}"
  )


def best(points: Points, among: np.ndarray, *, objective: str = "accuracy") -> int | None:
  """The setting with the best mean of an objective.

  Args:
    points: settings and seeds.
    among: [n] which settings to look at.
    objective: the objective to optimize. Ties are broken by the other
      objectives, in their order.

  Returns:
    Its number, or None if there is none.
  """
  candidates = np.flatnonzero(among)
  if not len(candidates):
    return None
  means = costs(points.means[candidates], points.better)
  column = points.column(objective)
  others = [j for j in range(means.shape[1]) if j != column]
  # The last key sorts first; lexsort keeps the order of equals.
  keys = [means[:, j] for j in (column, *others)][::-1]
  return int(candidates[np.lexsort(keys)[0]])


def select(
  points: Points, rule: Rule, *, limit: float | None = None, confidence: float | None = None
) -> int | None:
  """The setting that best fits a preference: "fair", "private" or "accurate".

  The preferred objective gets a hard limit; another objective is optimized among
  what is left: accuracy for "fair" (limit on the gap) and "private" (limit on
  epsilon), epsilon for "accurate" (limit on accuracy).

  Args:
    points: settings and seeds, with those objectives.
    rule: the preference.
    limit: on its objective; the best mean that is reached if None.
    confidence: see `specify`; only with a limit.

  Returns:
    Its number, or None if no setting keeps the limit.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier, Table 1. It names the
    constrained objective and does not say which other one is made best.
  """
  checks.one_of("rule", rule, RULES)
  constrained, improved = RULES[rule]
  checks.require(
    limit is not None or confidence is None,
    f"confidence={confidence} needs a limit that may be missed; pass limit",
  )
  if limit is None:
    column = points.column(constrained)
    means = costs(points.means, points.better)[:, column]
    kept = means == means.min(initial=np.inf)
  else:
    kept = specify(points, {constrained: limit}, confidence=confidence).satisfied
  return best(points, kept, objective=improved)


def _worst_case(points: Points, confidence: float | None) -> np.ndarray:
  """[n, d] costs that are compared with the limits."""
  if confidence is None:
    return costs(points.means, points.better)
  checks.number("confidence", confidence, low=0.5, high=1.0, open_low=True, open_high=True)
  checks.require(
    points.values.shape[1] > 1,
    f"confidence={confidence} needs at least 2 seeds; run more, or leave it out",
  )
  low, high = bounds(points, level=2 * confidence - 1)
  return np.maximum(costs(low, points.better), costs(high, points.better))
