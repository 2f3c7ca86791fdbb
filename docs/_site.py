"""Sphinx extension: reads gallery scripts as notebooks, and names files outside of docs."""

import re
from typing import Any

import jupytext

# A Git host follows these links; the site has the configs to download and names other files.
CONFIG = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+configs/[^)]*\.toml)\)")
OUTSIDE = re.compile(
  r"\[([^\]]+)\]\((?:\.\./)+((?:configs|benchmarks|tests|jaxfair)/[^)]*|[A-Z]+\.md)\)"
)


def setup(app: Any) -> dict[str, bool]:
  """Connects the one change to sources."""
  app.connect("source-read", _name_files_outside)
  return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_script(text: str) -> Any:
  """The notebook of a script in jupytext's percent format."""
  notebook = jupytext.reads(text, fmt="py:percent")
  python = {"display_name": "Python 3", "language": "python", "name": "python3"}
  notebook.metadata["kernelspec"] = python
  notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
  return notebook


def _name_files_outside(app: Any, name: str, source: list[str]) -> None:
  source[0] = OUTSIDE.sub(r"\1 (`\2`)", CONFIG.sub(r"{download}`\1 <\2>`", source[0]))
