"""The documentation names only things that exist."""

import ast
import dataclasses
import functools
import importlib
import inspect
import re
import shlex

import pytest
import typer

from helpers import pages
from jaxfair import experiments, studies
from jaxfair.cli import _app

PACKAGES = {
  path.stem
  for path in (pages.ROOT / "jaxfair").iterdir()
  if not path.name.startswith("__") and path.suffix in ("", ".py") and not path.is_symlink()
}
FOLDERS = ("jaxfair", "tests", "configs", "benchmarks", "docs", *PACKAGES)
DOTTED = re.compile(rf"(?<!--set )(?<![\w./-])(?:jaxfair|{'|'.join(PACKAGES)})(?:\.\w+)+")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})(?:/[\w.*-]+)+")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)[^)]*\)")
FILE = re.compile(r"\.(html|json|jsonl|csv|toml|md|npz|py)\b")
# Settings of a config, and files that a reader is told to write.
SETTINGS = {f"data.{f.name}" for f in dataclasses.fields(experiments.People)}
OF_THE_READER = {
  "decay.py",
  "jaxfair/studies/decay.py",
  "configs/decay.toml",
  "jaxfair/a/b.py",
  "tests/a/test_b.py",
}


@functools.cache
def resolve(name: str) -> object | None:
  """What a dotted name stands for; None if there is no such thing."""
  found: object = importlib.import_module("jaxfair")
  for part in name.removeprefix("jaxfair.").split("."):
    if hasattr(found, part):
      found = getattr(found, part)
    elif part in getattr(found, "__dataclass_fields__", {}):
      found = found.__dataclass_fields__[part]
    elif inspect.ismodule(found):
      try:
        found = importlib.import_module(f"{found.__name__}.{part}")
      except ImportError:
        return None
    else:
      return None
  return found


def exists(path: str) -> bool:
  """Whether a path is one of the repository, the library or its tests."""
  roots = (pages.ROOT, pages.ROOT / "jaxfair", pages.ROOT / "tests")
  return any(any(root.glob(path)) for root in roots)


def dotted(node: ast.expr) -> str | None:
  """The dotted name that an expression is; None for any other expression."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    owner = dotted(node.value)
    return owner and f"{owner}.{node.attr}"
  return None


def unknown_in_python(tree: ast.Module) -> list[str]:
  """Names and arguments that Python code uses and that do not exist."""
  own = {
    node.id
    for node in ast.walk(tree)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
  }
  wrong = []
  for node in ast.walk(tree):
    called = node.func if isinstance(node, ast.Call) else node
    name = dotted(called) if isinstance(called, ast.Attribute) else None
    if name is None or name.split(".")[0] not in {"jaxfair", *PACKAGES} - own:
      continue
    found = resolve(name)
    if found is None and name not in SETTINGS and name not in studies.NAMES:
      wrong.append(name)
    elif isinstance(node, ast.Call) and callable(found):
      wrong += [
        f"{name}({keyword.arg}=)" for keyword in node.keywords if not accepts(found, keyword.arg)
      ]
  return wrong


def accepts(function, argument: str | None) -> bool:
  """Whether an argument may be passed by name; None stands for `**`."""
  parameters = inspect.signature(function).parameters
  kinds = inspect.Parameter
  more = any(one.kind is kinds.VAR_KEYWORD for one in parameters.values())
  one = parameters.get(argument)
  return argument is None or more or (one is not None and one.kind is not kinds.POSITIONAL_ONLY)


def unknown_names(text: str) -> list[str]:
  wrong = []
  whole = pages.parsed("\n".join(pages.code_blocks(text)))
  assert whole is not None
  wrong += unknown_in_python(whole)
  for span in pages.spans(text):
    if FILE.search(span):
      continue
    tree = pages.parsed(span)
    if tree is not None:
      wrong += unknown_in_python(tree)
      continue
    for name in DOTTED.findall(span):
      known = resolve(name) is not None or FILE.search(name)
      if not known and name not in SETTINGS and name not in studies.NAMES:
        wrong.append(name)
  return wrong


def unknown_paths(text: str) -> list[str]:
  code = [*pages.spans(text), *pages.shell_lines(text)]
  wrong = []
  for piece in code:
    for path in PATH.findall(piece):
      folder = path.split("/")[0]
      named = folder not in PACKAGES or path.endswith(".py")
      if named and path not in OF_THE_READER and not exists(path):
        wrong.append(path)
    alone = re.fullmatch(r"\w+\.py", piece) and piece not in OF_THE_READER
    if alone and not exists(f"**/{piece}"):
      wrong.append(piece)
  return wrong


def unknown_in_command(line: str) -> list[str]:
  """Commands and options of a line that calls `jaxfair`."""
  command = typer.main.get_command(_app.app)
  words = shlex.split(line, comments=True)[1:]
  while words and hasattr(command, "commands"):
    word = words.pop(0)
    if word.startswith("-"):
      break
    if word not in command.commands:
      return [f"{line}: no command {word}"]
    command = command.commands[word]
  options = {"--help", *(o for p in command.params for o in p.opts)}
  asked = (word.split("=")[0] for word in words if word.startswith("--"))
  return [f"{line}: no option {word}" for word in asked if word not in options]


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda path: str(path.relative_to(pages.ROOT)))
def test_what_a_page_names_exists(page):
  text = page.read_text(encoding="utf-8")
  commands = [
    code.strip()
    for code in (*pages.spans(text), *pages.shell_lines(text))
    if re.match(r"\s*jaxfair [a-z]", code)
  ]
  wrong = [*unknown_names(text), *unknown_paths(text)]
  for command in commands:
    wrong += unknown_in_command(command)
  links = LINK.findall(pages.outside_blocks(text))
  wrong += [link for link in links if not (page.parent / link).exists()]
  assert not wrong


@pytest.mark.parametrize(
  "text",
  [
    "`privacy.NoSuchClip`",
    "`adaptive=privacy.NoSuchClip(...)`",
    "`pate.vote_counts(votes, 2, teachers=250)`",
    "```python\nfrom jaxfair import data\ndata.no_such_set(3)\n```",
    "`training.fit ...` and `training.no_such ...`",
  ],
)
def test_a_name_that_is_gone_is_noticed(text):
  assert unknown_names(text)


@pytest.mark.parametrize(
  "text",
  [
    "`tests/no_such.py`",
    "`experiments/no_such.py`",
    "`no_such.py`",
    "```sh\njaxfair run configs/no_such.toml\n```",
  ],
)
def test_a_path_that_is_gone_is_noticed(text):
  assert unknown_paths(text)


@pytest.mark.parametrize("line", ["jaxfair no-such", "jaxfair account pate VOTES --no-such 3"])
def test_a_command_that_is_gone_is_noticed(line):
  assert unknown_in_command(line)
