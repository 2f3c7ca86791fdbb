"""Cells of delimited text by pyarrow, where it is installed and reads them as `_cells` does."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data._cells import find_cells
from jaxfair.data._tables import Column, Text, sorted_text

LEAST = 2**20  # bytes; smaller texts are read as fast without
_SAMPLE = 2**16  # bytes from which the kinds of the columns are guessed


def read_columns(
  content: bytes,
  separator: str,
  width: int,
  encoding: str,
  places: Mapping[str, int],
  *,
  start: int,
  text: Collection[str],
  missing: Collection[str],
) -> dict[str, Column] | None:
  """Columns as `Cells.column` gives them, in a third of its time.

  Whatever pyarrow might read in another way (quotes, carriage returns, a word among numbers,
  infinities) is left to `_cells`.

  Args:
    content: the text.
    separator: what stands between two cells.
    width: cells per line.
    encoding: encoding of the bytes.
    places: wanted columns by name, and which cell of a line each is.
    start: where the first line begins, behind a header.
    text: columns whose cells stay text although they look like numbers.
    missing: cells that mean "not known".

  Returns:
    None if the text has to be read by `_cells`.
  """
  plain = encoding in ("utf-8", "ascii") and len(content) >= LEAST
  if not plain or any(content.find(byte, start) >= 0 for byte in (b'"', b"\r", b"\0")):
    return None
  try:
    import pyarrow
    from pyarrow import csv
  except ImportError:
    return None
  try:
    numbers = _numbers(content, separator, width, encoding, places, start, text, missing)
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    kinds = {
      str(place): pyarrow.float64() if name in numbers else words for name, place in places.items()
    }
    found = csv.read_csv(
      pyarrow.BufferReader(pyarrow.py_buffer(content).slice(start)),
      read_options=csv.ReadOptions(
        use_threads=False, column_names=[str(place) for place in range(width)]
      ),
      parse_options=csv.ParseOptions(delimiter=separator, quote_char=False),
      convert_options=csv.ConvertOptions(
        column_types=kinds, include_columns=list(kinds), null_values=list(missing)
      ),
    )
  except (pyarrow.ArrowException, checks.ArgumentError):
    return None
  table: dict[str, Column] = {}
  for name, place in places.items():
    column = found.column(str(place))
    if name in numbers:
      values = column.to_numpy()
      if np.isnan(values).sum() != column.null_count or np.isinf(values).any():
        return None
      table[name] = values
    else:
      table[name] = _words(column, missing)
  return table


def _numbers(
  content: bytes,
  separator: str,
  width: int,
  encoding: str,
  places: Mapping[str, int],
  start: int,
  text: Collection[str],
  missing: Collection[str],
) -> set[str]:
  """Columns that look like numbers in the first lines."""
  end = content.rfind(b"\n", start, start + _SAMPLE) + 1 or len(content)
  cells = find_cells(content[:end], separator, width, encoding, start=start)
  return {
    name
    for name, place in places.items()
    if not isinstance(cells.column(place, text=name in text, missing=missing), Text)
  }


def _words(column: Any, missing: Collection[str]) -> Text:
  """A column of words, without blanks around them, and "" for missing cells."""
  whole = column.unify_dictionaries().combine_chunks()
  places: dict[str, int] = {}
  ids = [
    places.setdefault("" if (word := cell.strip()) in missing else word, len(places))
    for cell in _strings(whole.dictionary)
  ]
  codes = np.asarray(ids, np.int32)[whole.indices.to_numpy()]
  return sorted_text(places, codes)


def _strings(values: Any) -> Sequence[str]:
  found: list[str] = values.to_pylist()
  return found
