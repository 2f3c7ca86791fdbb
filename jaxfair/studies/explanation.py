"""Who pays, how much, why, and what to try: one answer from the rows of a run.

The page of a run and `jaxfair explain` both tell what is found here, so they name the same group by
the same measure. A run needs rows by group with one of the `COSTS`; columns of `reasons.REASONS`
tell why.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxfair import fairness
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._reading import read_run
from jaxfair.experiments._table import Table
from jaxfair.experiments._words import named
from jaxfair.fairness import _intervals
from jaxfair.studies.advice import advise
from jaxfair.studies.method_settings import MAJORITY, PLAIN, RELEASED
from jaxfair.studies.reasons import REASONS

# Column -> its unit, and what one of it is called.
COSTS = {
  "accuracy_cost": (100.0, "points of accuracy"),
  "excess_errors": (100.0, "points of accuracy"),
  "excess_risk": (1.0, "nats of loss"),
  "loss": (1.0, "nats of loss"),
  "loss_of_money": (1.0, "dollars a year"),
}
BASELINES = (MAJORITY, PLAIN)  # protect nothing, so privacy costs nobody anything
MOST_GROUPS = 3  # of the released model, in a sentence
NOTABLE = 1.1  # times everybody's value


class GroupCost(NamedTuple):
  """What one group pays.

  Attributes:
    name: name of the group.
    size: test people; NaN if the rows do not tell.
    cost: mean over seeds, with its 95% interval, in units of `COSTS`.
  """

  name: str
  size: float
  cost: _intervals.Interval


class Reason(NamedTuple):
  """A column in which the payer differs from everybody."""

  column: str
  payer: float
  everyone: float

  @property
  def ratio(self) -> float:
    """The payer's value over everybody's."""
    return self.payer / self.everyone if self.everyone else math.inf


class NonPrivateExplanation(NamedTuple):
  """Who pays in one setting. Not for release.

  Attributes:
    setting: column -> value.
    unit: of costs.
    costs: of every group, the one that pays most first.
    apart: interval of the payer's cost minus that of the group that pays least, paired by seed.
    repeated: whether costs are of seeds; those of decisions are known as they are.
    by_loss: the payer by loss, if that is another group; else empty.
    reasons: where the payer differs, the largest ratio first.
    useless: why the setting shows nothing; empty if it does.
    advice: what to try first, and what it costs in privacy.
  """

  setting: dict[str, Any]
  unit: str
  costs: tuple[GroupCost, ...]
  apart: _intervals.Interval
  repeated: bool
  by_loss: str
  reasons: tuple[Reason, ...]
  useless: str
  advice: str

  @property
  def payer(self) -> GroupCost:
    """The group that pays most."""
    return self.costs[0]


def explain_run(folder: str | pathlib.Path) -> list[NonPrivateExplanation]:
  """Explains every setting of a run that has costs by group.

  Raises:
    RunError: if the folder is no run, or has no such rows; the message says what to do.
  """
  run = read_run(folder)
  found = explain(run.plan, run.table, command=f"jaxfair run {run.folder / 'config.toml'}")
  if not found:
    raise RunError(
      f"{folder} has no rows by group with a cost ({', '.join(COSTS)}); run a study of groups, "
      "such as configs/quickstart.toml"
    )
  return found


def explain(plan: Any, table: Table, *, command: str) -> list[NonPrivateExplanation]:
  """Explains every setting of a table, in order; empty if it has no costs by group."""
  study = plan.study
  table = _with_places(table)
  cost = next((name for name in COSTS if _has(table, name)), None)
  if cost is None or "group" not in table:
    return []
  columns = [n for n in study.setting_columns(table) if not _of_group(table, n)]
  judged = study.judge(table, columns)
  useless = {_key(one.setting): one.why for one in judged}
  known = list(judged[0].setting) if judged else columns
  found = []
  for values, rows in table.split(*columns) if columns else [((), table)]:
    setting = dict(zip(columns, values, strict=True))
    among = {name: setting[name] for name in known if name in setting}
    if setting.get("method") in BASELINES:
      continue  # of a run that was stopped before its private models were measured
    own = rows.keep(np.isfinite(rows[cost]))
    groups = [name for name in own.unique("group") if name not in (EVERYONE, "")]
    if len(groups) > 1 and np.ptp(own[cost]) > 0:
      one = _explained(setting, own, rows, table, cost, groups)
      advice = advise(study.name, plan.values, one.setting, one.reasons[:1], command)
      found.append(one._replace(useless=useless.get(_key(among), ""), advice=advice))
  return found


def hardest(found: Sequence[NonPrivateExplanation]) -> NonPrivateExplanation:
  """The setting whose payer pays most, among those that show anything.

  One model alone, such as the released one, has no interval: it counts only where all are such.
  """
  useful = [one for one in found if not one.useless] or list(found)
  known = [one for one in useful if math.isfinite(one.payer.cost.low)] or useful
  return max(known, key=lambda one: float(one.payer.cost.estimate))


def sentences(one: NonPrivateExplanation, found: Sequence[NonPrivateExplanation] = ()) -> list[str]:
  """Who pays and how much; why; what to try.

  Args:
    one: the setting that is told.
    found: all settings; what the released model among them costs is told as well.
  """
  payer, least = one.payer, one.costs[-1]
  at = _told(one.setting)
  if one.useless:
    first = f"Who pays: nothing can be said with {at}: the model {one.useless}."
  elif one.repeated and not math.isfinite(payer.cost.low):
    first = (
      f"Who pays: one model cannot tell. {at} takes {_number(payer.cost.estimate)} {one.unit} from "
      f"{payer.name}{_size(payer)}; repeat it over seeds for an interval."
    )
  elif payer.cost.low <= 0:
    first = f"Who pays: nobody beyond chance. {at} takes {_cost(payer, one.unit)} at most."
  else:
    first = f"Who pays: {payer.name}{_size(payer)}. {at} takes {_cost(payer, one.unit)} from it"
    if one.apart.low > 0:
      first += f", and {_number(least.cost.estimate)} from {least.name}{_size(least)}."
    else:
      first += "; the groups' costs do not differ beyond chance."
  if one.by_loss:
    first += (
      f" By loss, {one.by_loss} pays most: loss also counts how sure the model is, accuracy only "
      "whether it is right."
    )
  released = [other for other in found if other.setting.get("method") == RELEASED]
  if released and released[0] is not one:
    costs = ", ".join(
      f"{_number(group.cost.estimate)}{'' if i else f' {one.unit}'} from {group.name}{_size(group)}"
      for i, group in enumerate(released[0].costs[:MOST_GROUPS])
    )
    first += (
      f" The released model itself takes {costs}, on one set of test people: one model cannot tell "
      "cost from chance."
    )
  return [first, _why(one), f"What to try: {one.advice}"]


def _why(one: NonPrivateExplanation) -> str:
  if not one.reasons:
    return "Why: this run measured no factors by group."
  notable = [reason for reason in one.reasons if reason.ratio >= NOTABLE][:2]
  if not notable:
    top = one.reasons[0]
    return (
      f"Why: no factor stands out; {REASONS[top.column]} is {_number(top.payer)}, beside "
      f"{_number(top.everyone)} of everybody."
    )
  told = " and ".join(
    f"{REASONS[reason.column]} is {_number(reason.payer)}, beside {_number(reason.everyone)} of "
    "everybody"
    for reason in notable
  )
  return f"Why: for {one.payer.name} the {told}."


def _explained(
  setting: dict[str, Any], own: Table, rows: Table, table: Table, cost: str, groups: Sequence[str]
) -> NonPrivateExplanation:
  factor, unit = COSTS[cost]
  per_seed = {name: _by_seed(own.where(group=name), cost) * factor for name in groups}
  costs = [
    GroupCost(name, _mean(own.where(group=name), "count"), fairness.seed_interval(per_seed[name]))
    for name in groups
  ]
  costs.sort(key=lambda one: -float(one.cost.estimate))
  most, least = costs[0].name, costs[-1].name
  same = min(len(per_seed[most]), len(per_seed[least]))
  by_loss = ""
  if cost != "loss_cost" and _has(own, "loss_cost"):
    losses = {name: _mean(own.where(group=name), "loss_cost") for name in groups}
    by_loss = max(losses, key=lambda name: losses[name])
  return NonPrivateExplanation(
    setting=setting,
    unit=unit,
    costs=tuple(costs),
    apart=fairness.paired_interval(per_seed[most][:same], per_seed[least][:same]),
    repeated="seed" in own,
    by_loss="" if by_loss == most else by_loss,
    reasons=tuple(_reasons(rows, table, most)),
    useless="",
    advice="",
  )


def _reasons(rows: Table, table: Table, payer: str) -> list[Reason]:
  """Columns of this setting; of the whole table where the setting has none."""
  found = []
  for column in REASONS:
    # Pruned networks: what a group was before, in rows of another setting.
    parts = (rows,) if "method" in table else (rows, table)
    part = next((t for t in parts if _has(t, column)), None)
    if part is None:
      continue
    own = _mean(part.where(group=payer), column)
    groups = [name for name in part.unique("group") if name not in (EVERYONE, "")]
    everyone = _mean(part.where(group=EVERYONE), column)
    if math.isnan(everyone):
      everyone = float(np.nanmean([_mean(part.where(group=g), column) for g in groups]))
    if math.isfinite(own) and math.isfinite(everyone) and everyone != 0:
      found.append(Reason(column, own, everyone))
  return sorted(found, key=lambda reason: -reason.ratio)


def _with_places(table: Table) -> Table:
  """Decisions: places are the groups, and what they lose is money."""
  if "gain" not in table or "group" in table or "name" not in table:
    return table
  return table.plus(group=table["name"], loss_of_money=-table["gain"])


def _of_group(table: Table, column: str) -> bool:
  """Whether a column says no more than which group a row is of, such as its role."""
  pairs = len(list(table.split("group", column)))
  return pairs == len(table.unique("group")) and len(table.unique(column)) > 1


def _by_seed(rows: Table, column: str) -> np.ndarray:
  if "seed" not in rows or len(rows.unique("seed")) == len(rows):
    return rows[column]
  return np.array([float(np.nanmean(part[column])) for _, part in rows.split("seed")])


def _has(table: Table, column: str) -> bool:
  if column not in table or table[column].dtype.kind != "f":
    return False
  return bool(np.isfinite(table[column]).any())


def _mean(rows: Table, column: str) -> float:
  return float(np.nanmean(rows[column])) if len(rows) and _has(rows, column) else math.nan


def _key(setting: Mapping[str, Any]) -> str:
  return repr(sorted(setting.items()))


def _told(setting: Mapping[str, Any]) -> str:
  return named(setting) or "privacy"


def _size(group: GroupCost) -> str:
  return "" if math.isnan(group.size) else f" (n = {group.size:,.0f})"


def _cost(group: GroupCost, unit: str) -> str:
  cost = group.cost
  interval = "" if not math.isfinite(cost.low) else f" [{_number(cost.low)}, {_number(cost.high)}]"
  return f"{_number(cost.estimate)} {unit}{interval}"


def _number(value: Any) -> str:
  value = float(value)
  return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
