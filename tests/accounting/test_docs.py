"""The examples of docs/accounting.md run, in order, in one session."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "accounting.md"


@pytest.mark.slow
def test_the_examples_run(capsys):
  blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
  assert len(blocks) >= 4
  session: dict[str, object] = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)
  told = capsys.readouterr().out
  assert "for one person added or removed" in told
  assert "would overrun the budget" in told
