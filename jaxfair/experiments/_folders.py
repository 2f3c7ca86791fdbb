"""Run directories: one config, one writer, files whole or not at all."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any, Literal

from jaxfair import _schema, _whole_files, checks
from jaxfair.experiments._quotes import Quote

SECRET = "secret_key"
DATA = "data.json"
RECORDS = ("config.toml", "versions.json", "run.json", DATA, SECRET, ".lock")


class RunError(checks.JaxfairError):
  """A run directory that cannot be used, and what to do."""


@dataclasses.dataclass(frozen=True)
class RunRecord:
  """run.json: notes for the reader, and how long the run took."""

  title: str = ""  # heading of the report
  study: str = ""  # its name
  seed: Literal["os", "fixed"] = "fixed"  # whether the run can be repeated
  notes: tuple[str, ...] = ()  # what a reader must know about the rows
  finished: bool = False  # whether all cells are there
  seconds: float = 0.0  # of computing, over all that continued it
  cpu_seconds: float = 0.0  # processor time, that of finished child processes included


@dataclasses.dataclass(frozen=True)
class ClaimRecord:
  """One verdict of claims.json; a number that could not be computed is None."""

  name: str
  statement: str
  source: str
  quotes: tuple[Quote, ...]
  verdict: Literal["supported", "not supported", "undecided", "not run"]
  statistic: str
  value: float | None
  low: float | None
  high: float | None
  why: str

  @property
  def origin(self) -> str:
    """The quotes and their places; "ours" for a claim of our own."""
    told = " ".join(f'[{one.place}, {one.where}] "{one.quote}"' for one in self.quotes)
    return told or (f"[{self.source}]" if self.source else "ours")

  def found(self, digits: int) -> str:
    """'statistic: value [low, high]', or why there is no value."""
    if self.value is None:
      return self.why
    text = f"{self.statistic}: {self.value:.{digits}g}"
    if self.low is None or self.high is None:
      return text
    return f"{text} [{self.low:.{digits}g}, {self.high:.{digits}g}]"


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
    raise RunError(f"{folder} cannot be written ({error.strerror}); choose another --out") from None
  with lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      raise RunError(
        f"{folder} is being written by another process; wait for it, or choose another --out"
      ) from None
    _match(folder, config)  # another process may just have been here
    try:
      yield
    except checks.JaxfairError:
      _remove_unused(folder, made)
      raise
    except OSError as error:
      told = _whole_files.disk_error(error)
      if told is None:
        raise
      kept = len(list(folder.glob("cells/*.csv")))
      raise RunError(
        f"{told}; finished cells kept in {folder}: {kept}; the same command continues once it "
        "can write"
      ) from None


def read_record(folder: pathlib.Path) -> RunRecord:
  """run.json; an empty record if there is none yet."""
  found: RunRecord = _read(folder / "run.json", RunRecord, RunRecord())
  return found


def read_verdicts(folder: pathlib.Path) -> tuple[ClaimRecord, ...]:
  """claims.json."""
  hint = tuple[ClaimRecord, ...]
  found: tuple[ClaimRecord, ...] = _read(folder / "claims.json", hint, ())
  return found


def read_words(path: pathlib.Path) -> dict[str, str]:
  """A file of names with a text each, such as data.json and versions.json."""
  found: dict[str, str] = _read(path, dict[str, str], {})
  return found


def _read(path: pathlib.Path, hint: Any, default: Any) -> Any:
  if not path.exists():
    return default
  try:
    return _schema.read_json(path, hint, remedy=_remedy(path))
  except checks.ArgumentError as error:
    raise RunError(str(error)) from None


def _remedy(path: pathlib.Path) -> str:
  """Derived files are written again; what is known from one file only is not.

  Without data.json nobody would notice that data has changed, and without
  run.json its notes would be lost.
  """
  if path.name in ("claims.json", "versions.json", "results.csv"):
    return "delete it; the same `jaxfair run` writes it again"
  return f"restore it from a copy, or delete {path.parent} and run it again"


def holds_work(folder: pathlib.Path) -> bool:
  """Whether anything was computed here: cells, or a ledger or a checkpoint."""
  names = {path.name.removesuffix(".partial") for path in folder.iterdir()}
  rows = any(path.suffix != ".partial" for path in folder.glob("cells/*"))
  return rows or not names <= {*RECORDS, "cells"}


def _match(folder: pathlib.Path, text: str) -> None:
  """Raises if a directory holds something other than a run of this config."""
  if not folder.exists():
    return
  present = folder / "config.toml"
  # A run that was killed in its first moment has the lock and little else.
  begun = {".lock", "config.toml.partial"}
  if not folder.is_dir() or (not present.exists() and {p.name for p in folder.iterdir()} - begun):
    raise RunError(f"{folder} is not a run directory; choose another --out")
  if present.exists() and _bytes(present) != text.encode():
    raise RunError(f"{folder} holds a run of another config; choose another --out, or delete it")


def _bytes(path: pathlib.Path) -> bytes:
  try:
    return path.read_bytes()
  except OSError as error:
    raise RunError(f"{path} cannot be read ({error.strerror}); choose another --out") from None


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
