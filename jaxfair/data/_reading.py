"""Reads a table of people from a file as they have it."""

import dataclasses
import pathlib
from collections.abc import Collection

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._files import PathLike, read_text
from jaxfair.data._tables import Table

SEPARATORS = (",", ";", "\t", "|")


@dataclasses.dataclass(frozen=True)
class Layout:
  """How a text file is written; Excel and Parquet files need none of it.

  Attributes:
    separator: what stands between two cells.
    decimal: "." or ",".
    encoding: of the characters.
    missing: cells that mean "not known".
  """

  separator: str = ","
  decimal: str = "."
  encoding: str = "utf-8-sig"
  missing: tuple[str, ...] = tuple(sorted(_tables.MISSING))


def read_table(
  path: PathLike,
  *,
  separator: str | None = None,
  decimal: str | None = None,
  encoding: str | None = None,
  missing: Collection[str] = tuple(_tables.MISSING),
  text: Collection[str] = (),
) -> Table:
  """Reads a file of people: CSV (plain or .gz), Excel or Parquet.

  Args:
    path: the file; its first line names the columns.
    separator: what stands between two cells; found out by default.
    decimal: "." or ","; found out by default.
    encoding: of the characters; found out by default.
    missing: cells that mean "not known".
    text: columns whose cells stay text although they look like numbers.

  Returns:
    Columns by name, for `from_frame` and `Encoder.encode`.
  """
  path = pathlib.Path(path)
  try:
    return read_file(
      path, separator=separator, decimal=decimal, encoding=encoding, missing=missing, text=text
    )[0]
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None


def read_file(
  path: pathlib.Path,
  *,
  separator: str | None,
  decimal: str | None,
  encoding: str | None,
  missing: Collection[str],
  text: Collection[str],
) -> tuple[Table, Layout]:
  """The table of a file, and how the file is written."""
  encoding = "utf-8-sig" if encoding is None else encoding
  found = read_text(path, encoding)
  if separator is None:
    header = found.partition("\n")[0]
    separator = max(SEPARATORS, key=header.count)
  layout = Layout(separator, decimal or ".", encoding, tuple(sorted(missing)))
  table = _tables.parse(found, separator=separator, categorical=text, missing=layout.missing)
  return table, layout
