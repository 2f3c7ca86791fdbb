"""Tables of named columns: read from delimited text, numbers told from words.

A column is float64 (missing is NaN) or text (missing is the empty string).
"""

import csv
import io
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from jaxfair import checks

Table: TypeAlias = dict[str, np.ndarray]

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
