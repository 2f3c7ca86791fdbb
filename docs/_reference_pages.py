"""Sphinx extension: one page per package, from docstrings, with where each name is used."""

import importlib
import inspect
import pathlib
import re
import types
from typing import Any

from helpers import examples, reference

HERE = pathlib.Path(__file__).parent
SECTION = re.compile(
  r"(Args|Attributes|Returns|Raises|Yields|Privacy|Assumptions|Notes?|"
  r"References?|Examples?|Proof|Cost|Memory):(.*)"
)
LISTED = ("Args", "Attributes", "Raises")
FORMULA = re.compile(r"^[^.`]*( = | <= | >= | ~ )[^.`]*$")


def setup(app: Any) -> dict[str, bool]:
  """Writes the pages before Sphinx looks for sources."""
  app.connect("config-inited", lambda app, config: write())
  return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: pathlib.Path = HERE / "api") -> None:
  """Writes `api/PACKAGE.md` of every package, and `api/index.md`."""
  folder.mkdir(exist_ok=True)
  used = examples.uses()
  written = {"index.md": _index()}
  for package in reference.packages():
    written[f"{package}.md"] = _page(package, used)
  for path in folder.glob("*.md"):
    if path.name not in written:
      path.unlink()
  for name, text in written.items():
    path = folder / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
      path.write_text(text, encoding="utf-8")


def _index() -> str:
  listed = "\n".join(reference.packages())
  return (
    "# Names, package by package\n\nEvery public name with its signature, its docstring and the "
    "executed examples that use it.\n\n```{toctree}\n:maxdepth: 1\n\n" + listed + "\n```\n"
  )


def _page(package: str, used: dict[str, list[str]]) -> str:
  module = importlib.import_module(f"jaxfair.{package}")
  parts = [f"# jaxfair.{package}", *render(inspect.getdoc(module) or "")]
  for name in reference.names(package):
    parts += _entry(package, name, getattr(module, name), used.get(f"{package}.{name}", []))
  return "\n\n".join(parts) + "\n"


def _entry(package: str, name: str, found: Any, pages: list[str]) -> list[str]:
  known = f"{package}.{name}" in reference.CONSTANTS
  if isinstance(found, types.ModuleType):
    kind, signature = "data", ""
  elif inspect.isclass(found) and not known:
    kind, signature = "class", _signature(found)
  elif callable(found) and not known:
    kind, signature = "function", _signature(found)
  else:
    kind, signature = "data", ""
  told = reference.CONSTANTS.get(f"{package}.{name}") if known else inspect.getdoc(found)
  body = render(told or reference.claim(package, name))
  links = ", ".join(f"[{pathlib.PurePath(page).stem}](../{page})" for page in pages)
  body += [f"**Used in:** {links}"] if links else []
  inside = "\n\n".join(body)
  return [
    f"## {name}",
    f"`````{{py:{kind}}} jaxfair.{package}.{name}{signature}\n\n{inside}\n`````",
  ]


def _signature(found: Any) -> str:
  """Parameters without annotations; defaults only where they are short and plain."""
  try:
    signature = inspect.signature(found)
  except (TypeError, ValueError):
    return "()"
  kept = []
  for one in signature.parameters.values():
    default = one.default
    plain = default is one.empty or isinstance(default, int | float | str | bool | None)
    kept.append(one.replace(annotation=one.empty, default=default if plain else ...))
  bare = signature.replace(parameters=kept, return_annotation=signature.empty)
  return str(bare).replace("Ellipsis", "...")


def render(docstring: str) -> list[str]:
  """Markdown blocks of a docstring: claims, formulas, sections, lists of arguments."""
  blocks: list[str] = []
  section, lines = None, []
  for line in [*docstring.splitlines(), "End:"]:
    found = SECTION.fullmatch(line) or (line == "End:" and re.fullmatch("(End):()", line))
    if not found:
      lines.append(line)
      continue
    blocks += _section(section, lines)
    section, lines = found[1], [found[2]] if found[2].strip() else []
  return blocks


def _section(name: str | None, lines: list[str]) -> list[str]:
  text = inspect.cleandoc("\n".join(lines))
  if not text:
    return []
  if name in LISTED:
    return [f"**{name}**", _listed(text)]
  blocks = [_paragraph(part) for part in re.split(r"\n\s*\n", text)]
  return blocks if name is None else [f"**{name}**", *blocks]


def _listed(text: str) -> str:
  """`name: what` lines as a list; what is indented belongs to the entry above."""
  entries: list[str] = []
  for line in text.splitlines():
    if line[:1].strip() or not entries:
      entries.append(line)
    else:
      entries[-1] += " " + line.strip()
  shown = []
  for entry in entries:
    name, colon, what = entry.partition(": ")
    shown.append(f"- `{name}`: {escaped(what)}" if colon and "`" not in name else escaped(entry))
  return "\n".join(shown)


def _paragraph(text: str) -> str:
  indented = text.startswith("  ") or all(line.startswith("  ") for line in text.splitlines())
  if indented or ("\n" not in text and FORMULA.match(text)):
    return f"```text\n{inspect.cleandoc(text)}\n```"
  return escaped(text)


def escaped(text: str) -> str:
  """Text with Markdown's signs made plain, except for code between backticks."""
  pieces = re.split(r"(`[^`]*`)", text)
  plain = (re.sub(r"([\\*_\[\]<>|$#{}~^])", r"\\\1", piece) for piece in pieces[::2])
  merged = list(pieces)
  merged[::2] = plain
  return "".join(merged)
