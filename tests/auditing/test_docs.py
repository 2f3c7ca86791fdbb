"""The examples of docs/audit.md run, and its tables name what is tested."""

import pathlib
import re

import pytest

from helpers import mutants

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "audit.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run():
  blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
  assert len(blocks) == 2
  session: dict[str, object] = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)


@pytest.mark.slow
def test_every_mutant_is_in_the_table_with_its_claim():
  for name, case in mutants.CASES.items():
    row = re.search(rf"^\| {name}.*?\| ([\d.]+) \| ([\d.]+) \|", TEXT, re.M)
    assert row, name
    assert float(row[1]) == round(case.claimed(), 2)
    assert float(row[2]) > float(row[1])
