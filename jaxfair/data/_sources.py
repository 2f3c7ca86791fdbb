"""People who stay on disk: memory-mapped arrays and records that are read row by row."""

import dataclasses
import hashlib
import json
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data._file_rows import forget, row_reader
from jaxfair.data._files import DataError
from jaxfair.types import Examples, Source

RECORD = "source.json"  # in a folder that `write_source` wrote, and last
CHUNK = 2**24  # bytes that are hashed at a time


def open_source(x: Any, y: Any = None, group: Any = None) -> Source:
  """Opens people who are read when they are needed, without reading them now.

  Args:
    x: one of
      - the path of a `.npz` file of arrays `x`, `y` and `group`, written by `np.savez`;
      - the folder that `data.write_source` wrote;
      - [n, ...] features: an array, an `np.memmap` or the path of a `.npy` file, with `y`;
      - anything with `__len__` and `__getitem__` whose items are `(x, y)` or `(x, y, group)` or
        mappings with these names, such as a data source of grain. A step reads its items one by
        one.
    y: [n] class ids, an array or the path of a `.npy` file.
    group: [n] group ids; everybody is in group 0 if it is left out.

  Returns:
    A `Source`, which `training.dp_sgd`, `train_to_budget` and `fit` take in place of examples.

  Privacy:
    Trainers draw their own Poisson samples of the row numbers. A loader that shuffles epochs is
    not what the accountant assumes, so only random access to its items is used.
  """
  if y is not None:
    return _arrays(
      _array("x", x), _array("y", y), None if group is None else _array("group", group)
    )
  checks.require(group is None, "group is given without y; pass both, or put both into x's items")
  if isinstance(x, str | os.PathLike):
    path = pathlib.Path(x)
    if path.is_dir():
      return _folder(path)
    checks.require(
      path.suffix == ".npz",
      f"x={checks.shown(str(x))} needs y: pass y=, or an .npz file with x and y, or a folder of "
      "data.write_source",
    )
    maps = _npz(path)
    checks.require(
      {"x", "y"} <= set(maps), f"{path} has arrays {', '.join(maps)}; name them x, y and group"
    )
    return _arrays(maps["x"], maps["y"], maps.get("group"))
  usable = hasattr(x, "__len__") and hasattr(x, "__getitem__") and not hasattr(x, "dtype")
  checks.require(
    usable, "x needs y, unless it is a file or has __len__ and __getitem__ with items (x, y)"
  )
  checks.require(len(x) > 0, "x is empty; training needs some rows")
  return _Items(x)


@dataclasses.dataclass(frozen=True, eq=False)
class _Arrays:
  """Arrays, in memory or mapped from a file."""

  people: Examples
  readers: tuple[Callable[[np.ndarray], np.ndarray], ...]

  @property
  def size(self) -> int:
    """Number of people."""
    return self.people.size

  def take(self, rows: np.ndarray) -> Examples:
    """Copies of some rows."""
    return Examples(*(read(rows) for read in self.readers))

  def fingerprint(self) -> str:
    """SHA-256 of all arrays; reads them once."""
    digest = hashlib.sha256()
    for leaf in self.people:
      digest.update(f"{leaf.shape} {leaf.dtype}".encode())
      for chunk in _chunks(leaf):
        digest.update(np.ascontiguousarray(chunk).data)
        forget(leaf)
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True, eq=False)
class _Items:
  """Records with random access."""

  items: Any

  @property
  def size(self) -> int:
    """Number of people."""
    return len(self.items)

  def take(self, rows: np.ndarray) -> Examples:
    """Some records, stacked."""
    found = [_record(self.items[int(row)]) for row in rows]
    if not found:
      return self.take(np.zeros(1, int)).take(slice(0, 0))
    return Examples(*(np.stack(column) for column in zip(*found, strict=True)))

  def fingerprint(self) -> str:
    """SHA-256 of all records; reads them once."""
    digest = hashlib.sha256(str(self.size).encode())
    for row in range(self.size):
      for leaf in _record(self.items[row]):
        digest.update(f"{leaf.shape} {leaf.dtype}".encode())
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()


def _record(item: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Features, class id and group id of an item."""
  fields = item if isinstance(item, Mapping) else dict(zip(("x", "y", "group"), item, strict=False))
  checks.require(
    "x" in fields and "y" in fields,
    "items need x and y: tuples (x, y) or mappings with these names",
  )
  group = fields.get("group", 0)
  return (
    np.asarray(fields["x"]),
    np.asarray(fields["y"], np.int32),
    np.asarray(0 if group is None else group, np.int32),
  )


def _arrays(x: Any, y: Any, group: Any) -> Source:
  if group is None:
    group = np.broadcast_to(np.zeros((), np.int32), np.shape(y)[:1])
  people = Examples(x, y, group)
  checks.people(people)
  return _Arrays(people, tuple(map(row_reader, people)))


def _array(name: str, value: Any) -> np.ndarray:
  """An array as it is, or a file of one, mapped."""
  if not isinstance(value, str | os.PathLike):
    checks.require(
      isinstance(value, np.ndarray), f"{name} is a {type(value).__name__}; pass an array or a path"
    )
    array: np.ndarray = value
    return array
  try:
    return np.load(value, mmap_mode="r", allow_pickle=False)
  except (OSError, ValueError, EOFError) as error:
    raise DataError(f"{name}={value} is not a .npy file ({error}); write it with np.save") from None


def _folder(path: pathlib.Path) -> Source:
  if not (path / RECORD).exists():
    raise DataError(f"{path} is not a finished folder of data.write_source; write it again")
  record = json.loads((path / RECORD).read_text(encoding="utf-8"))
  found = _arrays(*(_array(name, path / f"{name}.npy") for name in ("x", "y", "group")))
  checks.require(
    found.size == record["size"], f"{path} holds {found.size} people, not {record['size']}"
  )
  return found


def _npz(path: pathlib.Path) -> dict[str, np.ndarray]:
  """The arrays of an uncompressed .npz file, mapped."""
  maps: dict[str, np.ndarray] = {}
  try:
    with zipfile.ZipFile(path) as file, path.open("rb") as raw:
      for member in file.infolist():
        if member.compress_type != zipfile.ZIP_STORED:
          raise DataError(f"{path} is compressed, so single rows cannot be read; use np.savez")
        # A local header: 26 bytes, the lengths of a name and of an extra field, both, the data.
        raw.seek(member.header_offset + 26)
        lengths = np.frombuffer(raw.read(4), "<u2")
        raw.seek(int(lengths.sum()), os.SEEK_CUR)
        version = np.lib.format.read_magic(raw)
        read = {
          (1, 0): np.lib.format.read_array_header_1_0,
          (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, by_column, dtype = read(raw)
        maps[member.filename.removesuffix(".npy")] = np.memmap(
          path, dtype, "r", raw.tell(), shape, "F" if by_column else "C"
        )
  except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
    raise DataError(f"{path} is not a .npz file ({error}); write it with np.savez") from None
  return maps


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
  """The rows of an array, about CHUNK bytes at a time."""
  per_row = max(1, array[:1].nbytes)
  step = max(1, CHUNK // per_row)
  for first in range(0, len(array), step):
    yield np.asarray(array[first : first + step])
