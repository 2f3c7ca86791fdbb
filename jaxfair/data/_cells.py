"""Cells of delimited text, found and typed by whole columns.

The text stays one buffer of bytes. A table of offsets says where each cell
ends; numbers are read from digits of many cells at once, and each distinct
word is decoded once. This is 10 times as fast as a list of strings per row.
"""

import csv
import io
import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.data._tables import Column, Text, number, sorted_text

# What stands between cells and lines where quotes had to be read: bytes that no table has.
_CELL, _LINE = "\x1f", "\x1e"
_BLOCK = 2**23  # bytes at a time
_ROWS = 2**14  # rows at a time: what is computed from them stays in the processor's cache
_LONGEST = 256  # longer words are compared one by one
_EXACT = 10.0 ** np.arange(23)  # every one a float64
_POWERS = np.array([10**k for k in range(20)] + 3 * [0], np.uint64)
_EACH = np.uint64(0x0101010101010101)
_UPPER = np.array([2**64 - 2 ** (64 - 8 * k) for k in range(9)], np.uint64)  # k last bytes
_WORDS = 3  # of eight bytes: 19 digits with a point
# Long doubles of 64 bits read up to 19 digits; elsewhere Python reads such cells.
_LONG = np.finfo(np.longdouble).nmant == 63
_MOST_DIGITS = 19 if _LONG else 15
_PLUS, _MINUS = b"+-"
_BLANK = np.array([chr(byte).isspace() and byte < 128 for byte in range(256)])


class Cells(NamedTuple):
  """Where the cells of a table are.

  Attributes:
    buffer: [size] bytes of the text.
    words: [size - 7] the eight bytes from each place on, as one number.
    ends: [n, width] where each cell ends; the next one begins behind the separator.
    start: where the first cell begins.
    encoding: encoding of the bytes.
  """

  buffer: np.ndarray
  words: np.ndarray
  ends: np.ndarray
  start: int
  encoding: str

  def column(
    self, place: int, *, text: bool, missing: Collection[str], decimal: str = "."
  ) -> Column:
    """One column: float64 where every known cell is a number, else text."""
    if not text:
      found = self._numbers(place, missing, decimal)
      if found is not None:
        return found
    return self._words(place, missing)

  def _bounds(self, place: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each cell of a column, without blanks around it."""
    end = self.ends[rows, place].astype(np.int64)
    if place:
      begin = self.ends[rows, place - 1].astype(np.int64) + 1
    else:
      first = self.start if rows.start == 0 else int(self.ends[rows.start - 1, -1]) + 1
      begin = np.concatenate([[first], self.ends[rows.start : rows.stop - 1, -1].astype(np.int64)])
      begin[1:] += 1
    for at, edge, step in ((0, begin, 1), (-1, end, -1)):
      while True:
        byte = self.buffer.take(edge + at, mode="clip")
        blank = (byte <= 32) & (begin < end)
        if not blank.any() or not (blank := blank & _BLANK[byte]).any():
          break
        edge[blank] += step
    return begin, end

  def _blocks(self) -> Iterator[slice]:
    for first in range(0, len(self.ends), _ROWS):
      yield slice(first, min(first + _ROWS, len(self.ends)))

  def _numbers(self, place: int, missing: Collection[str], decimal: str) -> np.ndarray | None:
    """[n] numbers; None if a known cell is not one."""
    found = np.empty(len(self.ends))
    known: dict[bytes, float | None] = {}
    for rows in self._blocks():
      begin, end = self._bounds(place, rows)
      values, rest = _read_numbers(self.buffer, self.words, begin, end, ord(decimal))
      first, inverse = _distinct(self.words, begin[rest], end[rest])
      others = []
      for row in rest[first].tolist():
        cell = self.buffer[begin[row] : end[row]].tobytes()
        if cell not in known:
          word = cell.decode(self.encoding).strip()
          known[cell] = np.nan if word in missing else number(word, decimal)
        value = known[cell]
        if value is None:
          return None
        others.append(value)
      values[rest] = np.array(others, np.float64)[inverse]
      found[rows] = values
    return found

  def _words(self, place: int, missing: Collection[str]) -> Text:
    """The column as text, with "" for missing cells."""
    codes = np.empty(len(self.ends), np.int32)
    known: dict[bytes, int] = {}
    places: dict[str, int] = {}
    for rows in self._blocks():
      begin, end = self._bounds(place, rows)
      first, inverse = _distinct(self.words, begin, end)
      ids = []
      for row in first.tolist():
        cell = self.buffer[begin[row] : end[row]].tobytes()
        if cell not in known:
          word = cell.decode(self.encoding).strip()
          known[cell] = places.setdefault("" if word in missing else word, len(places))
        ids.append(known[cell])
      codes[rows] = np.array(ids, np.int32)[inverse]
    return sorted_text(places, codes)


def find_cells(
  content: bytes, separator: str, width: int, encoding: str, *, start: int = 0
) -> Cells:
  """Finds the cells of delimited text.

  Args:
    content: the text; blank lines are skipped.
    separator: what stands between two cells.
    width: cells per line.
    encoding: encoding of the bytes, one in which ASCII characters are one byte each.
    start: where the first line begins, behind a header.

  Raises:
    ArgumentError: if a line has another number of cells, or quotes that do not end.
  """
  line = "\n"
  told = separator
  if content.find(b'"', start) >= 0:
    content, encoding = _without_quotes(content[start:], separator, encoding)
    start, separator, line = 0, _CELL, _LINE
  elif content.find(b"\r", start) >= 0:
    content = content[start:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start = 0
  if len(content) > start and not content.endswith(line.encode()):
    content += line.encode()
  if len(content) < 8:  # of which `words` are made
    content += 8 * line.encode()
  buffer = np.frombuffer(content, np.uint8)
  words = np.ndarray((buffer.size - 7,), "<u8", buffer=content, strides=(1,))
  kind = np.int32 if buffer.size < 2**31 else np.int64
  found = [np.empty(0, kind), *_ends(buffer, start, ord(separator), ord(line), kind)]
  ends = np.concatenate(found)
  del found
  last = buffer[ends] == ord(line)
  if ends.size != int(last.sum()) * width or not last[width - 1 :: width].all():
    counts = np.diff(np.flatnonzero(last), prepend=-1)
    row = int(np.argmax(counts != width))
    raise checks.ArgumentError(
      f"data row {row + 1} has {counts[row]} cells where {width} are expected; check the "
      f"separator ({told!r}) and the quotes"
    )
  return Cells(buffer, words, ends.reshape(-1, width), start, encoding)


def _ends(
  buffer: np.ndarray, start: int, separator: int, line: int, kind: type
) -> Iterator[np.ndarray]:
  """Where cells end, some bytes at a time; blank lines have no cells."""
  before = line
  for place in range(start, buffer.size, _BLOCK):
    block = buffer[place : place + _BLOCK]
    new = block == line
    blank = new & np.concatenate([[before == line], new[:-1]])
    yield (np.flatnonzero((new | (block == separator)) & ~blank) + place).astype(kind)
    before = int(block[-1])


def _without_quotes(content: bytes, separator: str, encoding: str) -> tuple[bytes, str]:
  """The same cells between bytes that need no quotes, in UTF-8."""
  lines = io.TextIOWrapper(io.BytesIO(content), encoding, newline="")
  reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
  written = bytearray()
  try:
    while rows := list(itertools.islice((row for row in reader if row), 2**12)):
      text = "".join(_CELL.join(row) + _LINE for row in rows)
      cells = sum(map(len, rows))
      strange = text.count(_CELL) + text.count(_LINE) != cells
      checks.require(not strange, "the text holds the control characters 1E or 1F; remove them")
      written += text.encode()
  except csv.Error as error:
    raise checks.ArgumentError(
      f"line {reader.line_num} cannot be read ({error}); check the quotes"
    ) from None
  return bytes(written), "utf-8"


def _read_numbers(
  buffer: np.ndarray, words: np.ndarray, begin: np.ndarray, end: np.ndarray, point: int
) -> tuple[np.ndarray, np.ndarray]:
  """[n] numbers of plain cells ("-12.5"), and the rows of all other cells.

  A mantissa below 2^53 and a power of ten up to 10^22 are float64 exactly, so their quotient is
  rounded once, as by Python. With up to 19 digits the quotient is rounded to 64 bits first:
  rounding it again gives the same unless it lies halfway between two float64.
  """
  first = buffer.take(begin, mode="clip")
  negative = (first == _MINUS) & (begin < end)
  length = end - begin - (negative | ((first == _PLUS) & (begin < end)))
  eights = _last_bytes(words, end, length)
  points, decimals = _find(eights, length, point)
  pointed = points == 1
  if decimals.any() or pointed.any():
    fraction, plain = _digits(eights, end, decimals)
    end, length = end - decimals - pointed, length - decimals - pointed
    whole, also = _digits(_last_bytes(words, end, length), end, length)
    plain &= also
    length += decimals + pointed
  else:
    whole, plain = _digits(eights, end, length)
    fraction = np.zeros_like(whole)
  count = length - pointed
  plain &= (points <= 1) & (count > 0) & (count <= _MOST_DIGITS)
  decimals = np.minimum(decimals, 22)
  mantissa = whole * _POWERS[decimals] + fraction
  done = plain & (mantissa < 2**53)
  values = mantissa / _EXACT[decimals]
  if _LONG:
    long = np.flatnonzero(plain & ~done)
    quotient = mantissa[long].astype(np.longdouble) / _EXACT[decimals[long]].astype(np.longdouble)
    halfway = quotient.view(np.uint64)[::2] & np.uint64(0x7FF) == 0x400
    values[long] = quotient.astype(np.float64)
    done[long[~halfway]] = True
  return np.where(negative, -values, values), np.flatnonzero(~done)


def _last_bytes(words: np.ndarray, end: np.ndarray, length: np.ndarray) -> list[np.ndarray]:
  """[n] the last eight bytes before `end`, the eight before these, ... of cells so long."""
  needed = min(_WORDS, -(-int(length.max(initial=0)) // 8))
  return [words[np.maximum(end - 8 * (place + 1), 0)] for place in range(needed)]


def _find(eights: list[np.ndarray], length: np.ndarray, byte: int) -> tuple[np.ndarray, np.ndarray]:
  """[n] how often a byte is in the cell, and how many bytes are behind it if that is once."""
  count, behind = np.zeros(length.size, np.int64), np.zeros(length.size, np.int64)
  for place, eight in enumerate(eights):
    # 0x80 in each byte that is the wanted one.
    other = eight ^ (np.uint64(byte) * _EACH)
    found = ~(((other & (0x7F * _EACH)) + 0x7F * _EACH) | other | (0x7F * _EACH))
    found &= _UPPER[_inside(length, place)]
    if found.any():
      after = 7 - (np.bitwise_count(found - np.uint64(1)) // 8).astype(np.int64)
      behind = np.where((found != 0) & (count == 0), 8 * place + after, behind)
      count += np.bitwise_count(found)
  return count, behind


def _digits(
  eights: list[np.ndarray], end: np.ndarray, length: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """[n] the whole number in the last bytes before `end`, and whether all of them are digits."""
  value, plain = np.zeros(end.size, np.uint64), length <= 8 * len(eights)
  for place in reversed(range(len(eights))):
    inside = _inside(length, place)
    upper = _UPPER[inside]
    eight = (eights[place] & upper) | (ord("0") * _EACH & ~upper)
    high, low = 0xF0 * _EACH, 0x06 * _EACH
    plain &= ((eight & high) | (((eight + low) & high) >> np.uint64(4))) == 0x33 * _EACH
    plain &= (end >= 8 * (place + 1)) | (inside == 0)
    # Neighboring digits, pairs and fours are joined side by side in one word.
    eight = (eight - ord("0") * _EACH) * np.uint64(2561) >> np.uint64(8)
    eight = (eight & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601) >> np.uint64(16)
    eight = (eight & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001) >> np.uint64(32)
    value = value * np.uint64(10**8) + eight
  return value, plain


def _inside(length: np.ndarray, place: int) -> np.ndarray:
  """[n] how many of the eight bytes at this place belong to the cell."""
  return np.minimum(np.maximum(length - 8 * place, 0), 8)


def _first_bytes(words: np.ndarray, begin: np.ndarray) -> np.ndarray:
  """[n] the eight bytes from `begin` on, with zeros behind the end of the text."""
  start = np.minimum(begin, len(words) - 1)
  beyond = np.minimum(begin - start, 7).astype(np.uint64)
  return words[start] >> (np.uint64(8) * beyond)


def _distinct(
  words: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Rows of distinct cells, at least one of each, and for each row its place in them."""
  length = end - begin
  everyone = np.arange(length.size)
  if length.max(initial=0) > _LONGEST:
    return everyone, everyone
  mixed = length.astype(np.uint64)
  parts = [length]
  for start in range(0, int(length.max(initial=0)), 8):
    part = _first_bytes(words, begin + start) & ~_UPPER[8 - _inside(length, start // 8)]
    parts.append(part)
    mixed = (mixed ^ part) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
  _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
  if any((part != part[first][inverse]).any() for part in parts):
    return everyone, everyone  # two cells with one hash: one in 2^64 pairs, unless by design
  return first, inverse
