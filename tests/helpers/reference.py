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

This page lists every public name: what code outside jaxfair may rely on. Modules whose name starts
with an underscore may change at any time. `help(name)` shows arguments, return values and, for
mechanisms, the privacy proof. The page is generated from docstrings by
`python tests/helpers/reference.py`; a test fails if it is out of date.
"""

# Constants have no docstring of their own.
CONSTANTS = {
  "experiments.Count": "Type of a config field: an integer that is at least 1.",
  "experiments.NonNegative": "Type of a config field: a finite number that is at least 0.",
  "experiments.Positive": "Type of a config field: a finite number above 0.",
  "experiments.Probability": "Type of a config field: a number strictly between 0 and 1.",
  "experiments.Sweep": "Type of a config field: a tuple of distinct values, at least one.",
  "experiments.EVERYONE": 'Value of the column `group` in rows about all people: "everyone".',
  "methods.METHODS": "The registered methods by name.",
  "pate.NO_ANSWER": "The label of a query that is not answered: -1.",
  "robustness.L2": "The ball of the Euclidean norm, for attacks.",
  "robustness.LINF": "The ball of the maximum norm, for attacks.",
  "studies.NAMES": "The names of the studies, as configs refer to them.",
}


def packages() -> list[str]:
  """The public packages, in the order of the reference."""
  modules = {name: getattr(jaxfair, name) for name in jaxfair.__all__}
  return [name for name, found in modules.items() if hasattr(found, "__path__")]


def names(package: str) -> list[str]:
  """What a package exports."""
  return sorted(importlib.import_module(f"jaxfair.{package}").__all__, key=str.lower)


def claim(package: str, name: str) -> str:
  """The first paragraph of a name's docstring; for a constant, its entry in `CONSTANTS`."""
  if (known := CONSTANTS.get(f"{package}.{name}")) is not None:
    return known
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
