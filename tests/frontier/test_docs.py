"""The example of docs/frontier.md runs, and prints what the page says."""

from helpers import pages

PAGE = "docs/frontier.md"


def test_the_example_runs(capsys):
  pages.run(PAGE, blocks=1)
  assert f"# {capsys.readouterr().out.strip()}" in pages.read(PAGE)
