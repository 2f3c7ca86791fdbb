"""Tables of named columns: read from delimited text, numbers told from words.

A column is float64 (missing is NaN) or text (missing is the empty string): an
array of strings, or `Text`, which holds each string once.
"""

import csv
import dataclasses
import io
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxfair import checks


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

  def __getitem__(self, rows: Any) -> "Text":
    present, codes = np.unique(self.codes[rows], return_inverse=True)
    return Text(tuple(self.words[i] for i in present.tolist()), codes.astype(np.int32))

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    return np.array(self.words or ("",), dtype or np.str_)[self.codes]


Column: TypeAlias = np.ndarray | Text
Table: TypeAlias = dict[str, Any]  # of columns

MISSING = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"})


def parse(
  text: str,
  *,
  separator: str = ",",
  names: Sequence[str] | None = None,
  comment: str | None = None,
  categorical: Collection[str] = (),
  missing: Collection[str] = MISSING,
) -> Table:
  """Reads delimited text into typed columns.

  Args:
    text: the text of the file.
    separator: what stands between two cells.
    names: column names, for a file without a header line.
    comment: lines that start with this are skipped.
    categorical: columns that stay text although they look like numbers.
    missing: cells that mean "not known".

  Returns:
    The table. Repeated column names get the suffix ".1", ".2", ...
  """
  checks.require(
    isinstance(separator, str) and len(separator) == 1 and separator not in ' "\r\n',
    f"separator={checks.shown(separator)} must be one character, such as ',' or ';'",
  )
  lines: Iterable[str] = io.StringIO(text, newline="")
  if comment is not None:
    lines = (line for line in lines if not line.startswith(comment))
  reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
  try:
    rows = [[cell.strip() for cell in row] for row in reader if row]
  except csv.Error as error:
    raise checks.ArgumentError(
      f"line {reader.line_num} cannot be read ({error}); check the quotes"
    ) from None
  if names is None:
    checks.require(bool(rows), "the text is empty; a header line is needed")
    names, rows = _unique_names(rows[0]), rows[1:]
  _check_widths(rows, len(names), separator)
  cells = zip(*rows, strict=True) if rows else itertools.repeat(())
  return {
    name: typed(np.array(column, dtype=np.str_), name in categorical, missing)
    for name, column in zip(names, cells, strict=False)
  }


def typed(
  values: np.ndarray, categorical: bool = False, missing: Collection[str] = MISSING
) -> np.ndarray:
  """Numbers where every known cell is one, text with "" for missing else."""
  if not categorical:
    try:
      return values.astype(np.float64)
    except ValueError:
      pass
  unknown = np.isin(values, list(missing))
  if not categorical:
    try:
      return np.where(unknown, "nan", values).astype(np.float64)
    except ValueError:
      pass
  return np.where(unknown, "", values)


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


def words(values: np.ndarray) -> np.ndarray:
  """A column as text: 1.0 reads "1", missing is ""."""
  if values.dtype.kind != "f":
    return values.astype(np.str_)
  distinct, ids = np.unique(values, return_inverse=True)
  return np.array([_shown(value) for value in distinct.tolist()])[ids]


def recode(values: np.ndarray, meaning: Mapping[str, str]) -> np.ndarray:
  """Replaces codes by words; what has no meaning given stays as it is."""
  distinct, ids = np.unique(words(values), return_inverse=True)
  return np.array([meaning.get(str(code), str(code)) for code in distinct])[ids]


def select(frame: Any, names: Sequence[str], *, text: Collection[str] = ()) -> Table:
  """Columns of anything that has named columns; the others are not looked at.

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
  if table:
    checks.same_length(**table)
  return table


def num_rows(frame: Any) -> int:
  """Number of rows of anything that has named columns."""
  return len(frame[next(iter(frame_names(frame).values()))])


def frame_names(frame: Any) -> dict[str, Any]:
  """The names of a frame's columns as text, and as the frame knows them."""
  names = list(frame.keys() if isinstance(frame, Mapping) else frame.columns)
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


def looks_like_number(word: str) -> bool:
  """Whether a cell reads as a number."""
  try:
    float(word)
  except ValueError:
    return False
  return True


def _converted(name: str, values: Any, text: bool) -> Column:
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
  known = [_known(value) for value in array.tolist()]
  return typed(np.array(known, dtype=np.str_), text)


def _known(value: Any) -> str:
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


def _unique_names(header: list[str]) -> list[str]:
  named = [name or f"column_{position}" for position, name in enumerate(header)]
  names: dict[str, None] = {}
  repeats: dict[str, int] = {}  # smaller suffixes are taken
  for name in named:
    fresh = name
    while fresh in names:
      repeats[name] = repeats.get(name, 0) + 1
      fresh = f"{name}.{repeats[name]}"
    names[fresh] = None
  return list(names)


def _check_widths(rows: list[list[str]], width: int, separator: str) -> None:
  for number, row in enumerate(rows, start=1):
    if len(row) != width:
      raise checks.ArgumentError(
        f"data row {number} has {len(row)} cells where {width} are expected; "
        f"check the separator ({separator!r}) and the quotes"
      )
