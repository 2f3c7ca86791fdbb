"""docs/sharp_edges.md: every mistake shows what betrays it, and every remedy runs."""

import re

import pytest

from helpers import pages

PAGE = "docs/sharp_edges.md"


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pages.run(PAGE, blocks=43)


def test_every_edge_has_code_that_is_right():
  edges = re.split(r"^### ", pages.read(PAGE), flags=re.MULTILINE)[1:]
  assert len(edges) >= 20
  without = ("A family", "Refusing a broken record")  # no code of one's own is wrong there
  for edge in edges:
    name = edge.splitlines()[0]
    assert "# Right" in edge or name in without
    assert "# Wrong" in edge or name in without
