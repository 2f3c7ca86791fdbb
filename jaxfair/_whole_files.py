"""Atomic, durable writes of files and folders: they appear complete or not at all."""

import contextlib
import errno
import os
import pathlib
import shutil
import stat
from collections.abc import Iterator

from jaxfair import checks

# A disk that is full or broken, or a place that may not be written: nothing
# that was computed is wrong, and the same command can go on later.
DISK_ERRORS = {
  errno.ENOSPC,
  errno.EDQUOT,
  errno.EFBIG,
  errno.EIO,
  errno.EROFS,
  errno.EACCES,
  errno.EPERM,
}


def disk_error(error: OSError) -> str | None:
  """A few words on what the disk refused; None if the error is something else."""
  if error.errno not in DISK_ERRORS:
    return None
  where = error.filename or "the disk"
  return f"{where} cannot be written ({error.strerror})"


def write_whole(path: pathlib.Path, content: str | bytes, *, mode: int = 0o666) -> None:
  """Writes a file completely or not at all; on the disk on return.

  Args:
    path: replaced if it exists.
    content: text is written as UTF-8.
    mode: permissions, before the umask.
  """
  raw = content.encode() if isinstance(content, str) else content
  partial = path.with_name(path.name + ".partial")
  partial.unlink(missing_ok=True)
  try:
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(handle, "wb") as file:
      file.write(raw)
      file.flush()
      os.fsync(file.fileno())
    os.replace(partial, path)
  except OSError as error:
    error.filename = error.filename or str(path)
    with contextlib.suppress(OSError):  # a full disk needs the space
      partial.unlink(missing_ok=True)
    raise
  sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """A folder to fill, which gets its name when everything in it is on disk.

  Args:
    path: must not exist when the block ends.

  Yields:
    An empty folder beside it.
  """
  partial = path.with_name(path.name + ".partial")
  shutil.rmtree(partial, ignore_errors=True)
  try:
    partial.mkdir()
    yield partial
    for file in partial.iterdir():
      _sync(file, os.O_RDWR)
    sync_folder(partial)
    os.rename(partial, path)
  except BaseException:
    shutil.rmtree(partial, ignore_errors=True)
    raise
  sync_folder(path.parent)


def owner_only(folder: pathlib.Path) -> pathlib.Path:
  """Makes a folder that its owner alone may enter, or closes one to others.

  Returns:
    The folder.
  """
  if not folder.exists():
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sync_folder(folder.parent)
  if os.name == "posix":
    found = folder.stat()
    shared = found.st_mode & stat.S_ISVTX or found.st_uid != os.geteuid()
    checks.require(not shared, f"{folder} is shared with other users; name a folder of your own")
    if stat.S_IMODE(found.st_mode) & 0o077:
      folder.chmod(0o700)
  return folder


def sync_folder(folder: pathlib.Path) -> None:
  """Makes new names in a folder last; Windows does that by itself."""
  if os.name == "posix":
    _sync(folder, os.O_RDONLY)


def _sync(path: pathlib.Path, flags: int) -> None:
  handle = os.open(path, flags)
  try:
    os.fsync(handle)
  finally:
    os.close(handle)
