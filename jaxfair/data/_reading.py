"""Reads a table of people from a file as they have it."""

import csv
import dataclasses
import functools
import io
import pathlib
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._arrow_cells import read_columns
from jaxfair.data._binary_files import BINARY, read_binary
from jaxfair.data._cells import find_cells
from jaxfair.data._files import PathLike, decoded, read_bytes
from jaxfair.data._tables import Column, Table, Text

SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 50  # lines that the separator is found out from
# Formats that people try; everything else is read as delimited text.
_OTHERS = re.compile(
  r"[.](arrow|feather|json|jsonl|ndjson|ods|xlsb|dta|sav|sas7bdat|rds|rdata|pkl|pickle|npy|npz|h5"
  r"|db|sqlite|xml|html|pdf|zip|bz2|xz|zst|7z|tar)",
  re.IGNORECASE,
)
_GROUPED = re.compile(r"[+-]?\d{1,3}([., ']\d{3})+([.,]\d+)?", re.ASCII)
_SIGNS = re.compile(r"\s*[%$€£¥₹]\s*")
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Layout:
  """How a text file is written; Excel and Parquet files need none of it.

  Attributes:
    separator: what stands between two cells.
    decimal: "." or ",".
    encoding: encoding of the characters.
    missing: cells that mean "not known".
  """

  separator: str = ","
  decimal: str = "."
  encoding: str = "utf-8"
  missing: tuple[str, ...] = tuple(sorted(_tables.MISSING))

  def __post_init__(self) -> None:
    _check_separator(self.separator)
    checks.one_of("decimal", self.decimal, (".", ","))
    checks.require(
      self.decimal != self.separator,
      f"decimal={self.decimal!r} is also the separator; pass separator=",
    )


def read_table(
  path: PathLike,
  *,
  separator: str | None = None,
  decimal: str | None = None,
  encoding: str | None = None,
  missing: Collection[str] = tuple(_tables.MISSING),
  text: Collection[str] = (),
  skip: Collection[str] = (),
) -> Table:
  """Reads a file of people: CSV (plain or .gz), Excel or Parquet.

  Args:
    path: the file; its first line names the columns. Excel needs pandas and openpyxl, Parquet
      needs pyarrow: `pip install jaxfair[files]`.
    separator: separator of cells; by default the one of comma, semicolon, tab and bar that is
      consistent with the first lines.
    decimal: "." or ","; by default a comma where the numbers of a column have one and no column
      has points.
    encoding: text encoding; by default UTF-8 or UTF-16 if the bytes are valid, else Windows'
      cp1252, else latin-1.
    missing: cells that mean "missing".
    text: columns whose cells stay text although they look like numbers.
    skip: columns that are not read.

  Returns:
    Columns by name, for `from_frame` and `Encoder.encode`.

  Raises:
    DataError: if the file cannot be read.
    ArgumentError: for an option that does not fit, lines of different lengths, columns of one
      name, and numbers with thousands separators.
  """
  return read_file(
    pathlib.Path(path),
    separator=separator,
    decimal=decimal,
    encoding=encoding,
    missing=missing,
    text=text,
    skip=skip,
  )[0]


def read_file(
  path: pathlib.Path,
  *,
  separator: str | None = None,
  decimal: str | None = None,
  encoding: str | None = None,
  missing: Collection[str] | None = None,
  text: Collection[str] = (),
  skip: Collection[str] = (),
  like: Layout | None = None,
  needed: Collection[str] | None = None,
) -> tuple[Table, Layout | None]:
  """The table of a file, and how it is written if it is a text file.

  Args:
    path: see `read_table`; so are the options that are not named here.
    separator: the same.
    decimal: the same.
    encoding: the same.
    missing: the same; None for the usual ones.
    text: the same.
    skip: the same.
    like: of an earlier file of the same kind: tells the missing cells, and the decimal sign of a
      file with the same separator, which few rows may not tell.
    needed: columns whose numbers must be readable; None for all.
  """
  if missing is None:
    missing = _tables.MISSING if like is None else like.missing
  try:
    if path.suffix.lower() in BINARY:
      return read_binary(path, missing, text, skip), None
    checks.require(
      not _OTHERS.fullmatch(path.suffix),
      f"{path.suffix} files cannot be read; save it as CSV (plain or .gz), Excel or Parquet",
    )
    content, encoding = decoded(path, read_bytes(path), encoding)
    if b"\n" not in content:  # lines of old end by a carriage return alone
      content = content.replace(b"\r", b"\n")
    header, start = _header(content, encoding)
    if separator is None:
      separator = _find_separator(content, encoding)
    _check_separator(separator)
    if decimal is None and like is not None and like.separator == separator:
      decimal = like.decimal
    names = _names(header, separator)
    places = {name: place for place, name in enumerate(names) if name not in skip}
    cells = functools.cache(
      functools.partial(find_cells, content, separator, len(names), encoding, start=start)
    )

    def column(name: str, sign: str) -> Any:
      return cells().column(places[name], text=name in text, missing=missing, decimal=sign)

    table = None
    if decimal != ",":
      table = read_columns(
        content, separator, len(names), encoding, places, start=start, text=text, missing=missing
      )
    if table is None:
      table = {name: column(name, decimal or ".") for name in places}
    commas = [] if decimal or separator == "," else _comma_columns(table, text)
    for name in commas:
      table[name] = column(name, ",")
    unsure = set(table if needed is None else needed) - set(text)
    _refuse_formats({name: table[name] for name in table if name in unsure})
    layout = Layout(
      separator, decimal or ("," if commas else "."), encoding, tuple(sorted(missing))
    )
    return table, layout
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None


def parse(
  content: str,
  *,
  separator: str = ",",
  names: Sequence[str] | None = None,
  comment: str | None = None,
  categorical: Collection[str] = (),
  missing: Collection[str] = _tables.MISSING,
) -> Table:
  """Reads the text of a published file, whose form is known, into arrays.

  Args:
    content: the text of the file.
    separator: what stands between two cells.
    names: column names, for a file without a header line.
    comment: lines that start with this are skipped.
    categorical: columns that stay text although they look like numbers.
    missing: cells that mean "not known".

  Returns:
    The table. Repeated column names get the suffix ".1", ".2", ...
  """
  _check_separator(separator)
  if comment is not None:
    lines = io.StringIO(content, newline="")
    content = "".join(line for line in lines if not line.startswith(comment))
  raw, start = content.encode(), 0
  if names is None:
    header, start = _header(raw, "utf-8")
    names = _unique_names(_cells_of(header, separator))
  cells = find_cells(raw, separator, len(names), "utf-8", start=start)
  return {
    name: _array(cells.column(place, text=name in categorical, missing=missing))
    for place, name in enumerate(names)
  }


def _array(values: Column) -> np.ndarray:
  return np.asarray(values)


def _check_separator(separator: object) -> None:
  checks.require(
    isinstance(separator, str)
    and len(separator) == 1
    and separator.isascii()
    and separator not in ' "\r\n',
    f"separator={checks.shown(separator)} must be one character, such as ',' or ';'",
  )


def _header(content: bytes, encoding: str) -> tuple[str, int]:
  """The first line that is not blank, and where the next one begins."""
  start = 0
  while content[start : start + 1] in (b"\r", b"\n"):
    start += 1
  end = content.find(b"\n", start) + 1 or len(content)
  while content.count(b'"', start, end) % 2 and end < len(content):  # a name with a line break
    end = content.find(b"\n", end) + 1 or len(content)
  header = content[start:end].decode(encoding).strip("\r\n")
  checks.require(bool(header.strip()), "the text is empty; a header line is needed")
  return header, end


def _cells_of(line: str, separator: str) -> list[str]:
  try:
    reader = csv.reader(
      io.StringIO(line, newline=""), delimiter=separator, skipinitialspace=True, strict=False
    )
    return [cell.strip() for cell in next(reader)]
  except (csv.Error, StopIteration) as error:
    raise checks.ArgumentError(f"the header cannot be read ({error}); check the quotes") from None


def _names(header: str, separator: str) -> list[str]:
  names = _cells_of(header, separator)
  names = [name or f"column_{place}" for place, name in enumerate(names)]
  twice = sorted({name for name in names if names.count(name) > 1}) if len(names) < 10**4 else []
  checks.require(
    not twice,
    f"two columns are called {twice[0] if twice else ''!r}; rename one of them in the header",
  )
  return _unique_names(names)


def _find_separator(content: bytes, encoding: str) -> str:
  """The separator that gives the first lines the same number of cells, two or more."""
  sample = content[: 2**16].decode(encoding, errors="ignore")
  lines = [line for line in sample.splitlines() if line.strip()]
  lines = lines[: min(_SAMPLE, max(1, len(lines) - 1))]  # the last may be cut short
  found = ",", 1
  for separator in SEPARATORS:
    try:
      rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
      continue
    widths = {len(row) for row in rows if row}
    if len(widths) == 1 and max(widths) > found[1]:
      found = separator, max(widths)
  if found[1] > 1:
    return found[0]
  return max(SEPARATORS, key=lines[0].count) if lines else ","


def _comma_columns(table: Table, text: Collection[str]) -> list[str]:
  """Columns of text in which every known cell is a number with a decimal comma, or whole."""
  return [
    name
    for name, values in table.items()
    if isinstance(values, Text)
    and name not in text
    and any("," in word for word in values.words)
    and all(not word or _tables.number(word, ",") is not None for word in values.words)
    and not all(not word or _GROUPED.fullmatch(word) for word in values.words)
  ]


def _refuse_formats(table: Table) -> None:
  """Raises for columns that would be read as words because of how their numbers are written."""
  forms = (_GROUPED, _COMMA, _tables.NUMBER)
  for name, values in table.items():
    words = [word for word in values.words if word] if isinstance(values, Text) else []
    if not words or not all(_SIGNS.sub("", word)[-1:].isdigit() for word in words[:100]):
      continue
    if all(any(form.fullmatch(_SIGNS.sub("", word)) for form in forms) for word in words):
      example = next(word for word in words if not _tables.NUMBER.fullmatch(word))
      signed = _SIGNS.search(example)
      how = (
        f"with the sign {signed[0].strip()}; write the number alone"
        if signed
        else "with thousands separators, or another decimal sign than the rest; write 1234.5"
      )
      raise checks.ArgumentError(
        f"column {name!r} has numbers such as {example!r}: {how}, pass decimal=',' if the comma "
        "is the decimal sign, or name the column in categorical= if these are codes"
      )


def _unique_names(header: Sequence[str]) -> list[str]:
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
