"""Finding, verifying and writing files."""

import gzip
import hashlib
import lzma
import os
import pathlib

import pytest

from jaxfair.data import _files
from jaxfair.data._files import DataError, ImageFolder, KnownFile

CONTENT = b"a,b\n1,2\n" * 100
KNOWN = KnownFile("toy.csv", hashlib.sha256(CONTENT).hexdigest(), aliases=("old.csv",))


@pytest.fixture
def no_settings(monkeypatch):
  for name in ("JAXFAIR_DATA", "JAXFAIR_CACHE", "XDG_CACHE_HOME"):
    monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
  ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
@pytest.mark.parametrize("name", ["toy.csv", "old.csv"])
def test_plain_and_compressed_files_are_found_and_read(tmp_path, ending, pack, name):
  (tmp_path / f"{name}{ending}").write_bytes(pack(CONTENT))
  (path,) = _files.find([KNOWN], tmp_path).values()
  assert _files.read(path, KNOWN) == CONTENT


def test_all_files_must_lie_together(tmp_path):
  (tmp_path / "toy.csv").write_bytes(CONTENT)
  assert _files.find([KNOWN, KnownFile("other.csv")], tmp_path) is None


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_a_file_cut_short_is_refused(tmp_path, ending):
  pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[ending]
  path = tmp_path / f"toy.csv{ending}"
  path.write_bytes(pack(CONTENT)[:-5])
  with pytest.raises(DataError, match=r"truncated.*delete it and get it again"):
    _files.read(path, KNOWN)


def test_an_altered_file_is_refused_in_one_line(tmp_path):
  path = tmp_path / "toy.csv"
  path.write_bytes(CONTENT.replace(b"2", b"3", 1))
  with pytest.raises(DataError, match="altered") as caught:
    _files.read(path, KNOWN, remedy="do this")
  assert "\n" not in str(caught.value)
  assert str(caught.value).endswith("do this")


def test_md5_is_used_where_that_is_what_is_known(tmp_path):
  known = KnownFile("toy.csv", hashlib.md5(CONTENT).hexdigest())
  assert _files.matches(CONTENT, known)
  assert not _files.matches(CONTENT + b"!", known)


def test_archives_are_read_as_they_lie(tmp_path):
  packed = gzip.compress(CONTENT)
  (tmp_path / "toy.tar.gz").write_bytes(packed)
  known = KnownFile("toy.tar.gz", hashlib.sha256(packed).hexdigest(), True)
  (path,) = _files.find([known], tmp_path).values()
  assert _files.read(path, known) == packed


def test_image_folders_are_found_inside_or_in_place(tmp_path):
  wanted = ImageFolder("faces", "*.jpg")
  assert _files.find([wanted], tmp_path) is None
  (tmp_path / "faces").mkdir()
  assert _files.find([wanted], tmp_path) is None
  (tmp_path / "faces" / "1.jpg").touch()
  assert _files.find([wanted], tmp_path) == {"faces": tmp_path / "faces"}
  assert _files.find([wanted], tmp_path / "faces") == {"faces": tmp_path / "faces"}


def test_roots_are_root_then_variable_then_cache(monkeypatch, no_settings):
  monkeypatch.setenv("JAXFAIR_DATA", "/variable")
  monkeypatch.setenv("JAXFAIR_CACHE", "/cache")
  expected = [pathlib.Path(p) for p in ("/given", "/variable", "/cache/data")]
  assert _files.roots("/given") == expected
  assert _files.roots() == expected[1:]
  assert _files.places(("a", "b"), "/given")[:3] == [
    pathlib.Path(p) for p in ("/given", "/given/a", "/given/b")
  ]


def test_cache_is_the_platforms(monkeypatch, no_settings, tmp_path):
  monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path)
  monkeypatch.setattr(_files.sys, "platform", "linux")
  assert _files.cache_folder() == tmp_path / ".cache/jaxfair/data"
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
  assert _files.cache_folder() == tmp_path / "xdg/jaxfair/data"
  monkeypatch.setattr(_files.sys, "platform", "darwin")
  assert _files.cache_folder() == tmp_path / "Library/Caches/jaxfair/data"


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
  target = tmp_path / "deep" / "toy.csv"
  _files.write(target, CONTENT)
  assert target.read_bytes() == CONTENT

  def crash(*_):
    raise OSError("disk full")

  monkeypatch.setattr(os, "replace", crash)
  with pytest.raises(OSError, match="disk full"):
    _files.write(target, b"new")
  assert target.read_bytes() == CONTENT
  assert list(target.parent.iterdir()) == [target]
