"""The tables of packages and of methods in docs/architecture.md, made of what they describe.

The order of packages is that of the import-linter layers in setup.cfg, methods have that of their
registry, the words are the docstrings. `python tests/helpers/architecture.py` writes both.
"""

import ast
import configparser
import inspect
import pathlib
import re
from collections.abc import Iterable

from jaxfair import methods

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"


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


def packages() -> Iterable[tuple[str, ...]]:
  """The rows of the table of packages, its head first."""
  yield "package", "what it is", "what else to know"
  for layer in layers():
    for name in layer:
      yield (f"`{name}`", *docstring(name))


def methods_by_name() -> Iterable[tuple[str, ...]]:
  """The rows of the table of methods, its head first."""
  yield "method", "what it is", "file"
  for name, method in methods.METHODS.items():
    told = inspect.getdoc(type(method))
    assert told, f"{type(method)} has no docstring"
    file = pathlib.Path(inspect.getfile(type(method))).relative_to(ROOT / "jaxfair")
    yield f"`{name}`", " ".join(told.split("\n\n")[0].split()), f"`{file.as_posix()}`"


def table(rows: Iterable[tuple[str, ...]]) -> str:
  head, *others = (f"| {' | '.join(row)} |" for row in rows)
  return "\n".join([head, re.sub(r"[^|]+", "---", head), *others]) + "\n"


def page_with_tables() -> str:
  """The page, with the tables as they should be."""
  text = PAGE.read_text(encoding="utf-8")
  for name, rows in (("packages", packages()), ("methods", methods_by_name())):
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    made = begin + table(rows) + end
    text, found = re.subn(f"{begin}.*?{end}", lambda _, made=made: made, text, flags=re.DOTALL)
    assert found == 1, f"{PAGE} has lost the marks around its table of {name}"
  return text


if __name__ == "__main__":
  PAGE.write_text(page_with_tables(), encoding="utf-8")
