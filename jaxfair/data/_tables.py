"""Tables of named columns: numbers told from words, missing cells marked.

A column is float64 (missing is NaN) or text (missing is the empty string): an
array of strings, or `Text`, which holds each string once.
"""

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxfair import checks
from jaxfair.types import Array


@dataclasses.dataclass(frozen=True, eq=False)
class Text:
  """A column of text: row i holds words[codes[i]].

  Attributes:
    words: the distinct strings that occur, sorted.
    codes: [n] int32.
  """

  words: tuple[str, ...]
  codes: np.ndarray

  def __len__(self) -> int:
    return len(self.codes)

  def __getitem__(self, rows: Array | slice) -> "Text":
    codes = self.codes[rows]
    present = np.flatnonzero(np.bincount(codes, minlength=len(self.words)))
    places = np.zeros(len(self.words), np.int32)
    places[present] = np.arange(present.size)
    return Text(tuple(self.words[i] for i in present.tolist()), places[codes])

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    return np.array(self.words or ("",), dtype or np.str_)[self.codes]


Column: TypeAlias = np.ndarray | Text
Table: TypeAlias = dict[str, Any]  # of columns

MISSING = frozenset({"", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "null", "NULL"})
_FORM = r"[+-]?(\d+(POINT\d*)?|POINT\d+)([eE][+-]?\d+)?|[+-]?(inf(inity)?|nan)"
NUMBER = re.compile(_FORM.replace("POINT", "[.]"), re.ASCII | re.IGNORECASE)
_NUMBER_COMMA = re.compile(_FORM.replace("POINT", "[,]"), re.ASCII | re.IGNORECASE)


def typed(cells: Sequence[str], *, text: bool = False) -> Column:
  """Numbers where every known cell is one, text with "" for missing else."""
  places: dict[str, int] = {}
  known = ("" if cell in MISSING else cell for cell in cells)
  codes = np.array([places.setdefault(cell, len(places)) for cell in known], np.int32)
  if not text:
    values = [number(word) if word else np.nan for word in places]
    if None not in values:
      return np.array(values, np.float64)[codes]
  return sorted_text(places, codes)


def sorted_text(places: Mapping[str, int], codes: np.ndarray) -> Text:
  """The column of text that has `word` where `codes` has `places[word]`."""
  order = sorted(places)
  at = np.empty(len(order), np.int32)
  at[[places[word] for word in order]] = np.arange(len(order))
  return Text(tuple(order), at[codes])


def number(word: str, decimal: str = ".") -> float | None:
  """The number that a cell says; None if it says none."""
  if not (NUMBER if decimal == "." else _NUMBER_COMMA).fullmatch(word):
    return None
  return float(word.replace(decimal, "."))


class Levels(NamedTuple):
  """The distinct cells of a column as text, in their own order, and [n] places in it."""

  words: tuple[str, ...]
  codes: np.ndarray


def levels(values: Column) -> Levels:
  """What a column holds; numbers are sorted as numbers, missing ones last."""
  if isinstance(values, Text):
    return Levels(values.words, values.codes)
  distinct, codes = np.unique(values, return_inverse=True)
  show = _shown if values.dtype.kind == "f" else str
  return Levels(tuple(map(show, distinct.tolist())), codes)


def is_number(values: Column) -> bool:
  """Whether the column holds numbers."""
  return isinstance(values, np.ndarray) and values.dtype.kind == "f"


def unknown(values: Column) -> np.ndarray:
  """[n] whether the cell is missing."""
  if isinstance(values, Text):
    return np.array([word == "" for word in (*values.words, "")])[values.codes]
  return np.isnan(values) if values.dtype.kind == "f" else values == ""


def words(values: Column) -> np.ndarray:
  """A column as an array of text: 1.0 reads "1", missing is ""."""
  if isinstance(values, Text) or values.dtype.kind != "f":
    return np.asarray(values, np.str_)
  distinct, ids = np.unique(values, return_inverse=True)
  return np.array([_shown(value) for value in distinct.tolist()])[ids]


def recode(values: np.ndarray, meaning: Mapping[str, str]) -> np.ndarray:
  """Replaces codes by words; what has no meaning given stays as it is."""
  distinct, ids = np.unique(words(values), return_inverse=True)
  return np.array([meaning.get(str(code), str(code)) for code in distinct])[ids]


def select(frame: Any, names: Sequence[str], *, text: Collection[str] = ()) -> Table:
  """Columns of anything that has named columns; the others are ignored.

  Args:
    frame: a pandas or polars frame, or a mapping of names to columns.
    names: the columns that are needed.
    text: columns whose cells stay text although they look like numbers.

  Raises:
    ArgumentError: if columns are missing, or are not columns of numbers or words.
  """
  there = frame_names(frame)
  lacking = [name for name in names if name not in there]
  if lacking:
    hint = checks.options(lacking[0], there)
    told = ", ".join(map(repr, lacking[: checks.MOST_OPTIONS]))
    raise checks.ArgumentError(
      f"the table has no column {told}; {hint}"
      if len(lacking) == 1
      else f"the table has none of the columns {told}; it has {', '.join(there) or 'none'}"
    )
  table = {name: _converted(name, frame[there[name]], name in text) for name in names}
  lengths = {name: len(values) for name, values in table.items()}
  if len(set(lengths.values())) > 1:
    told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
    raise checks.ArgumentError(f"one row per person is needed everywhere, but {told}")
  return table


def num_rows(frame: Any) -> int:
  """Number of rows of anything that has named columns."""
  return len(frame[next(iter(frame_names(frame).values()))])


def frame_names(frame: Any) -> dict[str, Any]:
  """The names of a frame's columns as text, and as the frame knows them."""
  checks.require(
    not hasattr(frame, "collect_schema") or hasattr(frame, "height"),
    "frame is lazy and holds no values yet; pass frame.collect()",
  )
  checks.require(
    isinstance(frame, Mapping) or hasattr(frame, "columns"),
    f"frame is {type(frame).__name__}, which has no named columns; pass a pandas or polars frame, "
    "a pyarrow table or a mapping of names to columns",
  )
  if isinstance(frame, Mapping):
    names = list(frame)
  else:
    names = list(getattr(frame, "column_names", None) or frame.columns)  # pyarrow, or others
  found = {str(name): name for name in names}
  checks.require(bool(names), "frame has no columns; pass at least two")
  checks.require(len(found) == len(names), "frame has columns of the same name; rename them")
  return found


def column(table: Table, name: str, role: str = "column") -> np.ndarray:
  """The named column, or an error that names the nearest one."""
  if name not in table:
    raise checks.ArgumentError(f"{role} {name!r} is not a column; {checks.options(name, table)}")
  return table[name]


def take(table: Table, rows: np.ndarray) -> Table:
  """The table of these rows."""
  return {name: values[rows] for name, values in table.items()}


def concatenate(parts: Sequence[Table]) -> Table:
  """Tables of the same columns, one below the other."""
  return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def size(table: Table) -> int:
  """Number of rows."""
  return len(next(iter(table.values())))


def _converted(name: str, values: object, text: bool) -> Column:
  """A column of a frame; None, NaN, pandas.NA and NaT are missing."""
  if isinstance(values, Text):
    return values
  array = np.asarray(values)
  checks.require(
    array.ndim == 1, f"column {name!r} has shape {array.shape}; a column holds one value a row"
  )
  checks.require(
    array.dtype.kind not in "mM",
    f"column {name!r} holds dates; turn them into numbers, or name it in drop=",
  )
  if array.dtype.kind in "biuf":
    numbers = array.astype(np.float64)
    return words(numbers) if text else numbers
  return typed([_known(value) for value in array.tolist()], text=text)


def _known(value: object) -> str:
  # None, NaN, pandas.NA and NaT are the values that do not equal themselves.
  try:
    missing = value is None or bool(value != value)
  except TypeError:
    missing = True
  if missing:
    return ""
  if isinstance(value, bool):
    return str(int(value))
  return str(value).strip()


def _shown(value: float) -> str:
  if np.isnan(value):
    return ""
  return str(int(value)) if value.is_integer() else repr(value)
