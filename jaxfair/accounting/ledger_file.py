"""The file of a ledger: JSON lines, each sealed with those before it.

Every line ends with the SHA-256 of itself and of the previous line's seal, so
an edited, lost, doubled or reordered line shows. A line is written whole or,
when the machine stops in the middle, not at all: an unfinished last line is a
release that was never made.
"""

import contextlib
import hashlib
import json
import os
import pathlib
from typing import Any, BinaryIO, NamedTuple

from jaxfair import checks

FORMAT = "jaxfair-ledger"
VERSION = 1


class LedgerError(checks.JaxfairError):
  """A ledger that cannot be used as it is."""


class Replay(NamedTuple):
  """What the bytes of a ledger say.

  Attributes:
    records: the header and what follows, in order, without their seals.
    seals: one for each record.
    size: bytes of the intact records.
    torn: bytes after them that a crash left unfinished.
    terminated: whether the last intact record ends with its newline.
  """

  records: list[dict[str, Any]]
  seals: list[str]
  size: int
  torn: int
  terminated: bool


def sealed_line(record: dict[str, Any], previous: str) -> tuple[bytes, str]:
  """The line for a record (without newline), and its seal."""
  seal = _seal(record, previous)
  return _encode({**record, "sha256": seal}), seal


def replay(raw: bytes, path: Any) -> Replay:
  """Checks every line and its seal.

  Raises:
    LedgerError: for anything but an unfinished last line.
  """
  *lines, tail = raw.split(b"\n")
  if not lines:
    raise LedgerError(
      f"{path} has no complete header, so nothing was ever charged to it; "
      "delete it and create it anew"
    )
  records: list[dict[str, Any]] = []
  seals = [""]
  for number, line in enumerate(lines, start=1):
    opened = _unseal(line, seals[-1])
    if opened is None or opened[0].get("sequence", 0) != number - 1:
      raise LedgerError(
        f"{path} is damaged at line {number}: its seal does not match what "
        "it says or what stands before it; restore the file from a copy, or "
        "count everything ever released from this data as unaccounted"
      )
    records.append(opened[0])
    seals.append(opened[1])
  _check_header(records[0], path)
  size = len(raw) - len(tail)
  if not tail:
    return Replay(records, seals[1:], size, 0, True)
  last = _unseal(tail, seals[-1])
  if last is not None:  # all but the newline was written: it counts
    records.append(last[0])
    seals.append(last[1])
    return Replay(records, seals[1:], len(raw), 0, False)
  ends = (at + 1 for at, byte in enumerate(tail[:-1]) if byte == ord("}"))
  if any(_unseal(tail[:end], seals[-1]) for end in ends):
    raise LedgerError(
      f"{path} is damaged behind its last record, which is complete; restore "
      "the file from a copy, or repair its last newline by hand"
    )
  return Replay(records, seals[1:], size, len(tail), True)


def write_line(file: BinaryIO, at: int, line: bytes) -> int:
  """Writes the line at this offset and waits for the disk; its end."""
  file.seek(at)
  left = memoryview(line + b"\n")
  while left:
    left = left[file.write(left) :]
  os.fsync(file.fileno())
  return at + len(line) + 1


def create_locked(path: pathlib.Path, line: bytes) -> BinaryIO:
  """A new file with one line, locked before anyone else can see it."""
  draft = path.with_name(f".{path.name}.{os.getpid()}.new")
  try:
    file = open(draft, "x+b", buffering=0)  # noqa: SIM115
  except OSError as error:
    raise LedgerError(f"cannot create {path} ({error.strerror})") from None
  try:
    _lock(file, path)
    write_line(file, 0, line)
    os.link(draft, path)  # unlike a rename this never replaces a file
    _sync_directory(path.parent)
  except OSError as error:
    file.close()
    if isinstance(error, FileExistsError):
      raise LedgerError(
        f"{path} exists; continue it with Ledger.open, or choose another name"
      ) from None
    raise LedgerError(f"cannot create {path} ({error.strerror})") from None
  finally:
    draft.unlink()
  _tell_holder(path)
  return file


def open_locked(path: pathlib.Path) -> BinaryIO:
  """The file for appending, locked against every other writer."""
  try:
    file = open(path, "r+b", buffering=0)  # noqa: SIM115
  except FileNotFoundError:
    raise LedgerError(
      f"there is no ledger at {path}; make one with Ledger.create"
    ) from None
  try:
    _lock(file, path)
  except LedgerError:
    file.close()
    raise
  _tell_holder(path)
  return file


def release(file: BinaryIO, path: pathlib.Path) -> None:
  """Closes the file and gives up the lock."""
  with contextlib.suppress(OSError):
    _holder(path).unlink()
  file.close()


def _check_header(header: dict[str, Any], path: Any) -> None:
  if header.get("format") != FORMAT:
    raise LedgerError(f"{path} is not a ledger: its first line is no header")
  if header.get("version") != VERSION:
    raise LedgerError(
      f"{path} has version {header.get('version')}, and this jaxfair reads "
      f"version {VERSION}; use the jaxfair that wrote it"
    )


def _encode(record: dict[str, Any]) -> bytes:
  text = json.dumps(record, separators=(",", ":"), allow_nan=False)
  return text.encode("ascii")


def _seal(record: dict[str, Any], previous: str) -> str:
  return hashlib.sha256(previous.encode() + _encode(record)).hexdigest()


def _unseal(line: bytes, previous: str) -> tuple[dict[str, Any], str] | None:
  """The record and its seal, if the line is exactly what we would write."""
  try:
    record = json.loads(line)
  except (ValueError, RecursionError):
    return None
  if not isinstance(record, dict):
    return None
  seal = record.pop("sha256", None)
  try:
    expected, _ = sealed_line(record, previous)
  except ValueError:  # NaN or infinity
    return None
  return (record, seal) if line == expected else None


def _holder(path: pathlib.Path) -> pathlib.Path:
  """Tells who has the lock; the lock itself is on the ledger."""
  return path.with_name(f"{path.name}.pid")


def _tell_holder(path: pathlib.Path) -> None:
  """Only for messages: a full disk must not stand in the way of a lock."""
  with contextlib.suppress(OSError):
    _holder(path).write_text(str(os.getpid()))


def _lock(file: BinaryIO, path: pathlib.Path) -> None:
  try:
    _exclusive(file)
  except OSError:
    try:
      who = f"process {int(_holder(path).read_text())}"
    except (OSError, ValueError):
      who = "another process"
    raise LedgerError(
      f"{path} is being written by {who}; wait for it to end, or use "
      "Ledger.read to look"
    ) from None


def _exclusive(file: BinaryIO) -> None:
  """Takes the lock or raises OSError; the system drops it with the process."""
  try:
    import fcntl
  except ImportError:  # Windows
    import msvcrt

    # One byte far behind the end, so that readers are not kept out.
    file.seek(2**40)
    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    return
  fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_directory(folder: pathlib.Path) -> None:
  """Makes a new name last; Windows does that by itself."""
  if os.name == "posix":
    handle = os.open(folder, os.O_RDONLY)
    try:
      os.fsync(handle)
    finally:
      os.close(handle)
