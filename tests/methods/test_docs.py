"""The examples of docs/methods.md and docs/releasing.md run; the table is the registry."""

import pathlib
import re

import pytest

from helpers import pages
from jaxfair import methods
from jaxfair.experiments import _releases

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "methods.md"


@pytest.mark.slow
def test_the_examples_run(capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pages.run("docs/methods.md", blocks=2)
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].startswith("60 steps on about 120 of 540 people")
  assert "NOT protected: the number of people" in "\n".join(lines)
  assert lines[-2:] == ["(3,) True", "2"]


@pytest.mark.slow
def test_the_examples_of_releasing_run(capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pages.run("docs/releasing.md", blocks=2)
  names, epsilon, same = capsys.readouterr().out.splitlines()
  assert names.endswith("(5, 2)")
  assert float(epsilon) == 2.0
  assert same == "True"


def test_the_config_of_releasing_is_read(tmp_path):
  (text,) = pages.code_blocks(pages.read("docs/releasing.md"), "toml")
  (tmp_path / "my_release.toml").write_text(text, encoding="utf-8")
  config = _releases.read_release(tmp_path / "my_release.toml", {"epsilon": 1.0})
  assert (config.method, config.epsilon, config.settings["max_gap"]) == ("fairpate", 1.0, 0.05)


def test_the_table_is_the_registry():
  text = PAGE.read_text(encoding="utf-8")
  rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
  told = {name: rest.split(" | ")[:3] for name, rest in rows}
  assert list(told) == list(methods.METHODS)
  for name, (protects, neighbors, needs) in told.items():
    own = methods.get(name)
    assert protects == (own.protects or "nothing")
    assert neighbors == (own.relation.value if own.relation else "none")
    assert set(needs.split(", ")) == (own.needs or {"nothing"})
