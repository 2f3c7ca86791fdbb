"""Columns of a table, and how each becomes features."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._rules import LEFT_OUT, MISSING_NAME
from jaxfair.data._tables import Column, Table

_ROWS = 2**14  # encoded at a time
# How a range or a list of categories became known: declared by the user; "data": read off the
# people that it encodes, and so assumed public; "given": read off another, public table;
# "bought": computed from the people with noise, and charged.
Origin: TypeAlias = Literal["declared", "data", "given", "bought"]


@dataclasses.dataclass(frozen=True)
class Numeric:
  """A column of numbers; one feature.

  Attributes:
    name: name of the column.
    low: smaller numbers become this one; None for no bound.
    high: larger numbers become this one; None for no bound.
    missing: what a missing number becomes; None leaves NaN, which a scaler fills.
    origin: how the bounds became known.
  """

  name: str
  low: float | None = None
  high: float | None = None
  missing: float | None = None
  origin: Origin = "declared"

  def __post_init__(self) -> None:
    for bound in (self.low, self.high, self.missing):
      if bound is not None:
        checks.number(f"ranges[{self.name!r}]", bound)
    checks.require(
      self.low is None or self.high is None or self.low < self.high,
      f"ranges[{self.name!r}]=({self.low}, {self.high}) must be increasing; pass (low, high)",
    )


@dataclasses.dataclass(frozen=True)
class Categorical:
  """A column of words; one feature of 0 or 1 for each value.

  Attributes:
    name: name of the column.
    values: "" stands for a missing cell. A word that is not listed, or a missing cell where ""
      is not, sets none of the features.
    origin: how the values became known.
  """

  name: str
  values: tuple[str, ...]
  origin: Origin = "declared"

  def __post_init__(self) -> None:
    checks.require(
      len(set(self.values)) == len(self.values),
      f"categories[{self.name!r}]={checks.shown(self.values)} names a value twice",
    )


def fit_columns(
  table: Table,
  names: Sequence[str],
  *,
  ranges: Mapping[str, tuple[float, float]] | None = None,
  categories: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Numeric | Categorical, ...]:
  """Describes columns: numbers as one feature, words as one for each value.

  Args:
    table: the people.
    names: the columns that become features.
    ranges: public bounds of columns of numbers.
    categories: public values of columns of words. Where they are not given they are taken from
      the table, a missing word being a value of its own.
  """
  ranges, categories = dict(ranges or {}), dict(categories or {})
  for argument, given in (("ranges", ranges), ("categories", categories)):
    for name in given:
      checks.require(
        name in names, f"{argument} {name!r} is not a feature; {checks.options(name, names)}"
      )
  made: list[Numeric | Categorical] = []
  for name in names:
    values = table[name]
    if name in categories:
      made.append(Categorical(name, tuple(map(str, categories[name]))))
    elif _tables.is_number(values):
      low, high = ranges.get(name, (None, None))
      made.append(Numeric(name, low, high))
    else:
      checks.require(
        name not in ranges,
        f"ranges[{name!r}] is given, but the column holds text such as "
        f"{checks.shown(_first_word(values))}; fix these cells, or drop the range",
      )
      made.append(Categorical(name, _tables.levels(values).words, "data"))
  return tuple(made)


def encode_columns(columns: Sequence[Numeric | Categorical], table: Table, size: int) -> np.ndarray:
  """[size, d] float32 features."""
  width = sum(len(features(column)) for column in columns)
  x = np.zeros((size, width), np.float32)
  filled: list[tuple[int | np.ndarray, np.ndarray]] = []
  place = 0
  for column in columns:
    if isinstance(column, Categorical):
      places = {value: place + i for i, value in enumerate(column.values)}
      words, codes = _tables.levels(table[column.name])
      filled.append((np.array([places.get(word, LEFT_OUT) for word in words], np.int64), codes))
    else:
      filled.append((place, _numbers(column, table[column.name])))
    place += len(features(column))
  # Some rows at a time: the features of one person are next to each other in memory.
  for first in range(0, size, _ROWS):
    rows = slice(first, first + _ROWS)
    block = x[rows]
    begins = np.arange(len(block)) * width
    for where, values in filled:
      if isinstance(where, int):
        block[:, where] = values[rows]
      else:
        at = where[values[rows]]
        block.reshape(-1)[(begins + at)[at != LEFT_OUT]] = 1.0
  return x


def _numbers(column: Numeric, values: np.ndarray) -> np.ndarray:
  if not _tables.is_number(values):
    raise checks.ArgumentError(
      f"column {column.name!r} holds {checks.shown(_first_word(values))} where a number is "
      "needed; fix the cell, or leave it empty"
    )
  if column.low is not None or column.high is not None:
    values = np.clip(values, *bounds(column))
  if column.missing is not None:
    values = np.where(np.isnan(values), column.missing, values)
  with np.errstate(over="ignore"):
    short = values.astype(np.float32)
  checks.require(
    not np.isinf(short).any(),
    f"column {column.name!r} has infinite numbers, or some above 3e38; leave such cells empty, or "
    f"declare a range: ranges={{{column.name!r}: (low, high)}}",
  )
  return short


def bounds(column: Numeric) -> tuple[float, float]:
  """The declared bounds, infinite where there is none."""
  low = -np.inf if column.low is None else column.low
  return low, np.inf if column.high is None else column.high


def _first_word(values: Column) -> str:
  """A cell of a text column that is not a number."""
  words = [word for word in _tables.levels(values).words if word]
  return next((word for word in words if _tables.number(word) is None), (*words, "")[0])


def features(column: Numeric | Categorical) -> tuple[str, ...]:
  """The names of the features that a column becomes."""
  if isinstance(column, Numeric):
    return (column.name,)
  return tuple(f"{column.name}={value or MISSING_NAME}" for value in column.values)
