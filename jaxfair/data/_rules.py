"""Rules that turn columns into class ids or group ids, with their names.

A rule is plain data. `fit` fills in what it leaves open (the values of a column,
the median) from a table; a fitted rule treats people of other tables the
same way. A rule may give a row the id `LEFT_OUT`: such rows are not loaded.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._tables import Column, Table

LEFT_OUT = -1
MISSING_NAME = "missing"


class Assigned(NamedTuple):
  """[n] ids, and the name behind each id."""

  ids: np.ndarray
  names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Part:
  """One column, and how its cells become ids.

  Attributes:
    column: its name.
    kind: "values" (the id is the place in `values`), "against" (id 1 for
      values[0], id 0 for everything else), "above" (id 1 above edges[0]),
      "bins" (below edges[0], [edges[0], edges[1]), ..., the rest).
    values: cells as text; "" is a missing cell.
    edges: rising numbers.
    names: the name of each id. Bins with one name more than they have ranges
      give the last id to missing numbers.
    text: whether the cells are text, even those that look like numbers.
    kept: whether the column is a feature all the same.
  """

  column: str
  kind: Literal["values", "against", "above", "bins"]
  values: tuple[str, ...] = ()
  edges: tuple[float, ...] = ()
  names: tuple[str, ...] = ()
  text: bool = False
  kept: bool = False

  def fit(self, table: Table) -> "Part":
    """The part with everything filled in that was left open."""
    raw = _tables.column(table, self.column)
    filled = dataclasses.replace(self, text=not _tables.is_number(raw))
    match self.kind:
      case "values" if not self.names:
        # Sorted as what they are: 2 comes before 10, though "10" before "2".
        shown = tuple(_tables.levels(raw).words)
        named = tuple(value or MISSING_NAME for value in shown)
        return dataclasses.replace(filled, values=shown, names=named)
      case "above":
        numbers = _numbers(raw, self.column)
        limit = self.edges[0] if self.edges else float(np.nanmedian(numbers))
        told = (f"{self.column} <= {limit:g}", f"{self.column} > {limit:g}")
        return dataclasses.replace(filled, edges=(limit,), names=self.names or told)
      case "bins" if (
        len(self.names) == len(self.edges) + 1 and np.isnan(_numbers(raw, self.column)).any()
      ):
        return dataclasses.replace(filled, names=(*self.names, MISSING_NAME))
    return filled

  def ids(self, table: Table) -> np.ndarray:
    """[n] ids; `LEFT_OUT` for a cell that the rule has no id for."""
    raw = _tables.column(table, self.column)
    if self.kind == "values":
      places = {value: place for place, value in enumerate(self.values)}
      words, codes = _tables.levels(raw)
      return np.array([places.get(word, LEFT_OUT) for word in words], np.int64)[codes]
    if self.kind == "against":
      words, codes = _tables.levels(raw)
      return np.array([word == self.values[0] for word in words], np.int64)[codes]
    numbers = _numbers(raw, self.column)
    unknown = np.isnan(numbers)
    if self.kind == "above":
      return np.where(unknown, LEFT_OUT, numbers > self.edges[0])
    last = len(self.edges) + 1
    return np.where(
      unknown, last if len(self.names) > last else LEFT_OUT, np.digitize(numbers, self.edges)
    )


@dataclasses.dataclass(frozen=True)
class Rule:
  """How rows are sorted.

  Attributes:
    parts: one column each; none for one id of everybody.
    cells: where there are several parts, the combinations of their ids that
      have an id of their own.
    names: the name of each id; empty until fitted.
  """

  parts: tuple[Part, ...] = ()
  cells: tuple[tuple[int, ...], ...] = ()
  names: tuple[str, ...] = ()

  @property
  def columns(self) -> tuple[str, ...]:
    """The columns that the rule reads."""
    return tuple(dict.fromkeys(part.column for part in self.parts))

  @property
  def hidden_columns(self) -> tuple[str, ...]:
    """The columns to hide from a model that must not see the class or the group."""
    return tuple(part.column for part in self.parts if not part.kept)

  @property
  def text_columns(self) -> tuple[str, ...]:
    """Columns whose cells are compared as text."""
    return tuple(part.column for part in self.parts if part.text)

  def fit(self, table: Table) -> "Rule":
    """The rule with everything filled in that was left open."""
    parts = tuple(part.fit(table) for part in self.parts)
    if not parts:
      return self
    if len(parts) == 1:
      return Rule(parts, (), parts[0].names)
    stacked = np.stack([part.ids(table) for part in parts])
    inside = (stacked != LEFT_OUT).all(axis=0)
    cells = np.unique(stacked[:, inside], axis=1).T.tolist()
    names = tuple(
      ", ".join(part.names[i] for part, i in zip(parts, cell, strict=True)) for cell in cells
    )
    return Rule(parts, tuple(map(tuple, cells)), names)

  def ids(self, table: Table) -> np.ndarray:
    """[n] ids by a fitted rule; `LEFT_OUT` for a row that it has no id for."""
    if not self.parts:
      return np.zeros(_tables.size(table), dtype=np.int64)
    if len(self.parts) == 1:
      return self.parts[0].ids(table)
    found = np.full(_tables.size(table), LEFT_OUT)
    stacked = [part.ids(table) for part in self.parts]
    for place, cell in enumerate(self.cells):
      here = [ids == wanted for ids, wanted in zip(stacked, cell, strict=True)]
      found[np.logical_and.reduce(here)] = place
    return found

  def assign(self, table: Table) -> Assigned:
    """Fits the rule to a table and sorts its rows."""
    fitted = self.fit(table)
    return Assigned(fitted.ids(table), fitted.names)


def values(column: str, names: Mapping[str, str] | None = None) -> Rule:
  """One id per value of the column.

  Args:
    column: the column.
    names: the values that count, in the order of their ids, and what each is
      called; other rows are left out. By default every value counts, sorted.
  """
  names = names or {}
  return Rule((Part(column, "values", tuple(names), names=tuple(names.values())),))


def against(column: str, value: str, names: tuple[str, str]) -> Rule:
  """Id 1 for the value, id 0 for everything else."""
  return Rule((Part(column, "against", (value,), names=names),))


def above(
  column: str, threshold: float | None = None, names: tuple[str, str] | None = None
) -> Rule:
  """Id 1 where the number exceeds the threshold (default: the median)."""
  edges = () if threshold is None else (float(threshold),)
  return Rule((Part(column, "above", edges=edges, names=names or ()),))


def bins(
  column: str, edges: Sequence[float], names: tuple[str, ...] | None = None, *, kept: bool = False
) -> Rule:
  """One id per interval: below edges[0], [edges[0], edges[1]), ..., the rest.

  Rows without a number form a last group, if there are any. With `kept` the
  column is a feature all the same.
  """
  edges = tuple(float(edge) for edge in edges)
  checks.require(
    bool(edges) and all(np.diff(edges) > 0),
    f"bins={edges} of {column!r} must be increasing numbers, such as (25, 60)",
  )
  shown = [f"{edge:g}" for edge in edges]
  between = [f"{low} <= {column} < {high}" for low, high in itertools.pairwise(shown)]
  told = (f"{column} < {shown[0]}", *between, f"{column} >= {shown[-1]}")
  return Rule((Part(column, "bins", edges=edges, names=names or told, kept=kept),))


def everyone() -> Rule:
  """One group that holds everybody."""
  return Rule(names=("everyone",))


def cross(parts: Sequence[Rule]) -> Rule:
  """Intersections of several rules: "Female, Black".

  Combinations that nobody belongs to are no groups.
  """
  crossed = tuple(part for rule in parts for part in rule.parts)
  return Rule(crossed) if crossed else everyone()


def _numbers(found: Column, column: str) -> np.ndarray:
  if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
    raise checks.ArgumentError(
      f"column {column!r} holds text, not numbers; bins and thresholds need numbers"
    )
  return found
