"""Tables that are larger than memory, rewritten once as arrays whose rows can be read alone."""

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair._whole_files import owner_only, write_whole
from jaxfair.data._encoder import Encoder
from jaxfair.data._files import DataError, PathLike
from jaxfair.data._identity import csv_identity
from jaxfair.data._sources import RECORD, open_source
from jaxfair.types import Source

_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather")


def write_source(
  path: PathLike,
  folder: PathLike,
  *,
  encoder: Encoder,
  transform: Callable[[np.ndarray], np.ndarray] | None = None,
  chunk_size: int = 65_536,
  fitted_here: bool = False,
) -> Source:
  """Converts a Parquet or Arrow file to a folder of arrays, a chunk at a time.

  Parquet compresses many rows together, so a random row cannot be read alone; the folder's arrays
  are memory-mapped. It needs the extra `files`.

  Args:
    path: a `.parquet` or an Arrow file (`.arrow`, `.feather`).
    folder: a new folder. It holds the private people, and is closed to other users.
    encoder: makes features, class ids and group ids of the columns. Take it from declared ranges
      and categories, or from public people: `data.from_csv("public.csv", ...).encoder`.
    transform: of [n, d] features, such as a scaler's `apply`; it sees one chunk at a time. Leave
      it out to train by `jaxfair train FOLDER`, which scales features itself.
    chunk_size: number of rows that are in memory at once.
    fitted_here: the encoder was fitted on these very people, so that categories which it has from
      them are not taken to be public.

  Returns:
    The source; `data.open_source(folder)` opens it again.
  """
  checks.integer("chunk_size", chunk_size, low=1)
  folder = pathlib.Path(folder)
  checks.require(
    not folder.exists() or not any(folder.iterdir()),
    f"folder={str(folder)!r} is not empty; choose another folder",
  )
  size, chunks = chunks_of(pathlib.Path(path), chunk_size)
  checks.require(size > 0, f"{path} has no rows; training needs some")
  owner_only(folder)
  maps: dict[str, np.ndarray] = {}
  done = 0
  for table in chunks:
    found = encoder.encode(table, need_label=True, need_group=True)
    x = found.x if transform is None else transform(found.x)
    parts = {"x": x, "y": found.y, "group": found.group}
    for name, part in parts.items():
      part = np.asarray(part)
      if name not in maps:
        shape = (size, *part.shape[1:])
        maps[name] = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", part.dtype, shape)
      maps[name][done : done + len(part)] = part
    done += len(found.x)
  for written in maps.values():
    assert isinstance(written, np.memmap)
    written.flush()
  checks.require(done == size, f"{path} declares {size} rows but has {done}")
  record: dict[str, Any] = {"size": size}
  if transform is None:  # later people are encoded the same way
    record |= record_of(path, encoder, fitted_here=fitted_here)
  write_whole(folder / RECORD, json.dumps(record), mode=0o600)
  return open_source(folder)


def record_of(path: PathLike, encoder: Encoder, *, fitted_here: bool) -> dict[str, Any]:
  """Whose people a folder holds and how they were encoded, as JSON values; as private as they are.

  Reads the whole file.
  """
  told = encoder if fitted_here else encoder.given()
  own = {"encoder": told.to_record(), "identity": csv_identity(path).hex()}
  found: dict[str, Any] = json.loads(json.dumps(own))
  return found


def chunks_of(path: pathlib.Path, chunk_size: int) -> tuple[int, Iterator[Any]]:
  """The number of rows of a file, and its tables one after the other."""
  checks.require(
    path.suffix in (*_PARQUET, *_ARROW),
    f"path={str(path)!r} is not known; use a .parquet, .arrow or .feather file",
  )
  try:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
  except ImportError:
    raise DataError(f"{path} needs pyarrow; pip install 'jaxfair[files]'") from None
  try:
    if path.suffix in _PARQUET:
      file = pyarrow.parquet.ParquetFile(path)
      batches = file.iter_batches(batch_size=chunk_size)
      return file.metadata.num_rows, (batch.to_pandas() for batch in batches)
    opened = pyarrow.ipc.open_file(pyarrow.memory_map(str(path)))
  except (OSError, pyarrow.ArrowException) as error:
    raise DataError(f"{path} cannot be read ({error})") from None
  numbers = range(opened.num_record_batches)
  size = sum(opened.get_batch(number).num_rows for number in numbers)

  def cut() -> Iterator[Any]:
    for number in numbers:
      batch = opened.get_batch(number)
      for first in range(0, batch.num_rows, chunk_size):
        yield batch.slice(first, chunk_size).to_pandas()

  return size, cut()
