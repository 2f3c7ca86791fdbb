"""What the thesis says about decision rules, as checks on a table."""

import itertools
from typing import Any

import numpy as np
from scipy import special

from jaxfair import fairness
from jaxfair.experiments.table import Table
from jaxfair.studies.claims import Check, difference_above, mean_above
from jaxfair.studies.protocol import Claim, Finding


def _least(table: Table) -> float:
  return float(np.nanmin(table["epsilon"]))


def _near(table: Table) -> Finding:
  """Errors fall with the distance to the thresholds, at every epsilon."""
  statistic = "largest rank correlation of error and distance"
  if "rank_correlation" not in table:
    return Finding(statistic, why="errors were not run")
  rows = table.where(row="summary")
  found = [
    fairness.seed_interval(part["rank_correlation"])
    for _, part in rows.split("places", "epsilon")
  ]
  worst = max(found, key=lambda one: float(one.estimate))
  low, high = float(worst.low), float(worst.high)
  value = float(worst.estimate)
  return Finding(statistic, value, low, high, bool(value < 0 and not high >= 0))


def _smaller_is_worse(value: str) -> Check:
  def check(table: Table) -> Finding:
    statistic = f"{value}: least difference between neighbours in size"
    if value not in table:
      return Finding(statistic, why="ratios were not run")
    rows = table.where(row="ratio", epsilon=_least(table))
    names = rows.unique("county")
    gaps = [
      difference_above(
        value, first={"county": small}, second={"county": large}
      )(rows)
      for small, large in itertools.pairwise(names)
    ]
    worst = min(gaps, key=lambda one: one.low)
    holds = all(gap.holds for gap in gaps)
    return Finding(statistic, worst.value, worst.low, worst.high, holds)

  return check


def _closed_form(table: Table) -> Finding:
  """The simulated bias of a ratio is the closed form."""
  statistic = "largest |simulated - exact| over its standard error"
  if "ratio_bias" not in table:
    return Finding(statistic, why="ratios were not run")
  rows = table.where(row="ratio")
  seeds = len(rows.unique("seed"))
  if seeds < 2:
    return Finding(statistic, why="a standard error needs at least 2 seeds")
  scores = []
  for _, part in rows.split("epsilon", "county"):
    away = part["ratio_bias"] - part["exact_bias"]
    scores.append(abs(away.mean()) / (away.std(ddof=1) / len(away) ** 0.5))
  top = float(max(scores))
  # Student's quantile at 95% for all comparisons at once.
  most = special.stdtrit(seeds - 1, 1 - 0.025 / len(scores))
  return Finding(statistic, top, float(min(scores)), top, bool(top < most))


def _worst_truth(operator: str, pair: str) -> Check:
  def check(table: Table) -> Finding:
    statistic = f"error at {pair} less the next worst, operator {operator}"
    if "truth" not in table or "operator" not in table:
      return Finding(statistic, why="errors were not run")
    where: dict[str, Any] = {
      "row": "truth", "operator": operator, "places": "synthetic",
      "epsilon": _least(table),
    }  # fmt: skip
    rows = table.where(**where)
    others = [other for other in rows.unique("truth") if other != pair]
    if not others or not len(rows.where(truth=pair)):
      return Finding(statistic, why="the made-up counties were not run")
    found = [
      difference_above(
        "group_error", first={"truth": pair}, second={"truth": other}
      )(rows)
      for other in others
    ]
    if any(one.holds is None for one in found):
      return found[0]
    worst = min(found, key=lambda one: one.low)
    holds = all(one.holds for one in found)
    return Finding(statistic, worst.value, worst.low, worst.high, holds)

  return check


def _fairer(learner: str, value: str) -> Check:
  """Averaged over bins, a proxy has a smaller alpha than the rule."""

  def check(table: Table) -> Finding:
    if value not in table:
      return Finding("mean alpha within bins", why="proxies were not run")
    where = {"row": "bin", "places": "synthetic", "epsilon": _least(table)}
    return difference_above(
      value,
      first=where | {"method": "the rule"},
      second=where | {"method": learner},
    )(table)

  return check


def _or_is_worse(table: Table) -> Finding:
  if "or_minus_worse" not in table:
    return Finding("or_minus_worse", why="errors were not run")
  where = {"row": "summary", "places": "synthetic", "epsilon": _least(table)}
  return mean_above("or_minus_worse", where=where)(table)


RULES = (
  Claim(
    "thresholds",
    "Errors peak next to the thresholds",
    _near,
    "Fig. 2.3",
  ),
  Claim(
    "ratio bias",
    "Of nearly equal ratios the one with smaller counts is more biased",
    _smaller_is_worse("exact_bias"),
    "Fig. 2.4, left",
  ),
  Claim(
    "ratio spread",
    "and spreads more",
    _smaller_is_worse("ratio_spread"),
    "Fig. 2.4, middle",
  ),
  Claim(
    "closed form",
    "Simulated biases of floored ratios are the closed form",
    _closed_form,
  ),
  Claim(
    "or",
    "Where neither holds, the disjunction of two predicates errs more than "
    "either",
    _or_is_worse,
    "Fig. 2.4, right",
  ),
  Claim(
    "and at TT",
    "A conjunction errs most where both hold",
    _worst_truth("and", "TT"),
    "Fig. 2.9, left",
  ),
  Claim(
    "or at FF",
    "A disjunction errs most where neither holds",
    _worst_truth("or", "FF"),
    "Fig. 2.9, right",
  ),
  *(
    Claim(
      f"{learner}, {value}",
      f"A piece-wise {learner} is fairer than the rule within bins, {told}",
      _fairer(learner, value),
      "Fig. 2.10",
    )
    for learner in ("linear regression", "linear SVM")
    for value, told in (
      ("bin_alpha", "both measured against the rule on true counts"),
      ("own_alpha", "each measured against itself on true counts"),
    )
  ),
)
