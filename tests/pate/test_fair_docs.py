"""The example of docs/fairpate.md runs, and prints what the page says."""

import re

import pytest

from helpers import pages
from jaxfair.experiments import _config, _registry, _runs

PAGE = "docs/fairpate.md"
TEXT = pages.read(PAGE)
CONFIGS = pages.ROOT / "configs" / "fairpate"


@pytest.mark.slow
def test_the_examples_print_what_the_page_shows(capsys, monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path)
  shown = pages.code_blocks(TEXT, "text")
  pages.run(PAGE, blocks=len(shown))
  assert capsys.readouterr().out == "".join(shown)


def test_every_config_is_listed_and_can_be_read():
  readme = (CONFIGS / "README.md").read_text(encoding="utf-8")
  for path in CONFIGS.glob("[!_]*.toml"):
    assert f"`{path.stem}`" in TEXT
    assert f"`{path.name}`" in readme
    for size in ("smoke", "small", "paper"):
      values = _config.read(path, size=size)
      _runs.plan(_registry.find(values["study"]), values)


def test_the_readme_names_every_figure_and_table():
  readme = (CONFIGS / "README.md").read_text(encoding="utf-8")
  for figure in (2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15):
    assert re.search(rf"\| Figures? [^|]*\b{figure}\b", readme), figure
  for name in ("Table 1", "Table 2", "Table 5", "Appendix H.2"):
    assert f"| {name} |" in readme
