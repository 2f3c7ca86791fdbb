"""The examples of docs/private_training.md run, in one session."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "private_training.md"


@pytest.mark.slow
def test_the_examples_run():
  text = PAGE.read_text(encoding="utf-8")
  blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
  assert len(blocks) == 5
  session: dict[str, object] = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)
