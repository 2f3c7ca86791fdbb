"""Fetching: from a package by pip, from the web, and never half."""

import functools
import gzip
import http.server
import inspect
import io
import tarfile
import threading
import zipfile

import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import DataError, _fetching
from jaxfair.data._origins import Manual, Package, Web
from jaxfair.data._sets import addresses


@pytest.fixture
def content(toy_text):
  """The one content that the toy set's checksum admits."""
  return toy_text.encode()


@pytest.fixture
def origins(monkeypatch):
  """Sets where the toy set comes from."""
  return lambda *places: monkeypatch.setitem(addresses.ORIGINS, "toy", places)


@pytest.fixture
def shelf(tmp_path):
  """A folder of files that the web server serves."""
  folder = tmp_path / "shelf"
  folder.mkdir()
  return folder


@pytest.fixture
def web(shelf):
  """The address of a web server on this machine."""

  class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
      pass

    def do_GET(self):
      if self.path == "/short":
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"not enough")
      else:
        super().do_GET()

  handler = functools.partial(Quiet, directory=str(shelf))
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def zipped(**members):
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, "w") as archive:
    for name, content in members.items():
      archive.writestr(name.replace("__", "/"), content)
  return buffer.getvalue()


def wheel(folder, name, version, members):
  """A package that pip accepts, with a member of our choice."""
  path = folder / f"{name}-{version}-py3-none-any.whl"
  info = f"{name}-{version}.dist-info"
  with zipfile.ZipFile(path, "w") as archive:
    for member, content in members.items():
      archive.writestr(member, content)
    archive.writestr(
      f"{info}/METADATA",
      f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
      "Requires-Python: <3\nRequires-Dist: nothing-of-this-name\n",
    )
    archive.writestr(
      f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    archive.writestr(f"{info}/RECORD", "")


def everything_under(folder):
  return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
def test_a_package_is_opened_and_not_installed(toy, origins, tmp_path, monkeypatch, content):
  """Also one that asks for another Python and for dependencies."""
  shelf = tmp_path / "wheels"
  shelf.mkdir()
  wheel(shelf, "toypack", "1.0", {"toypack/t.csv": b"ID" + content[2:]})
  monkeypatch.setenv("PIP_NO_INDEX", "1")
  monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
  origins(Package("toypack", "1.0", {"toy.csv": "toypack/t.csv"}, lambda c: b"id" + c[2:]))
  told = []
  fetched = data.fetch("toy", progress=lambda *now: told.append(now))
  assert fetched.paths == (tmp_path / "cache/data/toy/toy.csv",)
  assert fetched.origin == "package toypack 1.0"
  assert told[0] == ("package toypack 1.0", 0, None)
  assert data.load("toy").size == 5


def test_a_package_that_is_not_there_falls_back_to_the_web(
  toy, origins, shelf, web, tmp_path, monkeypatch, content
):
  monkeypatch.setenv("PIP_NO_INDEX", "1")
  monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
  (shelf / "toy.csv").write_bytes(content)
  origins(
    Package("toypack", "1.0", {"toy.csv": "toypack/t.csv"}), Web({"toy.csv": f"{web}/toy.csv"})
  )
  fetched = data.fetch("toy", root=tmp_path / "mine")
  assert fetched.paths == (tmp_path / "mine/toy/toy.csv",)
  assert fetched.origin == f"{web}/toy.csv"


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_web_files_archives_and_archives_in_archives(toy, origins, shelf, web, scheme, content):
  base = web if scheme == "http" else shelf.as_uri()
  inner = zipped(deep__toy=content)
  (shelf / "outer.zip").write_bytes(zipped(inner=inner))
  (shelf / "toy.csv.gz").write_bytes(gzip.compress(content))
  tar = io.BytesIO()
  with tarfile.open(fileobj=tar, mode="w:bz2") as archive:
    member = tarfile.TarInfo("a/toy.csv")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
  (shelf / "toy.tar").write_bytes(tar.getvalue())
  for place in ("outer.zip!inner!deep/toy", "toy.csv.gz", "toy.tar!a/toy.csv"):
    origins(Web({"toy.csv": f"{base}/{place}"}))
    (path,) = data.fetch("toy").paths
    assert path.read_bytes() == content
    path.unlink()


def test_progress_counts_bytes(toy, origins, shelf, web, content):
  (shelf / "toy.csv").write_bytes(content)
  origins(Web({"toy.csv": f"{web}/toy.csv"}))
  told = []
  data.fetch("toy", progress=lambda *now: told.append(now))
  assert told[-1] == (f"{web}/toy.csv", len(content), len(content))


@pytest.mark.parametrize(
  ("place", "reason"),
  [
    ("none.csv", "not found"),
    ("short", "stopped after 10 of 1000 bytes"),
    ("other.csv", "not the version"),
    ("cut.csv.gz", "damaged"),
    ("cut.zip!toy.csv", "no file toy.csv"),
    ("good.zip!wrong.csv", "no file wrong.csv"),
  ],
)
def test_a_failed_download_leaves_nothing_and_says_why(
  toy, origins, shelf, web, tmp_path, place, reason, content
):
  (shelf / "other.csv").write_bytes(content + b"6,1,F,white,cook,no\n")
  (shelf / "cut.csv.gz").write_bytes(gzip.compress(content)[:-9])
  (shelf / "cut.zip").write_bytes(zipped(toy=content)[:-30])
  (shelf / "good.zip").write_bytes(zipped(toy=content))
  origins(Web({"toy.csv": f"{web}/{place}"}))
  with pytest.raises(DataError, match=reason) as caught:
    data.fetch("toy")
  assert "\n" not in str(caught.value)
  assert "by hand" in str(caught.value)
  assert everything_under(tmp_path / "cache") == []


def test_an_address_that_nobody_answers(toy, origins, web, tmp_path):
  origins(Web({"toy.csv": "http://127.0.0.1:9/toy.csv"}))
  with pytest.raises(DataError, match="download failed"):
    data.fetch("toy")


def test_a_folder_that_cannot_be_written(toy, origins, shelf, web, tmp_path, content):
  (shelf / "toy.csv").write_bytes(content)
  origins(Web({"toy.csv": f"{web}/toy.csv"}))
  (tmp_path / "file").touch()
  with pytest.raises(DataError, match=r"cannot write.*JAXFAIR_CACHE"):
    data.fetch("toy", root=tmp_path / "file")


def test_an_interrupted_fetch_leaves_nothing(
  toy, origins, shelf, web, tmp_path, monkeypatch, content
):
  (shelf / "toy.csv").write_bytes(content)
  origins(Web({"toy.csv": f"{web}/toy.csv"}))

  def stop(*_):
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    data.fetch("toy", progress=stop)
  assert everything_under(tmp_path / "cache") == []


def test_sets_that_nobody_may_fetch_and_sets_that_are_here(toy, origins):
  origins(Manual("the library"))
  with pytest.raises(DataError, match="get it from the library"):
    data.fetch("toy")
  with pytest.raises(DataError, match="UTKFace"):
    data.fetch("utkface")
  with pytest.raises(ArgumentError, match="nothing to fetch"):
    data.fetch("colored_digits")
  with pytest.raises(ArgumentError, match="did you mean adult"):
    data.fetch("adlt")


def test_no_package_index_is_named():
  """pip's own settings decide where packages come from."""
  for module in (_fetching, addresses):
    assert "py" + "pi" not in inspect.getsource(module).lower()
