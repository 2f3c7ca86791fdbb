"""The examples of docs/decisions.md run, and print what the page says."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "decisions.md"


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  text = PAGE.read_text(encoding="utf-8")
  blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
  session: dict = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)
  said = re.findall(r"print\(.*?\)  # (.*)", "\n".join(blocks))
  assert capsys.readouterr().out.strip().splitlines() == said
  assert len(said) == 3
  assert session["noisy"].shape == (4,)
