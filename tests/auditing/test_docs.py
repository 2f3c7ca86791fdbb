"""The examples of docs/audit.md run, and its tables name what is tested."""

import re

import pytest

from helpers import mutants, pages

PAGE = "docs/audit.md"
TEXT = pages.read(PAGE)


@pytest.mark.slow
def test_the_examples_run():
  pages.run(PAGE, blocks=2)


@pytest.mark.slow
def test_every_mutant_is_in_the_table_with_its_claim():
  for name, case in mutants.CASES.items():
    row = re.search(rf"^\| {name}.*?\| ([\d.]+) \| ([\d.]+) \|", TEXT, re.M)
    assert row, name
    assert float(row[1]) == round(case.claimed(), 2)
    assert float(row[2]) > float(row[1])
