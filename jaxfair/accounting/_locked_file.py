"""A file of lines that one process appends to: on the disk, and in its place.

A line is written whole or, when the machine stops in the middle, not at all.
Nothing is written to a file that somebody moved, deleted, replaced or changed
in the meantime: the next reader would not find it.
"""

import contextlib
import os
import pathlib
from typing import BinaryIO

from jaxfair import checks


class LedgerError(checks.JaxfairError):
  """A ledger that cannot be used as it is."""


class LockedFile:
  """An open file, locked against every other writer.

  Attributes:
    path: where it was opened, from the root: a later change of the working
      directory does not move it.
  """

  def __init__(self, file: BinaryIO, path: pathlib.Path):
    self.path = path
    self._file = file
    self._size = os.fstat(file.fileno()).st_size
    self._pid = os.getpid()
    self._unsure = False

  @classmethod
  def create(cls, path: pathlib.Path, line: bytes) -> "LockedFile":
    """A new file with one line, locked before anyone else can see it."""
    path = path.absolute()
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
    return cls(file, path)

  @classmethod
  def open(cls, path: pathlib.Path) -> "LockedFile":
    """An existing file for appending."""
    path = path.absolute()
    try:
      file = open(path, "r+b", buffering=0)  # noqa: SIM115
    except FileNotFoundError:
      raise LedgerError(f"there is no ledger at {path}; make one with Ledger.create") from None
    except OSError as error:
      raise LedgerError(f"cannot open {path} ({error.strerror})") from None
    try:
      _lock(file, path)
      locked = cls(file, path)
      locked._require_place()
    except LedgerError:
      file.close()
      raise
    _tell_holder(path)
    return locked

  @property
  def closed(self) -> bool:
    """Whether it was given up."""
    return self._file.closed

  def read(self) -> bytes:
    """All of it."""
    self._file.seek(0)
    return self._file.read()

  def cut(self, size: int) -> None:
    """Drops what an interrupted write left behind the first `size` bytes."""
    self.require_unchanged()
    self._file.truncate(size)
    self._size = size

  def append(self, line: bytes) -> None:
    """Writes a line behind the last one; on the disk when it returns.

    Raises:
      LedgerError: if it is not certain that the line is where the next reader
        of `path` finds it. Whatever the line was about must not be released.
    """
    self.require_unchanged()
    self._unsure = True  # until the disk has answered, whatever interrupts
    try:
      self._size = write_line(self._file, self._size, line)
    except OSError as error:
      raise LedgerError(
        f"cannot write {self.path} ({error}); release nothing, free space on the disk and open "
        "it again (Ledger.open)"
      ) from error
    self._require_place()
    self._unsure = False

  def close(self) -> None:
    """Closes the file and gives up the lock."""
    if self._file.closed:
      return
    if self._pid == os.getpid():
      with contextlib.suppress(OSError):
        _holder(self.path).unlink()
    self._file.close()

  def require_unchanged(self) -> None:
    """Requires that a line may be written: the file is whole and in place."""
    if self._file.closed:
      raise LedgerError(f"{self.path} is closed; open it again (Ledger.open)")
    if self._pid != os.getpid():
      raise LedgerError(
        f"{self.path} belongs to process {self._pid}, which forked this one; charge from there"
      )
    if self._unsure:
      raise LedgerError(
        f"an earlier write to {self.path} was interrupted, so its end is not "
        "known; close it and open it again (Ledger.open)"
      )
    self._require_place()
    if os.fstat(self._file.fileno()).st_size != self._size:
      raise LedgerError(
        f"{self.path} was changed by another program while it was open; release "
        "nothing, close it and open it again (Ledger.open)"
      )

  def _require_place(self) -> None:
    """Requires that `path` still names the open file."""
    held = os.fstat(self._file.fileno())
    try:
      named = os.stat(self.path)
    except OSError:
      named = None
    if named is None or (named.st_dev, named.st_ino) != (held.st_dev, held.st_ino):
      raise LedgerError(
        f"{self.path} was moved, deleted or replaced while it was open; "
        "release nothing, put the file back in its place and open it again"
      )


def write_line(file: BinaryIO, at: int, line: bytes) -> int:
  """Writes the line at this offset and waits for the disk; its end."""
  file.seek(at)
  left = memoryview(line + b"\n")
  while left:
    left = left[file.write(left) :]
  os.fsync(file.fileno())
  return at + len(line) + 1


def _holder(path: pathlib.Path) -> pathlib.Path:
  """Names the holder of the lock; the lock itself is on the ledger."""
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
      f"{path} is being written by {who}; wait for it to end, or use Ledger.read to look"
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
