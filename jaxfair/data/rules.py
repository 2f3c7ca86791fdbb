"""Rules that turn columns into class ids or group ids, with their names.

A rule may give a row the id `LEFT_OUT`: such rows are not loaded.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.data import tables
from jaxfair.data.encoding import MISSING_NAME
from jaxfair.data.tables import Table

LEFT_OUT = -1


class Assigned(NamedTuple):
  """[n] ids, and the name behind each id."""

  ids: np.ndarray
  names: tuple[str, ...]


class Rule(NamedTuple):
  """How rows are sorted.

  Attributes:
    columns: what the rule looks at; a model that must not see the group does
      not get these.
    assign: the rule itself.
  """

  columns: tuple[str, ...]
  assign: Callable[[Table], Assigned]


def values(column: str, names: Mapping[str, str] | None = None) -> Rule:
  """One id per value of the column.

  Args:
    column: the column.
    names: the values that count, in the order of their ids, and what each is
      called; other rows are left out. By default every value counts, sorted.
  """

  def assign(table: Table) -> Assigned:
    raw = tables.column(table, column)
    if names is None:
      # Sorted as what they are: 2 comes before 10, though "10" before "2".
      levels, ids = np.unique(raw, return_inverse=True)
      shown = tables.words(levels).tolist()
      return Assigned(ids, tuple(value or MISSING_NAME for value in shown))
    found = tables.words(raw)
    ids = np.full(len(found), LEFT_OUT)
    for position, value in enumerate(names):
      ids[found == value] = position
    return Assigned(ids, tuple(names.values()))

  return Rule((column,), assign)


def against(column: str, value: str, names: tuple[str, str]) -> Rule:
  """Id 1 for the value, id 0 for everything else."""

  def assign(table: Table) -> Assigned:
    found = tables.words(tables.column(table, column))
    return Assigned((found == value).astype(np.int64), names)

  return Rule((column,), assign)


def above(
  column: str, threshold: float | None = None, names: tuple[str, str] | None = None
) -> Rule:
  """Id 1 where the number exceeds the threshold (default: the median)."""

  def assign(table: Table) -> Assigned:
    numbers = _numbers(table, column)
    limit = float(np.nanmedian(numbers)) if threshold is None else threshold
    ids = np.where(np.isnan(numbers), LEFT_OUT, numbers > limit)
    return Assigned(ids, names or (f"{column} <= {limit:g}", f"{column} > {limit:g}"))

  return Rule((column,), assign)


def bins(column: str, edges: Sequence[float], names: tuple[str, ...] | None = None) -> Rule:
  """One id per interval: below edges[0], [edges[0], edges[1]), ..., the rest.

  Rows without a number form a last group, if there are any.
  """
  edges = tuple(float(edge) for edge in edges)
  checks.require(
    bool(edges) and all(np.diff(edges) > 0),
    f"bins={edges} of {column!r} must be rising numbers, such as (25, 60)",
  )
  shown = [f"{edge:g}" for edge in edges]
  between = [f"{low} <= {column} < {high}" for low, high in itertools.pairwise(shown)]
  given = names or (f"{column} < {shown[0]}", *between, f"{column} >= {shown[-1]}")

  def assign(table: Table) -> Assigned:
    numbers = _numbers(table, column)
    unknown = np.isnan(numbers)
    ids = np.where(unknown, len(given), np.digitize(numbers, edges))
    return Assigned(ids, (*given, MISSING_NAME) if unknown.any() else given)

  return Rule((column,), assign)


def everyone() -> Rule:
  """One group that holds everybody."""
  return Rule((), lambda table: Assigned(_zeros(table), ("everyone",)))


def cross(parts: Sequence[Rule]) -> Rule:
  """Intersections of several rules: "Female, Black".

  Combinations that nobody belongs to are no groups.
  """
  columns = tuple(dict.fromkeys(name for rule in parts for name in rule.columns))

  def assign(table: Table) -> Assigned:
    assigned = [rule.assign(table) for rule in parts]
    stacked = np.stack([part.ids for part in assigned])
    inside = (stacked != LEFT_OUT).all(axis=0)
    combinations, places = np.unique(stacked[:, inside], axis=1, return_inverse=True)
    ids = np.full(stacked.shape[1], LEFT_OUT)
    ids[inside] = places.reshape(-1)
    names = tuple(
      ", ".join(part.names[i] for part, i in zip(assigned, one, strict=True))
      for one in combinations.T
    )
    return Assigned(ids, names)

  return Rule(columns, assign)


def _numbers(table: Table, column: str) -> np.ndarray:
  found = tables.column(table, column)
  checks.require(
    found.dtype.kind == "f",
    f"column {column!r} holds words, not numbers; bins and thresholds need numbers",
  )
  return found


def _zeros(table: Table) -> np.ndarray:
  return np.zeros(tables.size(table), dtype=np.int64)
