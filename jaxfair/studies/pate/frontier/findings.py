"""What is claimed of the frontier, and the best setting of each budget."""

from collections.abc import Callable

import numpy as np

from jaxfair import fairness, frontier
from jaxfair.experiments.frontiers import (
  Comparison,
  compare_points,
  settings_cube,
)
from jaxfair.experiments.table import Table
from jaxfair.studies.claims import Check, difference_above, in_each, trend
from jaxfair.studies.pate.frontier.settings import CONFIDENT, PLAIN, Setting
from jaxfair.studies.protocol import Claim, Finding

NAMES = ("method", "teachers", *Setting._fields)
SOURCE = "FairPATE, RQ3"
ALIKE, LITTLE = 0.9, 0.02  # a correlation; a loss of two points of accuracy


def chosen(table: Table) -> Table:
  """Adds the accuracy of each budget's best setting, chosen on other seeds.

  Chosen on the seed that measures it, the best of many is too good. One row
  of each data set, ensemble, epsilon and seed has the value; NaN elsewhere.
  """
  if "epsilon" not in table or "accuracy" not in table:
    return table
  value = np.full(len(table), np.nan)
  place = np.arange(len(table), dtype=float)
  for _, rows in table.plus(place=place).split("data", "teachers", "epsilon"):
    accuracy = rows.plus(
      setting=[f"{s} {t}" for s, t in
               zip(rows["sigma"], rows["threshold"], strict=True)]
    )  # fmt: skip
    matrix = accuracy.pivot("setting", "seed", "accuracy")
    if matrix.shape[1] < 2 or np.isnan(matrix).all(axis=1).all():
      continue
    # A seed without a label counts against a setting, whatever the others do.
    known = np.nan_to_num(matrix, nan=-matrix.shape[1])
    others = known.sum(axis=1, keepdims=True) - known
    best = others.argmax(axis=0)
    first = accuracy.pivot("setting", "seed", "place")[0].astype(int)
    value[first] = matrix[best, np.arange(matrix.shape[1])]
  return table.plus(chosen_accuracy=value)


def _two_sets(
  words: str,
  pick: Callable[[Comparison], fairness.Interval | None],
  *,
  above: float = -np.inf,
  below: float = np.inf,
) -> Check:
  """A statistic of the frontiers of the first two data sets, and its side."""

  def check(table: Table) -> Finding:
    names = table.unique("data") if "data" in table else []
    if len(names) < 2:
      return Finding(words, why="the run is about one data set")
    statistic = f"{words}, {names[0]} and {names[1]}"
    points, told = [], []
    for name in names[:2]:
      places, cube = settings_cube(table.where(data=name), NAMES)
      own = frontier.points(cube, missing="drop")
      if not len(own.rows) or own.values.shape[1] < 2:
        return Finding(statistic, why=f"too few seeds or settings of {name}")
      points.append(own)
      told.append([tuple(places[i].items()) for i in own.rows])
    found = pick(compare_points(points[0], points[1], *told))
    if found is None:
      return Finding(statistic, why="the sets have no settings in common")
    value, low, high = map(float, (found.estimate, found.low, found.high))
    if not np.isfinite([value, low, high]).all():
      return Finding(statistic, why="no limits that both can be asked about")
    return Finding(statistic, value, low, high, low > above and high < below)

  return check


CLAIMS = (
  Claim(
    "epsilon buys accuracy",
    "Students of larger budgets are more accurate",
    in_each("data", trend("accuracy", "epsilon", rises=True)),
  ),
  Claim(
    "the test pays",
    "At the same budgets and noise, students of queries on which teachers "
    "agree are more accurate than those of all queries in turn",
    in_each(
      "data",
      difference_above(
        "accuracy", first={"method": CONFIDENT}, second={"method": PLAIN}
      ),
    ),
  ),
  Claim(
    "epsilon widens the gap",
    "Students of larger budgets have wider gaps between groups",
    in_each("data", trend("gap", "epsilon", rises=True)),
  ),
  Claim(
    "same shape",
    "Frontiers of two data sets for one task have very similar shapes: their "
    f"surfaces correlate above {ALIKE}",
    _two_sets(
      "correlation of the surfaces of best accuracy",
      lambda found: found.shapes.correlation,
      above=ALIKE,
    ),
    SOURCE,
  ),
  Claim(
    "specified elsewhere",
    "Settings can be specified on another data set of the kind: they give "
    f"away less than {LITTLE} of accuracy",
    _two_sets(
      "accuracy that settings chosen on the first give away on the second",
      lambda found: found.transfer and found.transfer.regret,
      below=LITTLE,
    ),
    SOURCE,
  ),
)
