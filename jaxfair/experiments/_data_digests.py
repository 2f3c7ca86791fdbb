"""Digests of the data of a run, so that all its cells use the same people.

A user's own files are checked whenever a run is continued, named sets when
they are loaded. Those could differ where no checksum is known, or where a
stand-in took the place of a set that is there now.
"""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator

from jaxfair._whole_files import write_whole
from jaxfair.experiments import _folders
from jaxfair.experiments._people import watched


class DataDigests:
  """Digests of the files that a config names under `csv`, and of named sets.

  They are in the run directory, readable by its owner only: anyone who knows all people but one
  could find that one by trial.
  """

  def __init__(
    self, values: object, folder: pathlib.Path, loaded: dict[str, str], tell: Callable[[str], None]
  ):
    """Compares the data with that of an earlier run, or records it.

    Args:
      values: the resolved config as plain values.
      folder: run directory.
      loaded: digests of named sets that were loaded so far.
      tell: told what cannot be known.

    Raises:
      RunError: if data has changed since something was computed from it.
    """
    self._path = folder / _folders.DATA
    self._digests: dict[str, str] = {}
    self._files = _named_files(values)
    if _folders.holds_work(folder):
      self._digests = _folders.read_words(self._path)
      for path in self._files:
        if path not in self._digests:
          tell(
            f"It is unknown whether earlier cells of this run were computed from the same {path}."
          )
    self.note(loaded | file_digests(values))

  @contextlib.contextmanager
  def kept(self) -> Iterator[None]:
    """Checks that the data does not change while a cell is computed."""
    self._check_files()
    with watched(lambda name, digest: self.note({name: digest})):
      yield
    self._check_files()  # one may have been edited meanwhile

  def _check_files(self) -> None:
    """Checks the files again; a missing file is left for the study to report."""
    for path in self._files:
      self._require(path, _file_digest(path) or self._digests.get(path))

  def note(self, found: dict[str, str]) -> None:
    """Records what was read; raises if it is not what earlier cells read."""
    for name, digest in found.items():
      self._require(name, digest)
    if not found.keys() <= self._digests.keys():
      self._digests |= found
      text = json.dumps(self._digests, indent=2)
      write_whole(self._path, text, mode=0o600)

  def _require(self, name: str, digest: str | None) -> None:
    if self._digests.get(name, digest) != digest:
      raise _folders.RunError(
        f"{name} has changed since cells of {self._path.parent} were computed from it; choose "
        "another --out, delete that directory, or restore the earlier data"
      )


def file_digests(values: object) -> dict[str, str]:
  """Digests of the files that a config names under `csv`; one that cannot be read has none."""
  found = {path: _file_digest(path) for path in _named_files(values)}
  return {path: digest for path, digest in found.items() if digest}


def _file_digest(path: str) -> str | None:
  """The digest of the content; None if it cannot be read."""
  try:
    status = os.stat(path)
    return _digest_of_version(path, status.st_mtime_ns, status.st_size)
  except OSError:
    return None


@functools.lru_cache(maxsize=64)
def _digest_of_version(path: str, modified: int, size: int) -> str:
  """Reads a file once for all cells, and again when it has changed."""
  del modified, size
  with open(path, "rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()


def _named_files(values: object) -> list[str]:
  return sorted(set(_named(values)))


def _named(values: object) -> Iterator[str]:
  """The files in a config's plain values."""
  if isinstance(values, dict):
    for name, value in values.items():
      if name == "csv" and isinstance(value, str) and value:
        yield value
      yield from _named(value)
  elif isinstance(values, list | tuple):
    for value in values:
      yield from _named(value)
