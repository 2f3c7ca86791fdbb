"""The examples of docs/pate_accounting.md run, and print what they say."""

import re

import pytest

from helpers import pages

PAGE = "docs/pate_accounting.md"


@pytest.mark.slow
def test_the_examples_run(capsys):
  pages.run(PAGE, blocks=2)
  told = capsys.readouterr().out.splitlines()
  promised = re.findall(r"^print\(.*?#\s*(.*?)\s*(?:\.\.\.|$)", pages.read(PAGE), re.M)
  assert len(told) == len(promised) == 3
  for line, start in zip(told, promised, strict=True):
    assert line.startswith(start)
