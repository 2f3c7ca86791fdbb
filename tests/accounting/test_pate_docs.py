"""The examples of docs/pate_accounting.md run, and print what they say."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "pate_accounting.md"


@pytest.mark.slow
def test_the_examples_run(capsys):
  text = PAGE.read_text(encoding="utf-8")
  blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
  assert len(blocks) == 2
  session: dict[str, object] = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)
  told = capsys.readouterr().out.splitlines()
  promised = re.findall(r"^print\(.*?#\s*(.*?)\s*(?:\.\.\.|$)", text, re.M)
  assert len(told) == len(promised) == 3
  for line, start in zip(told, promised, strict=True):
    assert line.startswith(start)
