"""The examples of docs/accounting.md run, in order, in one session."""

import pytest

from helpers import pages


@pytest.mark.slow
def test_the_examples_run(capsys):
  pages.run("docs/accounting.md", blocks=6)
  told = capsys.readouterr().out
  assert "for one person added or removed" in told
  assert "would overrun the budget" in told
