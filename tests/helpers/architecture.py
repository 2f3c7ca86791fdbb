"""The table of packages in docs/architecture.md, made of what it describes.

The order is that of the import-linter layers in setup.cfg, the words are the
packages' own docstrings. `python tests/helpers/architecture.py` writes it.
"""

import ast
import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages -->\n", "<!-- end of packages -->\n"


def layers() -> list[list[str]]:
  """Packages in the order in which they may import, siblings together."""
  settings = configparser.ConfigParser()
  settings.read(ROOT / "setup.cfg")
  lines = settings["importlinter:contract:layers"]["layers"].split()
  names = " ".join(lines).replace(" | ", "|").split()
  return [name.split("|") for name in reversed(names)]


def docstring(name: str) -> tuple[str, str]:
  """The claim of a package and its other paragraphs, code left out."""
  package = ROOT / "jaxfair" / name / "__init__.py"
  path = package if package.exists() else package.parent.with_suffix(".py")
  told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
  assert told, f"{path} has no docstring"
  claim, *rest = (" ".join(part.split()) for part in told.split("\n\n") if not part.startswith(" "))
  return claim, " ".join(rest)


def table() -> str:
  rows = ["| package | what it is | what else to know |", "|---|---|---|"]
  for layer in layers():
    for name in layer:
      claim, rest = docstring(name)
      rows.append(f"| `{name}` | {claim} | {rest} |")
  return "\n".join(rows) + "\n"


def page_with_table() -> str:
  """The page, with the table as it should be."""
  text = PAGE.read_text(encoding="utf-8")
  pattern = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)
  assert pattern.search(text), f"{PAGE} has lost the marks around its table"
  return pattern.sub(lambda _: BEGIN + table() + END, text)


if __name__ == "__main__":
  PAGE.write_text(page_with_table(), encoding="utf-8")
