"""Tidy tables of results: one row per setting x seed x group."""

import csv
import io
import itertools
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair import _notebook, checks
from jaxfair.experiments import _folders


class NoColumnError(checks.ArgumentError):
  """A table without a column that was named."""

  def __init__(self, column: str, table: "Table"):
    super().__init__(f"no column {column!r}; {checks.options(column, table.names)}")
    self.column = column


class Table:
  """Named columns of equal length; numbers are float64, the rest strings.

  Missing values are NaN in number columns and "" in text columns. Wherever
  rows are compared, one missing value equals another.
  """

  def __init__(self, columns: Mapping[str, Any]):
    arrays = {name: _column(values) for name, values in columns.items()}
    if arrays:
      checks.same_length(**arrays)
    self._columns = arrays

  @classmethod
  def from_arrays(
    cls, settings: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], values: Mapping[str, Any]
  ) -> "Table":
    """A table from arrays whose leading axes are named.

    Args:
      settings: columns that are the same in every row.
      axes: axis name -> labels, in order, e.g. `seed` then `group`.
      values: metric name -> array over the first axes; an array with fewer
        axes (a metric per seed) is repeated over the rest.

    Returns:
      One row per combination of labels.
    """
    shape = tuple(len(labels) for labels in axes.values())
    grid = list(itertools.product(*axes.values()))
    columns: dict[str, Any] = {name: [value] * len(grid) for name, value in settings.items()}
    for i, name in enumerate(axes):
      columns[name] = [labels[i] for labels in grid]
    for name, value in values.items():
      array = np.asarray(value)
      if array.shape != shape[: array.ndim]:
        raise checks.ArgumentError(
          f"{name} has shape {array.shape}; the axes {tuple(axes)} have {shape}"
        )
      array = array.reshape(array.shape + (1,) * (len(shape) - array.ndim))
      columns[name] = np.broadcast_to(array, shape).reshape(-1)
    return cls(columns)

  @classmethod
  def from_rows(cls, rows: Iterable[Mapping[str, Any]]) -> "Table":
    """A table from dictionaries; what a row lacks is a missing value there."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return cls({name: [row.get(name) for row in rows] for name in names})

  @classmethod
  def concat(cls, tables: Iterable["Table"]) -> "Table":
    """All rows; columns that a table lacks are missing values there."""
    tables = [table for table in tables if len(table)]
    names = list(dict.fromkeys(n for table in tables for n in table.names))
    columns = {}
    for name in names:
      parts = [t[name].tolist() if name in t else [None] * len(t) for t in tables]
      columns[name] = list(itertools.chain.from_iterable(parts))
    return cls(columns)

  @property
  def names(self) -> tuple[str, ...]:
    """Column names, in order."""
    return tuple(self._columns)

  def __len__(self) -> int:
    return len(next(iter(self._columns.values()), ()))

  def __contains__(self, name: str) -> bool:
    return name in self._columns

  def __getitem__(self, name: str) -> np.ndarray:
    if name not in self._columns:
      raise NoColumnError(name, self)
    return self._columns[name]

  def rows(self) -> Iterator[dict[str, Any]]:
    """The rows as dictionaries."""
    lists = [array.tolist() for array in self._columns.values()]
    for values in zip(*lists, strict=True):
      yield dict(zip(self._columns, values, strict=True))

  def where(self, **equals: object) -> "Table":
    """The rows whose columns equal these values (or are among a tuple)."""
    keep = np.ones(len(self), dtype=bool)
    for name, value in equals.items():
      wanted = value if isinstance(value, tuple) else (value,)
      found = np.isin(self[name], np.asarray(wanted))
      if self[name].dtype.kind == "f" and any(v != v for v in wanted):
        found |= np.isnan(self[name])
      keep &= found
    return self.keep(keep)

  def keep(self, rows: np.ndarray) -> "Table":
    """The rows where a boolean array is True, or those of these numbers."""
    return Table({name: array[rows] for name, array in self._columns.items()})

  def unique(self, name: str) -> list[Any]:
    """The distinct values of a column, in order of appearance."""
    return list(dict.fromkeys(_comparable(self[name])))

  def plus(self, **columns: object) -> "Table":
    """The table with more columns (or other values for old ones).

    A number is repeated; a text is filled in with each row: `plus(panel="{data}, {epsilon:g}")`.
    """

    def column(value: Any) -> Any:
      if not isinstance(value, str):
        return [value] * len(self) if np.ndim(value) == 0 else value
      try:
        return [value.format_map(row) for row in self.rows()]
      except KeyError as error:
        raise NoColumnError(error.args[0], self) from None

    return Table(self._columns | {name: column(value) for name, value in columns.items()})

  def join(self, other: "Table", on: Sequence[str], **columns: str) -> "Table":
    """Adds columns of another table, looked up by the columns in `on`.

    Args:
      other: has at most one row for each combination of `on`.
      on: columns that both tables have.
      **columns: new name -> column of `other`. A row without a match has
        missing values.
    """
    keys = zip(*(_comparable(other[name]) for name in on), strict=True)
    place = {key: i for i, key in enumerate(keys)}
    checks.require(len(place) == len(other), f"join needs each {tuple(on)} once in the other table")
    found = [place.get(key) for key in zip(*(_comparable(self[n]) for n in on), strict=True)]
    values = {new: other[old].tolist() for new, old in columns.items()}
    return self.plus(
      **{new: [None if i is None else own[i] for i in found] for new, own in values.items()}
    )

  def split(self, *names: str) -> Iterator[tuple[tuple[Any, ...], "Table"]]:
    """(values, rows) for each combination of these columns that occurs."""
    if not len(self):
      return
    keys = list(zip(*(_comparable(self[name]) for name in names), strict=True))
    places: dict[tuple[Any, ...], list[int]] = {}
    for i, key in enumerate(keys):
      places.setdefault(key, []).append(i)
    for key, rows in places.items():
      yield key, self.keep(np.array(rows))

  def pivot(self, row: str, column: str, value: str) -> np.ndarray:
    """[rows, columns] matrix of a value, in order of appearance.

    Every pair must occur exactly once: a mean over repeats is never implied.
    """
    rows, columns = self.unique(row), self.unique(column)
    matrix = np.full((len(rows), len(columns)), math.nan)
    i = np.searchsorted(np.sort(rows), self[row])
    j = np.searchsorted(np.sort(columns), self[column])
    i, j = np.argsort(rows)[i], np.argsort(columns)[j]
    checks.require(
      len(self) == len(rows) * len(columns) == len(set(zip(i, j, strict=True))),
      f"pivot needs each ({row}, {column}) exactly once; filter the table with .where(...) first",
    )
    matrix[i, j] = self[value]
    return matrix

  def to_pandas(self) -> Any:
    """The table as a `pandas.DataFrame`."""
    return _notebook.frame(self._columns)

  def _repr_html_(self) -> str:
    return _notebook.table(self._columns, len(self))

  def to_csv(self) -> str:
    """The table as CSV text: texts quoted, numbers with every digit.

    A text that a spreadsheet would run as a formula, such as a group named
    "=1+1" or "-1", gets an apostrophe in front, which shows that it is text.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(map(_escaped, self.names))
    for row in self.rows():
      writer.writerow([_shorter(value) for value in row.values()])
    return out.getvalue()

  @classmethod
  def from_csv(cls, text: str) -> "Table":
    """The table back from `to_csv`.

    Raises:
      ValueError: if the text is not of this form.
    """
    reader = csv.reader(io.StringIO(text), quoting=csv.QUOTE_NONNUMERIC, strict=True)
    try:
      names, *rows = [*reader] or [[]]
    except csv.Error as error:
      raise ValueError(f"line {reader.line_num}: {error}") from None
    if any(not isinstance(name, str) for name in names):
      raise ValueError("line 1: a column name is not quoted")
    names = [_unescaped(name) for name in names]
    if len(set(names)) < len(names):
      raise ValueError("line 1: two columns have the same name")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    for name, column in zip(names, columns, strict=True):
      if len({isinstance(value, str) for value in column}) > 1:
        raise ValueError(f"column {checks.shown(name)} mixes texts and numbers")
    return cls(
      {
        name: [_unescaped(v) if isinstance(v, str) else v for v in column]
        for name, column in zip(names, columns, strict=True)
      }
    )

  @classmethod
  def read(cls, path: pathlib.Path) -> "Table":
    """The table back from a file of `to_csv` text.

    Raises:
      RunError: if it cannot be read, or holds something else.
    """
    try:
      # Bytes: reading as text would change a line break within a cell.
      return cls.from_csv(path.read_bytes().decode("utf-8"))
    except OSError as error:
      raise _folders.RunError(f"{path} cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
      raise _folders.RunError(
        f"{path} is damaged ({str(error)[: checks.LONGEST]}); delete it, and "
        "the same `jaxfair run` writes it again"
      ) from None


def _comparable(column: np.ndarray) -> list[Any]:
  """The values, with one and the same object for every NaN."""
  return [math.nan if v != v else v for v in column.tolist()]


def _column(values: object) -> np.ndarray:
  array = np.asarray(values)
  if array.dtype.kind in "biuf":
    return array.astype(np.float64)
  listed = ["" if v is None else v for v in array.tolist()]
  if all(v == "" or _is_number(v) for v in listed) and not all(v == "" for v in listed):
    return np.array([math.nan if v == "" else v for v in listed], np.float64)
  return np.array([str(v) for v in listed], dtype=np.str_)


def _is_number(value: object) -> bool:
  return isinstance(value, int | float)


# Excel, LibreOffice and Google Sheets take a cell that begins with one of
# these for a formula, quoted or not (OWASP, "CSV Injection").
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001


def _escaped(text: str) -> str:
  """With an apostrophe in front, if a spreadsheet would run the text.

  A text that has such apostrophes itself gets one more, so that `_unescaped`
  gives every text back.
  """
  return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def safe_cell(text: str) -> str:
  """A cell of a CSV file for a spreadsheet: numbers as they are, formulas with an apostrophe."""
  try:
    float(text)
  except ValueError:
    return _escaped(text)
  return text


def _unescaped(text: str) -> str:
  doubled = text.startswith("'") and text.lstrip("'").startswith(_FORMULA)
  return text[1:] if doubled else text


def _shorter(value: Any) -> object:
  if isinstance(value, str):
    return _escaped(value)
  whole = isinstance(value, float) and value.is_integer()
  return int(value) if whole and abs(value) < 1e15 else value
