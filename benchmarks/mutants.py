"""Breaks one line of the privacy code at a time, and sees which test notices.

The mutants are the records of tests/mutants/*.toml. Each is applied to a copy
of the repository, where the tests that should notice are run until one fails.
Before that the same tests must pass on the copy as it is.

  python benchmarks/mutants.py [--jobs 2] [--only NAME ...] [--list] [--fresh]

Prints a table and the number of survivors; ends with 1 if there is one, or if
a test fails without a mutant. Verdicts are kept in .cache/mutants, so that a
run which was stopped goes on where it was: each until its mutant, the mutated
module or one of the named test files changes. `--docs` writes the table of
docs/audit.md, without running anything.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import multiprocessing
import pathlib
import re
import shutil
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "tests" / "mutants"
PAGE = ROOT / "docs" / "audit.md"
BEGIN, END = "<!-- mutants: begin -->\n", "<!-- mutants: end -->\n"
# What tests read; .cache holds compiled programs, most of which no mutant
# changes.
COPIED = ("jaxfair", "tests", "docs", "configs", "benchmarks")
TIMEOUT = 600  # seconds for the tests of one mutant
PASSED, FAILED = 0, 1  # pytest's exit codes
PYTEST = ("-x", "-q", "--tb=line", "-p", "no:cacheprovider")
# What takes longest is loading JAX; a server that has done so forks for every
# run of pytest. Neither jaxfair nor a device is touched before.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["jax", "flax", "haiku", "optax", "scipy.stats"])
RUN_PYTEST = """
import os, sys
os.chdir(root)
os.environ["PYTHONPATH"] = root
sys.path[:] = [root, *(p for p in sys.path if p and p not in others)]
output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(output, 1)
os.dup2(output, 2)
import pytest
sys.exit(int(pytest.main(arguments)))
"""
CULPRIT = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class HarnessError(Exception):
  """A record that does not fit the code, or a run without a verdict."""


@dataclasses.dataclass(frozen=True)
class Mutant:
  """One line of the code, changed.

  Attributes:
    area: the list it stands in.
    name: unique.
    file: the module, from the repository's root.
    old: text that occurs exactly once in it.
    new: what replaces it; differs in one line.
    breaks: which promise is broken.
    tests: pytest's names of those that should notice.
  """

  area: str
  name: str
  file: str
  old: str
  new: str
  breaks: str
  tests: tuple[str, ...]

  def applied(self, text: str) -> str:
    """The module's text with the mistake; raises if the record is stale."""
    found = text.count(self.old)
    if found != 1:
      raise HarnessError(
        f"{self.name}: {self.file} holds the old text {found} times, not "
        "once; update the record to the line as it reads now"
      )
    before, after = self.old.split("\n"), self.new.split("\n")
    changed = sum(a != b for a, b in zip(before, after, strict=False))
    if len(before) != len(after) or changed != 1:
      raise HarnessError(f"{self.name}: old and new must differ in one line")
    return text.replace(self.old, self.new)


def read() -> list[Mutant]:
  """All records, in the order of the lists."""
  found = []
  for path in sorted(LISTS.glob("*.toml")):
    for record in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
      tests = tuple(f"tests/{name}" for name in record.pop("tests"))
      found.append(Mutant(area=path.stem, tests=tests, **record))
  names = [mutant.name for mutant in found]
  if len(set(names)) < len(names):
    raise HarnessError("two mutants have the same name")
  return found


def table(mutants: list[Mutant]) -> str:
  """The table of docs/audit.md."""
  lines = ["| area | mutant | breaks | caught by |", "|---|---|---|---|"]
  for m in mutants:
    short = ", ".join(f"`{test.removeprefix('tests/').split('[')[0]}`" for test in m.tests)
    lines.append(f"| {m.area} | `{m.name}` | {m.breaks} | {short} |")
  return "\n".join([*lines, ""])


def section(page: str) -> str:
  """What stands between the marks of the page."""
  return page.partition(BEGIN)[2].partition(END)[0]


def rewritten(page: str, mutants: list[Mutant]) -> str:
  """The page with the table and the number of these mutants."""
  before, _, rest = page.partition(BEGIN)
  after = rest.partition(END)[2]
  page = f"{before}{BEGIN}{table(mutants)}{END}{after}"
  return re.sub(r"\d+ one-line mutants", f"{len(mutants)} one-line mutants", page)


class Copy:
  """A copy of the repository, in which one module at a time is broken."""

  def __init__(self, folder: pathlib.Path):
    self.root = folder
    for name in COPIED:
      shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
      if path.is_file():
        shutil.copy2(path, folder)
    (ROOT / ".cache").mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(ROOT / ".cache")

  def write(self, file: str, text: str) -> None:
    """Replaces a module; Python must not take the bytecode of the old one."""
    path = self.root / file
    path.write_text(text, encoding="utf-8")
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
      stale.unlink()

  def tested(self, tests: tuple[str, ...], timeout: float | None = TIMEOUT) -> tuple[int, str]:
    """pytest's exit code for these tests, and what it printed."""
    log = self.root / ".pytest-output"
    names = {
      "root": str(self.root),
      "others": [str(ROOT / name) for name in ("", "benchmarks", "tests")],
      "log": str(log),
      "arguments": [*PYTEST, *tests],
    }
    process = SERVER.Process(target=exec, args=(RUN_PYTEST, names))
    process.start()
    process.join(timeout)
    if process.exitcode is None:
      process.kill()
      raise HarnessError(f"{tests} took over {timeout} s")
    return process.exitcode, log.read_text(encoding="utf-8")

  def require_own_code(self, test: str) -> None:
    """Requires that tests import the copy: they must notice if it cannot be."""
    file = "jaxfair/__init__.py"
    text = (ROOT / file).read_text(encoding="utf-8")
    self.write(file, "raise ImportError('mutant')\n")
    code, printed = self.tested((test,))
    self.write(file, text)
    if code == PASSED or "ImportError: mutant" not in printed:
      raise HarnessError(f"tests do not import the copy:\n{printed}")

  def verdict(self, mutant: Mutant) -> str:
    """The test that fails under the mutant; "" if none does."""
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    self.write(mutant.file, mutant.applied(text))
    try:
      code, printed = self.tested(mutant.tests)
    finally:
      self.write(mutant.file, text)
    if code == PASSED:
      return ""
    culprits = CULPRIT.findall(printed)
    if code != FAILED or not culprits:
      raise HarnessError(f"{mutant.name}: no verdict, but\n{printed}")
    return str(culprits[0])


class Verdicts:
  """What is known already, one file each."""

  def __init__(self, *, fresh: bool):
    self._folder = ROOT / ".cache" / "mutants"
    if fresh:
      shutil.rmtree(self._folder, ignore_errors=True)
    self._folder.mkdir(parents=True, exist_ok=True)

  def of(self, mutant: Mutant) -> pathlib.Path:
    """Where the verdict on a mutant is kept."""
    asked = (mutant.file, mutant.old, mutant.new, *mutant.tests)
    return self._path(asked, {mutant.file, *map(_file, mutant.tests)})

  def without(self, test: str, mutants: list[Mutant]) -> pathlib.Path:
    """Where it is kept that a test passes while nothing is broken."""
    files = {mutant.file for mutant in mutants if test in mutant.tests}
    return self._path((test,), files | {_file(test)})

  def _path(self, asked: tuple[str, ...], files: set[str]) -> pathlib.Path:
    digest = hashlib.sha256(json.dumps(asked).encode())
    for file in sorted(files):
      digest.update((ROOT / file).read_bytes())
    return self._folder / digest.hexdigest()[:32]


def _file(test: str) -> str:
  return test.partition("::")[0]


def run(mutants: list[Mutant], *, jobs: int, fresh: bool) -> int:
  """Judges the mutants; the number of survivors."""
  known = Verdicts(fresh=fresh)
  for mutant in mutants:  # before any work
    mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
  paths = {mutant: known.of(mutant) for mutant in mutants}
  missing = [mutant for mutant in mutants if not paths[mutant].exists()]
  with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
    copies = [Copy(_made(pathlib.Path(folder) / str(i))) for i in range(min(jobs, len(missing)))]
    if copies:
      copies[0].require_own_code(missing[0].tests[0])
      _require_passing(copies, missing, known)

    def judge(mutant: Mutant) -> None:
      copy = copies.pop()
      try:
        caught = copy.verdict(mutant)
      finally:
        copies.append(copy)
      paths[mutant].write_text(caught, encoding="utf-8")
      print(f"  {mutant.name}: {caught or 'SURVIVES'}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
      list(pool.map(judge, missing))
  survivors = 0
  print("\n| area | mutant | breaks | caught by |\n|---|---|---|---|")
  for m in mutants:
    caught = paths[m].read_text(encoding="utf-8")
    survivors += not caught
    print(f"| {m.area} | {m.name} | {m.breaks} | {caught or '**SURVIVES**'} |")
  print(f"\n{len(mutants)} mutants, {survivors} survive")
  return survivors


def _made(folder: pathlib.Path) -> pathlib.Path:
  folder.mkdir()
  return folder


def _require_passing(copies: list[Copy], mutants: list[Mutant], known: Verdicts) -> None:
  """Requires that the mutants' tests pass where nothing is broken."""
  tests = sorted({test for mutant in mutants for test in mutant.tests})
  paths = {test: known.without(test, mutants) for test in tests}
  missing = [test for test in tests if not paths[test].exists()]

  def passing(copy: Copy, share: tuple[str, ...]) -> None:
    if not share:
      return
    code, printed = copy.tested(share, timeout=None)
    if code != PASSED:
      raise HarnessError(f"tests fail without a mutant:\n{printed}")
    for test in share:
      paths[test].touch()

  half = -(-len(missing) // len(copies))
  shares = [tuple(missing[i * half :][:half]) for i in range(len(copies))]
  with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
    list(pool.map(passing, copies, shares))


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--jobs", type=int, default=2)
  parser.add_argument("--only", nargs="+", metavar="NAME")
  parser.add_argument("--list", action="store_true", help="names, and no run")
  parser.add_argument("--fresh", action="store_true", help="forgets verdicts")
  parser.add_argument("--docs", action="store_true", help="writes the page")
  chosen = parser.parse_args()
  mutants = read()
  if chosen.docs:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(rewritten(page, mutants), encoding="utf-8")
    return
  if chosen.list:
    for m in mutants:
      print(f"{m.area:12} {m.name:34} {m.breaks}")
    return
  if chosen.only:
    unknown = set(chosen.only) - {m.name for m in mutants}
    if unknown:
      raise HarnessError(f"no mutant is called {', '.join(sorted(unknown))}")
    mutants = [m for m in mutants if m.name in chosen.only]
  sys.exit(run(mutants, jobs=chosen.jobs, fresh=chosen.fresh) > 0)


if __name__ == "__main__":
  main()
