"""The examples of docs/decisions.md run, and print what the page says."""

import re

import pytest

from helpers import pages

PAGE = "docs/decisions.md"


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  session = pages.run(PAGE, blocks=4)
  said = re.findall(r"print\(.*?\)  # (.*)", pages.read(PAGE))
  assert capsys.readouterr().out.strip().splitlines() == said
  assert len(said) == 3
  assert session["noisy"].shape == (4,)
