"""Finds data files, opens them plain or compressed, and verifies them."""

import codecs
import gzip
import hashlib
import lzma
import os
import pathlib
import sys
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from jaxfair import checks

PathLike: TypeAlias = str | os.PathLike[str]


class DataError(checks.JaxfairError):
  """Raised when data is missing or not as expected; the message says what to do."""


class KnownFile(NamedTuple):
  """A file whose content is known.

  Attributes:
    name: its original name; it may lie there plain, as name.gz or name.xz.
    digest: SHA-256 of the uncompressed content (of the file itself if
      `as_is`), or MD5 where the publisher gives only that. None where
      publishers never agreed on one content: then the figures of the set are
      verified after reading.
    as_is: an archive that is read without unpacking.
    aliases: other names under which people have the same file.
  """

  name: str
  digest: str | None = None
  as_is: bool = False
  aliases: tuple[str, ...] = ()


class ImageFolder(NamedTuple):
  """A folder of images, next to or at the place that is searched."""

  name: str
  pattern: str


Wanted: TypeAlias = KnownFile | ImageFolder


class Files:
  """The files of one set as they were found; reading verifies them."""

  def __init__(self, wanted: Sequence[Wanted], paths: Mapping[str, pathlib.Path], remedy: str):
    self.paths = dict(paths)
    self.remedy = remedy
    self._wanted = {item.name: item for item in wanted}

  def read(self, name: str) -> bytes:
    """The verified, uncompressed content."""
    known = self._wanted[name]
    assert isinstance(known, KnownFile)
    return read(self.paths[name], known, remedy=self.remedy)

  def text(self, name: str, encoding: str = "utf-8-sig") -> str:
    """The verified content as text."""
    try:
      return self.read(name).decode(encoding)
    except UnicodeError:
      raise DataError(
        f"{self.paths[name]} is not {encoding} text; delete it and {self.remedy}"
      ) from None


def read(path: pathlib.Path, known: KnownFile, *, remedy: str = "get it again") -> bytes:
  """Reads a known file, and refuses it if it was cut short or altered."""
  try:
    content = _content(path, known.as_is)
  except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
    raise DataError(f"{path} is damaged or truncated ({error}); delete it and {remedy}") from None
  if not matches(content, known):
    raise DataError(
      f"{path} is not the {known.name} that this version expects: its checksum differs, so it "
      f"was altered or truncated; delete it and {remedy}"
    )
  return content


def matches(content: bytes, known: KnownFile) -> bool:
  """Whether the content has the known checksum (or none is known)."""
  if known.digest is None:
    return True
  algorithm = {32: "md5", 64: "sha256"}[len(known.digest)]
  found = hashlib.new(algorithm, content, usedforsecurity=False)
  return found.hexdigest() == known.digest


def read_arrays(path: pathlib.Path, *, remedy: str = "get it again") -> dict[str, np.ndarray]:
  """The arrays of an .npz file by name; a .npy file's array is named "".

  Raises:
    DataError: if it cannot be read, is damaged, or holds pickled objects.
  """
  try:
    with path.open("rb") as file:
      found = np.load(file, allow_pickle=False)
      if isinstance(found, np.ndarray):
        return {"": found}
      return {name: found[name] for name in found.files}
  except FileNotFoundError:
    raise DataError(f"{path}: no such file; check the path") from None
  except Exception as error:  # zipfile and numpy have a dozen kinds of it
    raise DataError(
      f"{path} is not a .npy array or an intact .npz file of them "
      f"({error or type(error).__name__}); {remedy}"
    ) from None


def read_bytes(path: pathlib.Path) -> bytes:
  """The content of a file of a user's own, plain or .gz.

  Raises:
    DataError: if it cannot be read.
  """
  try:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content
  except (OSError, EOFError, ValueError, zlib.error) as error:
    raise DataError(f"{path} cannot be read ({error}); check the path") from None


def decoded(path: pathlib.Path, content: bytes, encoding: str | None = None) -> tuple[bytes, str]:
  """Bytes in which ASCII characters are one byte each, and their encoding.

  Args:
    path: where they are from, for messages.
    content: the bytes of the file.
    encoding: of the content; by default UTF-8 or UTF-16 where the bytes are, else cp1252, else
      latin-1, which reads anything.

  Raises:
    DataError: if the content is not in this encoding.
    ArgumentError: if there is no such encoding.
  """
  if encoding is None:
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
      encoding = "utf-16"
    elif b"\x00" in content[:2]:  # no byte order mark, but an ASCII letter in two bytes
      encoding = "utf-16-le" if content[1:2] == b"\x00" else "utf-16-be"
    else:
      content = content.removeprefix(codecs.BOM_UTF8)  # some programs put it before any encoding
      encoding = next(one for one in ("utf-8", "cp1252", "latin-1") if _is(content, one))
  try:
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "utf-8-sig"):
      content, encoding = content.removeprefix(codecs.BOM_UTF8), "utf-8"
    elif name not in ("ascii", "cp1252", "iso8859-1", "iso8859-15"):
      content, encoding = content.decode(encoding).encode(), "utf-8"
    if not _is(content, encoding):
      raise UnicodeError
    return content, encoding
  except UnicodeError:
    raise DataError(
      f"{path} is not {encoding} text; pass encoding='latin-1' or save it again"
    ) from None
  except (LookupError, TypeError, ValueError):
    raise checks.ArgumentError(
      f"encoding={checks.shown(encoding)} is not known; use utf-8-sig, "
      "latin-1, cp1252 or another of Python's text encodings"
    ) from None


def _is(content: bytes, encoding: str) -> bool:
  """Whether bytes are text in an encoding, some of them at a time."""
  if content.isascii():
    return True
  decoder = codecs.getincrementaldecoder(encoding)()
  try:
    for start in range(0, len(content), 2**22):
      decoder.decode(content[start : start + 2**22])
    decoder.decode(b"", final=True)
  except UnicodeError:
    return False
  return True


def write(path: pathlib.Path, content: bytes) -> None:
  """Writes all or nothing: a reader never sees half a file."""
  path.parent.mkdir(parents=True, exist_ok=True)
  partial = path.with_name(f".{path.name}.{os.getpid()}.part")
  try:
    with partial.open("wb") as file:
      file.write(content)
      file.flush()
      os.fsync(file.fileno())
    os.replace(partial, path)
  finally:
    partial.unlink(missing_ok=True)


def find(wanted: Sequence[Wanted], place: pathlib.Path) -> dict[str, pathlib.Path] | None:
  """The paths of the wanted files in this folder; None unless all are there."""
  paths = {item.name: _lies(item, place) for item in wanted}
  if any(path is None for path in paths.values()):
    return None
  return {name: path for name, path in paths.items() if path is not None}


def places(folders: Sequence[str], root: PathLike | None = None) -> list[pathlib.Path]:
  """The folders that are searched, in order.

  Args:
    folders: names of the set's own folder under a root.
    root: a folder of data sets, or the folder of this very set.
  """
  found = [base / folder for base in roots(root) for folder in folders]
  # A root that the caller names may be the set's own folder.
  own = [] if root is None else [pathlib.Path(root)]
  return own + found


def roots(root: PathLike | None = None) -> list[pathlib.Path]:
  """`root`, then $JAXFAIR_DATA, then the user's cache."""
  named = [root, os.environ.get("JAXFAIR_DATA") or None, cache_folder()]
  return [pathlib.Path(item) for item in named if item is not None]


def cache_folder() -> pathlib.Path:
  """Where fetched data is kept: $JAXFAIR_CACHE, else the platform's cache."""
  named = os.environ.get("JAXFAIR_CACHE")
  if named:
    return pathlib.Path(named) / "data"
  home = pathlib.Path.home()
  if sys.platform == "darwin":
    base = home / "Library" / "Caches"
  elif os.name == "nt":
    base = pathlib.Path(os.environ.get("LOCALAPPDATA") or home / "AppData")
  else:
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
  return base / "jaxfair" / "data"


def _lies(item: Wanted, place: pathlib.Path) -> pathlib.Path | None:
  if isinstance(item, ImageFolder):
    for folder in (place / item.name, place):
      if folder.is_dir() and next(folder.glob(item.pattern), None):
        return folder
    return None
  endings = ("",) if item.as_is else ("", ".gz", ".xz")
  for name in (item.name, *item.aliases):
    for ending in endings:
      path = place / f"{name}{ending}"
      if path.is_file():
        return path
  return None


def _content(path: pathlib.Path, as_is: bool) -> bytes:
  if not as_is and path.suffix == ".gz":
    return gzip.decompress(path.read_bytes())
  if not as_is and path.suffix == ".xz":
    return lzma.decompress(path.read_bytes())
  return path.read_bytes()
