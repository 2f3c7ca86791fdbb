"""Where each public name is used in code that is executed: pages, the gallery, this site."""

import ast

from helpers import pages, reference

DOCS = pages.ROOT / "docs"


def sources() -> dict[str, str]:
  """The code of each executed page or script, by its path in docs."""
  found = {}
  for path in sorted(DOCS.rglob("*.md")):
    if "api" not in path.relative_to(DOCS).parts:
      found[str(path.relative_to(DOCS))] = "\n".join(pages.code_blocks(path.read_text("utf-8")))
  for path in sorted((DOCS / "gallery").glob("*.py")):
    found[str(path.relative_to(DOCS))] = path.read_text("utf-8")
  return {name: code for name, code in found.items() if code}


def names_in(code: str) -> set[str]:
  """Dotted names such as `data.load` that code uses, however it imports them."""
  tree = ast.parse(code)
  known: dict[str, str] = {}  # what a name in the code stands for
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jaxfair":
      above = node.module.removeprefix("jaxfair").removeprefix(".")
      for one in node.names:
        known[one.asname or one.name] = f"{above}.{one.name}".removeprefix(".")
  found = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute | ast.Name):
      first, _, rest = ast.unparse(node).removeprefix("jaxfair.").partition(".")
      whole = f"{known.get(first, first)}.{rest}".rstrip(".")
      found.add(".".join(whole.split(".")[:2]))
  return found


def uses() -> dict[str, list[str]]:
  """The executed sources that use each public name; an empty list for none."""
  found = {path: names_in(code) for path, code in sources().items()}
  public = (
    f"{package}.{name}" for package in reference.packages() for name in reference.names(package)
  )
  return {name: [path for path, used in found.items() if name in used] for name in public}


def unused() -> list[str]:
  """Public names that no executed example uses."""
  return [name for name, where in uses().items() if not where]


if __name__ == "__main__":
  print(*unused(), sep="\n")
