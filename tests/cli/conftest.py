"""The command line, called as a shell calls it, in an empty folder."""

import pathlib
import sys
from typing import NamedTuple

import pytest

from jaxfair import cli
from jaxfair.experiments import _people


class Ended(NamedTuple):
  """How a command ended."""

  code: int
  out: str
  err: str


@pytest.fixture
def jaxfair(monkeypatch, capfd, tmp_path):
  """`jaxfair("run", "a.toml")`, with no data but what the test brings."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.delenv("JAXFAIR_DATA", raising=False)
  monkeypatch.setenv("JAXFAIR_CACHE", str(tmp_path / "cache"))
  monkeypatch.setenv("NO_COLOR", "1")
  _people._load.cache_clear()

  def call(*arguments):
    monkeypatch.setattr(sys, "argv", ["jaxfair", *map(str, arguments)])
    capfd.readouterr()
    code = 0
    try:
      cli.main()
    except SystemExit as ended:
      code = ended.code or 0
    return Ended(code, *capfd.readouterr())

  return call


@pytest.fixture
def refused(jaxfair, tmp_path):
  """Requires one line on stderr, exit code 2, and nothing left behind."""

  def call(*arguments):
    before = sorted(pathlib.Path(tmp_path).rglob("*"))
    ended = jaxfair(*arguments)
    assert ended.code == 2, ended
    assert ended.out == ""
    lines = ended.err.strip().splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("jaxfair: ")
    assert sorted(pathlib.Path(tmp_path).rglob("*")) == before
    return lines[0]

  return call
