"""Checks that claims are made of: a statistic, its interval, a verdict."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxfair import fairness
from jaxfair.studies.protocol import Finding
from jaxfair.studies.table import Table

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
    statistic = f"{value}: {_words(first)} minus {_words(second)}, paired"
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


def _rows(
  table: Table, where: Mapping[str, Any] | None, columns: tuple[str, ...]
) -> Table | str:
  """The rows a check looks at, or why it cannot."""
  missing = [c for c in (*columns, *(where or {})) if c not in table]
  if missing:
    return f"the table has no column {missing[0]}"
  rows = table.where(**(where or {}))
  if not len(rows):
    return f"no rows with {_words(where or {})}"
  return rows


def _by_seed(rows: Table, value: str) -> dict[Any, float]:
  return {
    key[0]: float(np.nanmean(part[value])) for key, part in rows.split("seed")
  }


def _finding(
  statistic: str, values: Mapping[Any, float], threshold: float
) -> Finding:
  if len(values) < 2:
    return Finding(statistic, why="an interval needs at least 2 seeds")
  found = fairness.seed_interval(np.array(list(values.values())))
  low, high = float(found.low), float(found.high)
  if not np.isfinite(low):
    return Finding(statistic, why="the statistic is not defined on these rows")
  return Finding(statistic, float(found.estimate), low, high, low > threshold)


def _words(where: Mapping[str, Any]) -> str:
  return ", ".join(f"{k}={v}" for k, v in where.items()) or "all rows"
