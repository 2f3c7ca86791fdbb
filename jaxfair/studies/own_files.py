"""Files of one's own that a run reads: all its cells from the same content.

Named sets need no such watch: `data.load` verifies their checksums.
"""

import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from jaxfair.studies import folders

NAME = folders.OWN_FILES


class OwnFiles:
  """The files that a config names under `csv`, and what is known of them.

  Their digests lie in the run directory, readable by its owner only: whoever
  knows all people but one could find that one by trying.
  """

  def __init__(
    self,
    values: Any,
    folder: pathlib.Path,
    tell: Callable[[str], None],
  ):
    """Recognises the files of an earlier run, or takes note of them.

    Args:
      values: the resolved config as plain values.
      folder: run directory.
      tell: told what cannot be known.

    Raises:
      RunError: if a file has changed since something was computed from it.
    """
    self._folder = folder
    self._digests: dict[str, str] = {}
    self._seen: dict[str, tuple[int, int]] = {}
    paths = sorted(set(_named(values)))
    known = folders.read_json(folder / NAME, {})
    if folders.holds_work(folder):
      self._digests = dict(known)
      self.check()
      for path in paths:
        if path not in known:
          tell(
            f"Whether {path} is the file that earlier cells of this run were "
            "computed from is not known."
          )
    found = ((path, self._digest(path)) for path in paths)
    now = {path: digest for path, digest in found if digest is not None}
    self._digests |= now
    if self._digests and self._digests != known:
      text = json.dumps(self._digests, indent=2)
      folders.write_whole(folder / NAME, text, mode=0o600)

  def check(self) -> None:
    """Stops a run whose files are not what they were; a lost file is not one.

    That it is lost the study says, if it needs it.
    """
    for path, known in self._digests.items():
      if self._digest(path, known) not in (known, None):
        raise folders.RunError(
          f"{path} has changed since cells of {self._folder} were computed "
          "from it; choose another --out, delete that directory, or put the "
          "earlier file back"
        )

  def _digest(self, path: str, known: str | None = None) -> str | None:
    """Of the content; None if it cannot be read."""
    try:
      status = os.stat(path)
      stamp = (status.st_mtime_ns, status.st_size)
      if known is not None and self._seen.get(path) == stamp:
        return known
      with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
      return None
    self._seen[path] = stamp
    return digest


def _named(values: Any) -> Iterator[str]:
  if isinstance(values, dict):
    for name, value in values.items():
      if name == "csv" and isinstance(value, str) and value:
        yield value
      yield from _named(value)
  elif isinstance(values, list | tuple):
    for value in values:
      yield from _named(value)
