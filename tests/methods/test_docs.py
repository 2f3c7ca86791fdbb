"""The examples of docs/methods.md run; its table is the registry."""

import pathlib
import re

import pytest

from jaxfair import methods

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "methods.md"


@pytest.mark.slow
def test_the_examples_run(capsys, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  text = PAGE.read_text(encoding="utf-8")
  blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
  exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
  lines = capsys.readouterr().out.splitlines()
  assert lines[0].startswith("60 steps on about 120 of 540 people")
  assert "NOT protected: the number of people" in "\n".join(lines)
  assert lines[-2:] == ["(3,) True", "2"]


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
