"""Every public name is used in code that is executed; the short examples run."""

import pytest

from helpers import examples, pages

PAGES = {
  "accounting": 3,
  "fairness": 4,
  "models": 5,
  "mechanisms": 4,
  "training": 3,
  "studies": 3,
  "optional": 1,
}
NEEDS = {"optional": ("equinox", "pyarrow", "sklearn")}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_short_examples_run(page, tmp_path, monkeypatch):
  for package in NEEDS.get(page, ()):
    pytest.importorskip(package)
  monkeypatch.chdir(tmp_path)
  pages.run(f"docs/examples/{page}.md", blocks=PAGES[page])


def test_every_page_of_examples_is_run():
  found = {path.stem for path in (examples.DOCS / "examples").glob("*.md")}
  assert found - {"index"} == set(PAGES)


def test_every_public_name_is_used_in_code_that_is_executed():
  assert examples.unused() == []


@pytest.mark.parametrize(
  "code",
  [
    "from jaxfair import data\ndata.load('digits')",
    "from jaxfair import data as d\nd.load('digits')",
    "from jaxfair.data import load\nload('digits')",
    "import jaxfair\njaxfair.data.load('digits')",
  ],
)
def test_a_use_is_found_however_it_is_imported(code):
  assert "data.load" in examples.names_in(code)
  assert "data.load" not in examples.names_in("from jaxfair import data\ndata.split(3)")
