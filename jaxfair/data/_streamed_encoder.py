"""An encoder for a file that is larger than memory, fitted a chunk at a time.

What an encoder is fitted on are the words of each column, which columns hold numbers, and which
groups there are. A few rows show all of that: those that bring a word, a kind of number or a group
which no row before them has. The encoder of these rows is that of the whole file.
"""

import collections
import pathlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._column_checks import MAX_WORDS
from jaxfair.data._encoder import Encoder
from jaxfair.data._frames import from_frame, require_group_sizes
from jaxfair.data._source_files import chunks_of

MOST = MAX_WORDS + 1  # different words of a column that are looked at: more are refused


def fit_encoder(
  path: pathlib.Path,
  *,
  label: str,
  group: tuple[str, ...],
  drop: Collection[str] = (),
  min_group_size: int = 2,
  chunk_size: int = 65_536,
  **options: Any,
) -> Encoder:
  """The encoder that `from_frame` fits on all rows of a Parquet or Arrow file.

  Args:
    path: the file.
    label: see `from_frame`.
    group: the same.
    drop: the same.
    min_group_size: the same.
    chunk_size: number of rows that are in memory at once.
    **options: what else `from_frame` takes.
  """
  _, chunks = chunks_of(path, chunk_size)
  seen = _Seen(label, group, set(drop), set(options.get("categorical", ())))
  kept = [frame.iloc[seen.new_rows(frame)] for frame in chunks]
  try:
    checks.require(bool(kept), "the table has no rows; a header alone is not enough")
    found = from_frame(
      _joined(kept), label=label, group=group, drop=drop, min_group_size=1, **options
    )
    sizes = {" x ".join(words): number for words, number in seen.sizes.items()}
    require_group_sizes(sizes, group, min_group_size)
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None
  assert found.encoder is not None
  return found.encoder


class _Seen:
  """What the rows so far have shown."""

  def __init__(self, label: str, group: tuple[str, ...], drop: set[str], codes: set[str]):
    self._label, self._group, self._drop, self._codes = label, group, drop, codes
    self._known: dict[str, set[str]] = collections.defaultdict(set)  # words, or kinds of numbers
    self._first: dict[str, float] = {}  # number of a column
    self._rows = 0
    self.sizes: collections.Counter[tuple[str, ...]] = collections.Counter()

  def new_rows(self, frame: Any) -> list[int]:
    """Places of the rows of a chunk that show something new, ascending."""
    there = _tables.frame_names(frame)
    roles = [name for name in (self._label, *self._group) if name in there]
    words = {name: _words(frame, name) for name in roles}
    if self._label in words:
      missing = words[self._label] == ""
      checks.require(
        not missing.any(),
        f"label {self._label!r} is missing in some rows (the first is data row "
        f"{self._rows + int(missing.argmax()) + 1}); drop these rows first",
      )
    self._rows += len(frame)
    rows = set(self._new_groups(words))
    for name in there:
      if name not in self._drop:
        rows.update(self._new(name, words.get(name), frame))
    return sorted(rows)

  def _new(self, name: str, words: np.ndarray | None, frame: Any) -> Iterator[int]:
    number = np.asarray(frame[name][:0]).dtype.kind in "biuf" and name not in self._codes
    if words is None and number:
      yield from self._new_numbers(name, np.asarray(frame[name], np.float64))
      return
    yield from self._unseen(name, _words(frame, name) if words is None else words)

  def _new_numbers(self, name: str, values: np.ndarray) -> Iterator[int]:
    """Of numbers it matters whether some are known, missing, and different."""
    missing = np.isnan(values)
    if not missing.all():
      first = self._first.setdefault(name, float(values[missing.argmin()]))
      for kind, shown in (("known", values == first), ("other", ~missing & (values != first))):
        yield from self._unseen_kind(name, kind, shown)
    yield from self._unseen_kind(name, "missing", missing)

  def _unseen_kind(self, name: str, kind: str, shown: np.ndarray) -> Iterator[int]:
    if kind not in self._known[name] and shown.any():
      self._known[name].add(kind)
      yield int(shown.argmax())

  def _new_groups(self, words: dict[str, np.ndarray]) -> Iterator[int]:
    columns = [words[name] for name in self._group if name in words]
    if columns:
      cells = np.stack(columns, axis=1)
      distinct, first, counts = np.unique(cells, axis=0, return_index=True, return_counts=True)
      for cell, row, number in zip(distinct.tolist(), first.tolist(), counts, strict=True):
        if tuple(cell) not in self.sizes:
          yield row
        if tuple(cell) in self.sizes or len(self.sizes) < MOST:
          self.sizes[tuple(cell)] += int(number)

  def _unseen(self, name: str, words: np.ndarray) -> Iterator[int]:
    known = self._known[name]
    distinct, first = np.unique(words, return_index=True)
    for word, row in zip(distinct.tolist(), first.tolist(), strict=True):
      if word not in known and len(known) < MOST:
        known.add(word)
        yield row


def _words(frame: Any, name: str) -> np.ndarray:
  return _tables.words(_tables.select(frame, [name], text=[name])[name])


def _joined(frames: list[Any]) -> Any:
  import pandas

  return pandas.concat([frame for frame in frames if len(frame)], ignore_index=True)
