"""The example of docs/disclosure.md runs, and prints what the page says."""

import pytest

from helpers import pages

PAGE = "docs/disclosure.md"


@pytest.mark.slow
def test_the_example_runs(capsys):
  pages.run(PAGE, blocks=1)
  assert f"# {capsys.readouterr().out.strip()}" in pages.read(PAGE)
