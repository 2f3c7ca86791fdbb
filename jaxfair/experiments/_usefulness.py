"""Which settings of a run are no better than a constant.

A model that gives everybody the same class has no gap between groups. A small gap means something
only if the model has learned anything.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxfair import fairness
from jaxfair.experiments._claims import CannotTellError, Where, narrowed
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._table import Table
from jaxfair.fairness import _intervals

STRATA = ("data", "network")  # columns that tell models apart which learn a task each
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


def judge(
  table: Table, columns: Sequence[str], plain: Mapping[str, Any], *, by_share: bool = True
) -> list[Judged]:
  """Compares every setting with the majority class.

  gain = balanced accuracy - 1 / C, paired: both are of the same people

  A setting is useless if the interval of its gain does not lie above 0, or if it gives a class
  other than its most frequent one to less than a quarter of the people to whom the plain model
  does (without a plain model: who have one), and to less than 5% of all.

  Args:
    table: rows of `experiments.group_table`, or others with its columns for everyone.
    columns: which tell the settings apart.
    plain: what the rows of the plain model have.
    by_share: whether the share of the most frequent class counts.

  Returns:
    One for each setting, in order; empty if the table lacks the columns.
  """
  also = ("majority_accuracy", "one_class_share", *columns, *plain)
  if any(name not in table for name in (*NEEDED, *also)):
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
    _judged(dict(zip(columns, values, strict=True)), own, usual if by_share else 1.0)
    for values, own in (rows.split(*columns) if columns else [((), rows)])
  ]


class Level(NamedTuple):
  """How well a reference model has learnt its task; means over seeds.

  Attributes:
    names: the data set and the network, as far as there are columns for them.
    accuracy: share of people classified correctly; NaN if the table has none.
    majority_accuracy: that of the majority class.
    balanced_accuracy: mean over classes of the share that is found.
    gain: balanced accuracy minus that of a constant, with its 95% interval.
  """

  names: tuple[str, ...]
  accuracy: float
  majority_accuracy: float
  balanced_accuracy: float
  gain: _intervals.Interval

  @property
  def learnt(self) -> bool:
    """Whether the interval of the gain lies above 0."""
    return bool(self.gain.low > 0)

  @property
  def told(self) -> str:
    """One sentence."""
    name, chance = " ".join(self.names), self.balanced_accuracy - float(self.gain.estimate)
    return (
      f"{name + ': ' if name else ''}the reference model has accuracy {self.accuracy:.3f} "
      f"(majority class {self.majority_accuracy:.3f}), balanced accuracy "
      f"{self.balanced_accuracy:.3f} (constant {chance:.3f}, gain {_told(self.gain)})"
    )


def levels(table: Table, reference: Where) -> list[Level]:
  """The reference models of each data set and network beside the majority class.

  A claim about a model counts only if the model without privacy (or before pruning, or without
  noise in the labels) is better than a constant. A private model that fails is a finding.

  Args:
    table: rows; without the columns `NEEDED` there is nothing to judge.
    reference: narrows the table to the models that must have learnt; see `narrowed`.
  """
  if any(name not in table for name in NEEDED):
    return []
  try:
    rows = narrowed(table, reference)
  except CannotTellError:
    return []
  if "group" in rows and EVERYONE in rows.unique("group"):
    rows = rows.where(group=EVERYONE)
  rows = rows.keep(np.isfinite(rows["balanced_accuracy"]))
  if not len(rows):
    return []
  columns = strata(table)
  return [
    Level(
      tuple(map(str, names)),
      _mean(own, "accuracy"),
      _mean(own, "majority_accuracy"),
      _mean(own, "balanced_accuracy"),
      _gain(own),
    )
    for names, own in (rows.split(*columns) if columns else [((), rows)])
  ]


def strata(table: Table) -> list[str]:
  """The columns of a table that tell learning tasks apart."""
  return [name for name in STRATA if name in table]


def majority_accuracy(table: Table) -> float:
  """Mean share of the most frequent class among test people; NaN if the table has none."""
  if "majority_accuracy" not in table or np.isnan(table["majority_accuracy"]).all():
    return math.nan
  return float(np.nanmean(table["majority_accuracy"]))


def _judged(setting: dict[str, Any], rows: Table, usual: float) -> Judged:
  gain = _gain(rows)
  share, why = _share(rows), ""
  if not gain.low > 0:
    why = (
      "is not better than the majority class: balanced accuracy minus that of a constant is "
      f"{_told(gain)}"
    )
  elif share > NEARLY_ALL and 1 - share < (1 - usual) / 4:
    why = (
      f"predicts one class for {100 * share:.1f}% of the people, compared with {100 * usual:.1f}%"
    )
  return Judged(setting, gain, share, why)


def _gain(rows: Table) -> _intervals.Interval:
  """Balanced accuracy minus that of the majority class; a seed's rows are averaged first."""
  seeds = [own for _, own in rows.split("seed")] if "seed" in rows else [rows]
  each = [np.mean(own["balanced_accuracy"] - own["majority_balanced_accuracy"]) for own in seeds]
  if len(seeds) >= FEW_SEEDS and np.ptp(each) > 0:  # one model for all seeds has people only
    return fairness.seed_interval(each)
  half = 1.96 * math.sqrt(float(np.mean(rows["balanced_accuracy_se"] ** 2)))
  mean = float(np.mean(each))
  return _intervals.Interval(mean, mean - half, mean + half, 0.95, 0)


def _told(gain: _intervals.Interval) -> str:
  return f"{float(gain.estimate):+.3f} [{float(gain.low):+.3f}, {float(gain.high):+.3f}]"


def _mean(rows: Table, column: str) -> float:
  return float(np.nanmean(rows[column])) if column in rows else math.nan


def _share(rows: Table) -> float:
  return float(np.mean(rows["one_class_share"])) if len(rows) else math.nan
