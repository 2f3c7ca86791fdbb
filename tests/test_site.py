"""The documentation site: a small one is built with warnings as errors."""

import re
import shutil
import subprocess
import sys

import pytest

from helpers import pages

INDEX = """# Small

```{toctree}

sharp_edges
gallery/what_epsilon_costs
api/frontier
```
"""


@pytest.mark.slow
def test_a_small_site_is_built_without_a_warning(tmp_path):
  pytest.importorskip("myst_nb", reason="needs the extra `docs`")
  docs, site = tmp_path / "docs", tmp_path / "site"
  (docs / "gallery").mkdir(parents=True)
  for name in ("conf.py", "_site.py", "_reference_pages.py", "sharp_edges.md"):
    shutil.copy(pages.ROOT / "docs" / name, docs / name)
  shutil.copytree(pages.ROOT / "docs" / "_static", docs / "_static")
  shutil.copy(pages.ROOT / "docs/gallery/what_epsilon_costs.py", docs / "gallery")
  text = (docs / "sharp_edges.md").read_text()
  (docs / "sharp_edges.md").write_text(re.sub(r"\]\(\w+\.md\)", "](index.md)", text))
  (docs / "index.md").write_text(INDEX)
  left = ["index", "sharp_edges", "gallery/what_epsilon_costs", "api/frontier"]
  code = (
    "import sys; sys.path[:0] = sys.argv[1:3]; import sphinx.cmd.build as build; "
    "sys.exit(build.main(sys.argv[3:]))"
  )
  roots = [str(pages.ROOT), str(pages.ROOT / "tests")]
  options = [
    "-W",
    "--keep-going",
    "-q",
    "-b",
    "html",
    "-D",
    f"include_patterns={','.join(f'{n}.*' for n in left)}",
  ]
  options += ["-D", "suppress_warnings=myst.xref_missing"]
  done = subprocess.run(
    [sys.executable, "-c", code, *roots, *options, str(docs), str(site)],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  page = (site / "api" / "frontier.html").read_text()
  assert "jaxfair.frontier.hypervolume" in page
  shown = (site / "gallery" / "what_epsilon_costs.html").read_text()
  assert "epsilon 1 for 300 steps needs noise" in shown  # executed
  assert re.search(r"<img [^>]*_images/", shown)


def test_every_page_is_in_the_menu():
  menu = re.findall(r"^(?:.*<)?([\w/]+)>?$", pages.read("docs/index.md"), re.MULTILINE)
  there = {path.stem for path in pages.ROOT.glob("docs/*.md")} - {"index"}
  there |= {f"guides/{path.stem}" for path in pages.ROOT.glob("docs/guides/*.md")}
  assert there <= set(menu)
