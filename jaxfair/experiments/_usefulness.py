"""Which settings of a run are no better than a constant.

A model that gives everybody the same class has no gap between groups. A small gap means something
only if the model has learned anything.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxfair import fairness
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._table import Table
from jaxfair.fairness import _intervals

NEEDED = ("balanced_accuracy", "majority_balanced_accuracy", "balanced_accuracy_se")
FEW_SEEDS = 5  # below, the interval is one over test people
NEARLY_ALL = 0.95
CONSTANT = "majority_class"


class Judged(NamedTuple):
  """One setting beside the majority class.

  Attributes:
    setting: column -> value.
    gain: balanced accuracy minus that of the majority class, with its 95% interval.
    one_class_share: largest share of people who are given the same class.
    why: what shows that the setting is useless; empty if it is not.
  """

  setting: dict[str, Any]
  gain: _intervals.Interval
  one_class_share: float
  why: str


def judge(table: Table, columns: Sequence[str], plain: Mapping[str, Any]) -> list[Judged]:
  """Compares every setting with the majority class.

  gain = balanced accuracy - 1 / C, paired: both are of the same people

  A setting is useless if the interval of its gain does not lie above 0, or if it gives a class
  other than its most frequent one to less than a quarter of the people to whom the plain model
  does (without a plain model: who have one), and to less than 5% of all.

  Args:
    table: rows of `experiments.group_table`, or others with its columns for everyone.
    columns: which tell the settings apart.
    plain: what the rows of the plain model have.

  Returns:
    One for each setting, in order; empty if the table lacks the columns.
  """
  if any(name not in table for name in (*NEEDED, *columns, *plain)):
    return []
  rows = table.where(group=EVERYONE) if "group" in table else table
  rows = rows.keep(np.isfinite(rows["balanced_accuracy"]))
  if "method" in rows:
    rows = rows.keep(rows["method"] != CONSTANT)  # the baseline itself
  if not len(rows):
    return []
  usual = _share(rows.where(**plain)) if plain else math.nan
  if math.isnan(usual):
    usual = float(np.mean(rows["majority_accuracy"]))
  return [
    _judged(dict(zip(columns, values, strict=True)), own, usual)
    for values, own in (rows.split(*columns) if columns else [((), rows)])
  ]


def majority_accuracy(table: Table) -> float:
  """Mean share of the most frequent class among test people; NaN if the table has none."""
  if "majority_accuracy" not in table or np.isnan(table["majority_accuracy"]).all():
    return math.nan
  return float(np.nanmean(table["majority_accuracy"]))


def plain_accuracy(table: Table, plain: Mapping[str, Any]) -> float:
  """Mean accuracy of the plain model for everyone; NaN if the table has no such rows."""
  if not plain or any(name not in table for name in (*plain, "accuracy")):
    return math.nan
  rows = table.where(**plain)
  rows = rows.where(group=EVERYONE) if "group" in rows else rows
  return float(np.nanmean(rows["accuracy"])) if len(rows) else math.nan


def _judged(setting: dict[str, Any], rows: Table, usual: float) -> Judged:
  gains = rows["balanced_accuracy"] - rows["majority_balanced_accuracy"]
  if len(gains) >= FEW_SEEDS:
    gain = fairness.seed_interval(gains)
  else:
    half = 1.96 * math.sqrt(float(np.mean(rows["balanced_accuracy_se"] ** 2)))
    mean = float(gains.mean())
    gain = _intervals.Interval(mean, mean - half, mean + half, 0.95, 0)
  share, why = _share(rows), ""
  if not gain.low > 0:
    why = (
      "is not better than the majority class: balanced accuracy minus that of a constant is "
      f"{float(gain.estimate):+.3f} [{float(gain.low):+.3f}, {float(gain.high):+.3f}]"
    )
  elif share > NEARLY_ALL and 1 - share < (1 - usual) / 4:
    why = f"gives one class to {100 * share:.1f}% of the people, beside {100 * usual:.1f}%"
  return Judged(setting, gain, share, why)


def _share(rows: Table) -> float:
  return float(np.mean(rows["one_class_share"])) if len(rows) else math.nan
