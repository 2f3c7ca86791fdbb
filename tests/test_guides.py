"""The guides, the comparison and the page on epsilon run as printed."""

import pytest

from helpers import pages

PAGES = {
  "docs/what_epsilon_means.md": 2,
  "docs/comparison.md": 1,
  "docs/guides/own_method.md": 2,
  "docs/guides/own_rule.md": 3,
  "docs/guides/audit_a_vendor.md": 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_guide_runs(page, tmp_path, monkeypatch):
  from jaxfair import methods

  monkeypatch.chdir(tmp_path)
  known = dict(methods.METHODS)
  pages.run(page, blocks=PAGES[page])
  for name in set(methods.METHODS) - set(known):
    del methods.METHODS[name]


def test_every_guide_is_run():
  guides = {f"docs/guides/{path.name}" for path in pages.ROOT.glob("docs/guides/*.md")}
  assert guides <= set(PAGES)
