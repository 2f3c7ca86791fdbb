"""What is claimed of the frontier, and the best setting of each budget."""

from collections.abc import Callable

import numpy as np

from jaxfair import experiments as ex
from jaxfair import fairness, frontier, pate
from jaxfair.experiments import Claim, Table
from jaxfair.experiments._frontiers import Comparison, compare_points, settings_cube

PLAIN, CONFIDENT = pate.GnMax.name, pate.ConfidentGnMax.name
NAMES = ("method", "teachers", "epsilon", "sigma", "threshold")
SOURCE = "FairPATE, RQ3"
ALIKE, LITTLE = 0.9, 0.02  # a correlation; a loss of two points of accuracy


def chosen(table: Table) -> Table:
  """Adds the accuracy of each budget's best setting, chosen on other seeds.

  Chosen on the seed that measures it, the best of many is too good. One row
  of each data set, ensemble, epsilon and seed has the value; NaN elsewhere.
  """
  value = np.full(len(table), np.nan)
  settings = zip(table["sigma"], table["threshold"], strict=True)
  placed = table.plus(place=np.arange(len(table)), setting=[f"{s} {t}" for s, t in settings])
  for _, rows in placed.split("data", "teachers", "epsilon"):
    matrix = rows.pivot("setting", "seed", "accuracy")
    if matrix.shape[1] < 2 or np.isnan(matrix).all():
      continue
    # A seed without a label counts against a setting, whatever the others do.
    known = np.nan_to_num(matrix, nan=-matrix.shape[1])
    best = (known.sum(axis=1, keepdims=True) - known).argmax(axis=0)
    first = rows.pivot("setting", "seed", "place")[0].astype(int)
    value[first] = matrix[best, np.arange(matrix.shape[1])]
  return table.plus(chosen_accuracy=value)


def _of_two_sets(told: str, pick: Callable[[Comparison], fairness.Interval | None]) -> ex.Statistic:
  """A statistic of the frontiers of the first two data sets."""

  def estimate(table: Table) -> ex.Estimate:
    sets = table.unique("data")
    if len(sets) < 2:
      raise ex.CannotTellError("the run is about one data set")
    points, settings = [], []
    for name in sets[:2]:
      places, cube = settings_cube(table.where(data=name), NAMES)
      own = frontier.points(cube, missing="drop")
      if not len(own.rows) or own.values.shape[1] < 2:
        raise ex.CannotTellError(f"too few seeds or settings of {name}")
      points.append(own)
      settings.append([tuple(places[i].items()) for i in own.rows])
    found = pick(compare_points(*points, *settings))
    if found is None:
      raise ex.CannotTellError("the sets have no settings in common")
    value, low, high = map(float, (found.estimate, found.low, found.high))
    if not np.isfinite([value, low, high]).all():
      raise ex.CannotTellError("the sets have no limits in common")
    return ex.Estimate(f"{told}, {sets[0]} and {sets[1]}", value, low, high)

  return ex.Statistic(estimate)


TEST_GAIN = ex.difference("accuracy", {"method": CONFIDENT}, {"method": PLAIN})
CORRELATION = _of_two_sets(
  "correlation of the surfaces of best accuracy", lambda found: found.shapes.correlation
)
REGRET = _of_two_sets(
  "accuracy that settings chosen on the first give away on the second",
  lambda found: found.transfer and found.transfer.regret,
)

CLAIMS = (
  Claim(
    "epsilon buys accuracy",
    "Students of larger budgets are more accurate",
    (ex.trend("accuracy", "epsilon") > 0).in_each("data"),
  ),
  Claim(
    "the test pays",
    "At the same budgets and noise, students of queries on which teachers agree are more "
    "accurate than those of all queries in turn",
    (TEST_GAIN > 0).in_each("data"),
  ),
  Claim(
    "epsilon widens the gap",
    "Students of larger budgets have wider gaps between groups",
    (ex.trend("gap", "epsilon") > 0).in_each("data"),
  ),
  Claim(
    "same shape",
    "Frontiers of two data sets for one task have very similar shapes: their surfaces correlate "
    f"above {ALIKE}",
    CORRELATION > ALIKE,
    SOURCE,
  ),
  Claim(
    "specified elsewhere",
    "Settings can be specified on another data set of the kind: they give away less than "
    f"{LITTLE} of accuracy",
    REGRET < LITTLE,
    SOURCE,
  ),
)
