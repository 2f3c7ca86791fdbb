"""Run directories: one config, one writer, files whole or not at all."""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from jaxfair import checks

SECRET = "secret_key"
DATA = "data.json"
RECORDS = ("config.toml", "versions.json", "run.json", DATA, SECRET, ".lock")


class RunError(checks.JaxfairError):
  """A run directory that cannot be used, and what to do."""


@contextlib.contextmanager
def locked(folder: pathlib.Path, config: str) -> Iterator[None]:
  """Holds a run directory, so that one process at a time writes it.

  Args:
    folder: made if need be, and removed again if a person's mistake shows
      before anything was computed.
    config: text of the run's config.toml; a directory with another one, or
      with something else, is refused.
  """
  import fcntl

  _match(folder, config)
  made = [f for f in (folder, *folder.parents) if not f.exists()]
  try:
    folder.mkdir(parents=True, exist_ok=True)
    lock = open(folder / ".lock", "w")  # noqa: SIM115
  except OSError as error:
    raise RunError(
      f"{folder} cannot be written ({error.strerror}); choose another --out"
    ) from None
  with lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      raise RunError(
        f"{folder} is being written by another process; wait for it, or "
        "choose another --out"
      ) from None
    _match(folder, config)  # another process may just have been here
    try:
      yield
    except checks.JaxfairError:
      _remove_unused(folder, made)
      raise


def read_json(path: pathlib.Path, default: Any) -> Any:
  """The file's content, or the default if there is no file."""
  if not path.exists():
    return default
  return json.loads(path.read_text(encoding="utf-8"))


def holds_work(folder: pathlib.Path) -> bool:
  """Whether anything was computed here: cells, or a ledger or a checkpoint."""
  names = {path.name.removesuffix(".partial") for path in folder.iterdir()}
  rows = any(path.suffix != ".partial" for path in folder.glob("cells/*"))
  return rows or not names <= {*RECORDS, "cells"}


def _match(folder: pathlib.Path, text: str) -> None:
  """Refuses a directory that holds something else than a run of this config."""
  if not folder.exists():
    return
  present = folder / "config.toml"
  # A run that was killed in its first moment has the lock and little else.
  begun = {".lock", "config.toml.partial"}
  if not folder.is_dir() or (
    not present.exists() and {p.name for p in folder.iterdir()} - begun
  ):
    raise RunError(f"{folder} is not a run directory; choose another --out")
  if present.exists() and present.read_text(encoding="utf-8") != text:
    raise RunError(
      f"{folder} holds a run of another config; choose another --out, or "
      "delete it"
    )


def _remove_unused(folder: pathlib.Path, made: list[pathlib.Path]) -> None:
  """Takes back a run directory in which nothing was computed.

  A ledger or a checkpoint of a study is never touched.
  """
  if holds_work(folder):
    return
  for partial in folder.glob("cells/*.partial"):
    partial.unlink()
  for path in folder.iterdir():
    if path.name != "cells":
      path.unlink()
  for empty in (folder / "cells", *made):
    with contextlib.suppress(OSError):
      empty.rmdir()
