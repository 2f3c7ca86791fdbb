"""The documentation: its pages, the code on them, and how to run it."""

import ast
import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
PAGES = (
  ROOT / "README.md",
  ROOT / "CONTRIBUTING.md",
  *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "api"),
  *sorted((ROOT / "configs").rglob("*.md")),
)
_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def read(page: str) -> str:
  return (ROOT / page).read_text(encoding="utf-8")


def code_blocks(text: str, language: str = "python") -> list[str]:
  """The code blocks in that language, in their order, without indentation."""
  return [textwrap.dedent(code) for found, code in _BLOCK.findall(text) if found == language]


def shell_lines(text: str) -> Iterator[str]:
  """The lines of shell blocks, joined where they continue."""
  for block in code_blocks(text, "sh"):
    yield from block.replace("\\\n", " ").splitlines()


def outside_blocks(text: str) -> str:
  """The page without its code blocks."""
  return _BLOCK.sub("", text)


def spans(text: str) -> list[str]:
  """What stands between single backticks, outside of blocks."""
  return _SPAN.findall(outside_blocks(text))


def parsed(code: str) -> ast.Module | None:
  """The syntax tree of Python; None for code that is no Python."""
  try:
    return ast.parse(code)
  except SyntaxError:
    return None


def run(page: str, *, blocks: int) -> dict[str, Any]:
  """Runs the Python blocks of a page in one session; returns its names.

  The number of blocks is stated by the caller: a fence that is written
  another way must not take an example out of the tests unseen.
  """
  found = code_blocks(read(page))
  assert len(found) == blocks
  session: dict[str, Any] = {}
  for block in found:
    exec(compile(block, page, "exec"), session)
  return session
