"""`--help`: every command shows an example that works and a page that exists."""

import io
import os
import shlex
import socket
import subprocess
import sys

import numpy as np
import pytest
import typer

from helpers import disclosure_cases, frontier_runs, pages
from jaxfair import data
from jaxfair.cli import _app, _examples
from jaxfair.data import _fetching


def command_names(command, above=""):
  """Every command that does something, such as `account dp-sgd`."""
  for name, one in command.commands.items():
    if hasattr(one, "commands"):
      yield from command_names(one, f"{above}{name} ")
    else:
      yield above + name


def test_every_command_has_an_example_and_a_page():
  assert set(command_names(typer.main.get_command(_app.app))) == set(_examples.EXAMPLES)
  for name, example in _examples.EXAMPLES.items():
    assert example.line.startswith(f"jaxfair {name}")
    assert (pages.ROOT / example.page).exists()


@pytest.mark.parametrize("name", _examples.EXAMPLES)
def test_help_shows_the_example_on_one_line_and_the_page(jaxfair, name):
  ended = jaxfair(*name.split(), "--help")
  lines = [line.strip() for line in ended.out.splitlines()]
  assert _examples.EXAMPLES[name].line in lines
  assert _examples.EXAMPLES[name].page in lines


def test_the_example_for_several_hosts_waits_for_the_others(jaxfair, tmp_path):
  """It is complete but for the second host; tests/cli/test_hosts.py has both."""
  (tmp_path / "people.csv").write_text("hired,sex\n")
  example = _examples.EXAMPLES["train"].hosts
  assert example in [line.strip() for line in jaxfair("train", "--help").out.splitlines()]
  with socket.socket() as free:
    free.bind(("localhost", 0))
    line = example.replace("5000", str(free.getsockname()[1]))
  ended = jaxfair(*shlex.split(line)[1:], "--wait", "0.1")
  assert ended.code == 2
  assert "host 2/2 did not come to localhost:" in ended.err


def test_brackets_are_shown(jaxfair):
  assert "[queries, classes]" in jaxfair("account", "pate", "--help").out


@pytest.mark.slow
def test_shells_complete_commands():
  asked = {"_JAXFAIR_COMPLETE": "complete_bash", "COMP_WORDS": "jaxfair rel", "COMP_CWORD": "1"}
  code = "import sys; sys.argv = ['jaxfair']; from jaxfair import cli; cli.main()"
  done = subprocess.run(
    [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=True
  )
  assert done.stdout.split() == ["release"]


def run_example(jaxfair, name):
  ended = jaxfair(*shlex.split(_examples.EXAMPLES[name].line)[1:])
  assert ended.code == 0, ended
  return ended.out


# Of the tutorial's training: these commands read what it wrote.
FROM_A_TABLE = ("train", "predict", "export", "explain", "report", "release", "account ledger")


@pytest.mark.slow
def test_the_tutorial_and_the_examples_of_one_training_work(jaxfair, tmp_path):
  text = pages.read("docs/tutorial.md")
  table, use = pages.code_blocks(text)
  session: dict = {}
  exec(table, session)
  (tmp_path / "new.csv").write_text((tmp_path / "people.csv").read_text())
  told = {}
  for line in pages.shell_lines(text):
    if line.startswith("jaxfair "):
      ended = jaxfair(*shlex.split(line)[1:])
      assert ended.code == 0, ended
      told[line] = ended.out
  exec(use, session)
  for name in FROM_A_TABLE:
    line = _examples.EXAMPLES[name].line
    told[name] = told[line] if line in told else run_example(jaxfair, name)
  assert "release:" in told["train"]
  assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 1001
  assert "Who pays" in told["explain"]
  assert "Nothing was computed or charged" in told["release"]
  assert "people" in told["account ledger"]


ALONE = sorted(set(_examples.EXAMPLES) - {*FROM_A_TABLE, "ask"})


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_an_example_works(jaxfair, tmp_path, monkeypatch, name):
  (tmp_path / "districts.csv").write_text("name,children\nAshford,12\nCorby,4000\n")
  np.save(tmp_path / "votes.npy", np.array([[90, 10], [40, 60]]))
  fetched = _fetching.Fetched("adult", (tmp_path / "adult.csv",), "package 1.0")
  monkeypatch.setattr(data, "fetch", lambda name, progress: fetched)  # no network in tests
  if name == "merge":
    assert jaxfair(*shlex.split(_examples.EXAMPLES["run"].line)[1:], "--shard", "1/1").code == 0
  if name == "frontier":
    frontier_runs.write(tmp_path / "runs" / "fairpate" / "adult-small")
  assert run_example(jaxfair, name)


@pytest.mark.slow
def test_the_example_of_ask_works(jaxfair, tmp_path, monkeypatch):
  disclosure_cases.write_questionnaire(tmp_path / "runs" / "disclosure" / "figure_7_5_adult-small")
  monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 10))
  assert "Decision: " in run_example(jaxfair, "ask")
