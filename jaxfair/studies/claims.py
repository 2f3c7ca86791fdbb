"""Checks that claims are made of: a statistic, its interval, a verdict."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from jaxfair import fairness
from jaxfair.experiments.table import Table
from jaxfair.studies.protocol import Finding

Check = Callable[[Table], Finding]


def mean_above(
  value: str, threshold: float = 0.0, *, where: Mapping[str, Any] | None = None
) -> Check:
  """The mean over seeds is above a threshold: its 95% interval is."""

  def check(table: Table) -> Finding:
    statistic = f"mean {value}"
    rows = _rows(table, where, (value, "seed"))
    if isinstance(rows, str):
      return Finding(statistic, why=rows)
    return _finding(statistic, _by_seed(rows, value), threshold)

  return check


def difference_above(
  value: str,
  threshold: float = 0.0,
  *,
  first: Mapping[str, Any],
  second: Mapping[str, Any],
) -> Check:
  """Paired over seeds, `first` exceeds `second` by more than a threshold."""

  def check(table: Table) -> Finding:
    shared_by = {k: v for k, v in first.items() if second.get(k) == v}
    left_only, right_only = (
      {k: v for k, v in side.items() if k not in shared_by}
      for side in (first, second)
    )
    statistic = (
      f"{value}: {_words(left_only)} minus {_words(right_only)}, paired"
    )
    a = _rows(table, first, (value, "seed"))
    b = _rows(table, second, (value, "seed"))
    for rows in (a, b):
      if isinstance(rows, str):
        return Finding(statistic, why=rows)
    left, right = _by_seed(a, value), _by_seed(b, value)  # type: ignore[arg-type]
    shared = sorted(set(left) & set(right))
    return _finding(
      statistic, {s: left[s] - right[s] for s in shared}, threshold
    )

  return check


def spread_above(
  value: str, threshold: float = 0.0, *, between: str, without: Any = None
) -> Check:
  """Paired over seeds, the largest mean of a column exceeds the smallest.

  Which two are compared is chosen by the same seeds that the interval is made
  of; with more than a few groups it is too short.
  """

  def check(table: Table) -> Finding:
    statistic = f"{value}: spread between {between}s"
    rows = _rows(table, None, (value, "seed", between))
    if isinstance(rows, str):
      return Finding(statistic, why=rows)
    means = {
      name: _by_seed(part, value)
      for (name,), part in rows.split(between)
      if name != without
    }
    means = {n: m for n, m in means.items() if np.isfinite([*m.values()]).any()}
    if len(means) < 2:
      return Finding(statistic, why=f"fewer than two {between}s")
    order = sorted(means, key=lambda n: float(np.nanmean([*means[n].values()])))
    low, high = means[order[0]], means[order[-1]]
    statistic = f"{value}: {order[-1]} minus {order[0]}, paired"
    shared = sorted(set(low) & set(high))
    return _finding(statistic, {s: high[s] - low[s] for s in shared}, threshold)

  return check


def trend(
  value: str,
  along: str,
  *,
  rises: bool,
  where: Mapping[str, Any] | None = None,
) -> Check:
  """A value rises or falls along a column: Spearman's correlation per seed.

  The claim holds if the 95% interval of its mean over seeds is on one side of
  0. Rows of one seed and place are averaged first.
  """

  def check(table: Table) -> Finding:
    statistic = f"rank correlation of {value} with {along}"
    rows = _rows(table, where, (value, "seed", along))
    if isinstance(rows, str):
      return Finding(statistic, why=rows)
    if len(rows.unique(along)) < 2:
      return Finding(statistic, why=f"{along} has one value only")
    found = {}
    for (seed,), part in rows.split("seed"):
      known = Table(
        {c: part[c][~np.isnan(part[value])] for c in (along, value)}
      )
      places = [(at, own[value].mean()) for (at,), own in known.split(along)]
      if not places:
        continue
      correlation = rank_correlation(*np.array(places).T)
      if np.isfinite(correlation):
        found[seed] = float(correlation)
    finding = _finding(statistic, found, 0.0, below=not rises)
    ends = np.clip([finding.low, finding.high], -1, 1)
    return dataclasses.replace(finding, low=float(ends[0]), high=float(ends[1]))

  return check


def in_each(column: str, check: Check) -> Check:
  """The check holds for every value of a column.

  Every one must hold at its own 95%, so no correction is needed. All values
  are listed; the interval is that of the first that fails, else of the one
  nearest to 0.
  """

  def all_of(table: Table) -> Finding:
    if column not in table:
      return Finding("", why=f"the table has no column {column}")
    found = {
      name: check(table.where(**{column: name}))
      for name in table.unique(column)
    }
    known = {n: f for n, f in found.items() if f.holds is not None}
    if len(known) < len(found):
      name, first = next((n, f) for n, f in found.items() if f.holds is None)
      return dataclasses.replace(first, why=f"{first.why} ({column} {name})")
    failed = [f for f in known.values() if not f.holds]
    nearest = min(known.values(), key=lambda f: abs(f.value))
    shown = failed[0] if failed else nearest
    listed = ", ".join(f"{n} {f.value:.3g}" for n, f in known.items())
    return dataclasses.replace(shown, statistic=f"{shown.statistic}: {listed}")

  return all_of


def rank_correlation(first: Any, second: Any) -> Any:
  """Spearman's rank correlations along the first axis.

  NaN where one of both is constant: then neither rises nor falls.
  """
  a, b = (
    stats.rankdata(np.asarray(values, float), axis=0)
    for values in (first, second)
  )
  a, b = a - a.mean(axis=0), b - b.mean(axis=0)
  spread = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
  known = spread > 0
  together = (a * b).sum(axis=0)
  return np.where(known, together / np.where(known, spread, 1.0), np.nan)[()]


def _rows(
  table: Table, where: Mapping[str, Any] | None, columns: tuple[str, ...]
) -> Table | str:
  """The rows a check looks at, or why it cannot."""
  missing = [c for c in (*columns, *(where or {})) if c not in table]
  if missing:
    return f"the table has no column {missing[0]}"
  if table[columns[0]].dtype.kind != "f":
    return f"column {columns[0]} holds no numbers"
  rows = table.where(**(where or {}))
  if not len(rows):
    return f"no rows with {_words(where or {})}"
  return rows


def _by_seed(rows: Table, value: str) -> dict[Any, float]:
  """The mean of each seed's rows; a seed without a known value drops out."""
  known = {
    key[0]: part[value][~np.isnan(part[value])]
    for key, part in rows.split("seed")
  }
  return {seed: float(v.mean()) for seed, v in known.items() if len(v)}


def _finding(
  statistic: str,
  values: Mapping[Any, float],
  threshold: float,
  *,
  below: bool = False,
) -> Finding:
  if len(values) < 2:
    return Finding(statistic, why="an interval needs at least 2 seeds")
  if not np.isfinite(list(values.values())).all():
    return Finding(statistic, why=f"{statistic} is infinite for some seeds")
  found = fairness.seed_interval(np.array(list(values.values())))
  low, high = float(found.low), float(found.high)
  holds = high < threshold if below else low > threshold
  return Finding(statistic, float(found.estimate), low, high, holds)


def _words(where: Mapping[str, Any]) -> str:
  return ", ".join(f"{k}={v}" for k, v in where.items()) or "all rows"
