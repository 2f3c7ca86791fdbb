"""The example of docs/release.md runs, and prints what the page says."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "release.md"


@pytest.mark.slow
def test_the_example_runs(capsys):
  text = PAGE.read_text(encoding="utf-8")
  [block] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
  exec(compile(block, str(PAGE), "exec"), {})
  assert f"# {capsys.readouterr().out.strip()}" in block
