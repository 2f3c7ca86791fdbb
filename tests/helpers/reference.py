"""docs/reference.md: every public name with its claim, made of the packages' `__all__`.

A public name is one that stands there. `python tests/helpers/reference.py` writes the page.
"""

import importlib
import inspect
import pathlib
import types

import jaxfair

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
HEAD = """# Reference

Every public name. Modules whose name starts with an underscore may change at any time; what is
listed here is what code outside jaxfair may rely on. `help` of a name shows arguments, returned
values and, for mechanisms, the privacy proof. The page is made of docstrings by
`python tests/helpers/reference.py`, and a test compares.
"""


def packages() -> list[str]:
  """The public packages, in the order of the reference."""
  modules = {name: getattr(jaxfair, name) for name in jaxfair.__all__}
  return [name for name, found in modules.items() if hasattr(found, "__path__")]


def names(package: str) -> list[str]:
  """What a package exports."""
  return sorted(importlib.import_module(f"jaxfair.{package}").__all__, key=str.lower)


def claim(package: str, name: str) -> str:
  """The first sentence of a name's docstring; of a constant, what it is."""
  found = getattr(importlib.import_module(f"jaxfair.{package}"), name)
  if isinstance(found, type | types.FunctionType | types.ModuleType) or inspect.isroutine(found):
    told = inspect.getdoc(found) or ""
  else:
    own = inspect.getdoc(found)
    told = own if own and own != inspect.getdoc(type(found)) else f"A {type(found).__name__}."
  return told.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def page() -> str:
  """The page as it should be."""
  parts = [HEAD]
  for package in packages():
    told = inspect.getdoc(importlib.import_module(f"jaxfair.{package}")) or ""
    parts += [f"## {package}\n", told.split("\n\n")[0].replace("\n", " ") + "\n"]
    rows = [f"| `{package}.{name}` | {claim(package, name)} |" for name in names(package)]
    parts += ["\n".join(["| name | what it is |", "|---|---|", *rows]) + "\n"]
  return "\n".join(parts)


if __name__ == "__main__":
  PAGE.write_text(page(), encoding="utf-8")
