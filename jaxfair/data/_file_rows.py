"""Rows of an array that is mapped from a file, without filling memory with what was read.

A page of a memory map that was accessed counts as memory of the process until it is unmapped,
although it is cache that the system can reclaim. Files of up to 512 MB stay mapped nevertheless:
copying a row of a map is faster than reading it. Rows of larger files are read by system calls,
which map nothing, so memory does not grow with the file.
"""

import itertools
import mmap
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

KEPT = 2**29  # bytes of a file that may stay mapped
TOGETHER = 256  # rows that are read before they are copied: more would need new memory
PIECE = 4096  # rows of a map that are looked at before it is unmapped


def row_reader(array: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
  """A function that copies rows of an array, in memory or mapped.

  Args:
    array: [n, ...] an array; if it is a map, the file must not change.
  """
  held = _large_map(array)
  if held is None:
    return lambda rows: _copied(np.asarray(array), rows)
  if array.flags.c_contiguous:
    return _FileRows(array, held)
  return lambda rows: _unmapped(array, rows)


def forget(array: np.ndarray) -> None:
  """Unmaps the pages of a large map that is only read; the system's page cache keeps them."""
  held = _large_map(array)
  if held is not None:
    held.madvise(mmap.MADV_DONTNEED)


class _FileRows:
  """Reads rows of a file at the places where a map has them."""

  def __init__(self, array: Any, held: mmap.mmap) -> None:
    before_map = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    within_map = array.ctypes.data - np.frombuffer(held, np.uint8).ctypes.data
    self._start, self._size = before_map + within_map, len(array)
    self._shape, self._dtype = array.shape[1:], array.dtype
    self._bytes = array.strides[0]
    self._file = os.open(array.filename, os.O_RDONLY)
    weakref.finalize(self, os.close, self._file)

  def __call__(self, rows: np.ndarray) -> np.ndarray:
    """Copies of some rows."""
    places = (self._start + self._bytes * _checked(rows, self._size)).tolist()
    found = np.empty((len(rows), *self._shape), self._dtype)
    room, same = found.reshape(-1).view(np.uint8).data, itertools.repeat
    for first in range(0, len(rows), TOGETHER):
      part = places[first : first + TOGETHER]
      read = b"".join(map(os.pread, same(self._file), same(self._bytes), part))
      if len(read) != self._bytes * len(part):
        raise OSError("a file of people became shorter while it was read")
      start = first * self._bytes
      room[start : start + len(read)] = read
    return found


def _copied(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
  rows = _checked(rows, len(array))
  if not array.flags.c_contiguous:
    return array[rows]  # np.take would first copy the whole array
  found = np.empty((len(rows), *array.shape[1:]), array.dtype)
  # All rows are known to be there; "raise" would copy once more.
  return np.take(array, rows, axis=0, out=found, mode="clip")


def _unmapped(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
  """Copies of rows that are not in one piece, such as those of a file that is ordered by column."""
  rows = _checked(rows, len(array))
  held, found = np.asarray(array), np.empty((len(rows), *array.shape[1:]), array.dtype)
  for first in range(0, len(rows), PIECE):
    piece = slice(first, first + PIECE)
    found[piece] = held[rows[piece]]
    forget(array)
  return found


def _checked(rows: np.ndarray, size: int) -> np.ndarray:
  rows = np.asarray(rows, np.int64)
  if len(rows) and not (rows.min() >= 0 and rows.max() < size):
    raise IndexError(f"rows must be between 0 and {size - 1}")
  return rows


def _large_map(array: Any) -> mmap.mmap | None:
  """The map behind an array of a large file that is only read."""
  held = array
  while isinstance(held, np.ndarray):
    held = held.base
  only_read = isinstance(held, mmap.mmap) and getattr(array, "mode", "") == "r"
  return held if only_read and len(held) > KEPT else None
