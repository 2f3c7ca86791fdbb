"""Records what the library computes, and compares a later state with it.

  python tests/frozen/freeze.py record .frozen      # on the commit before
  python tests/frozen/freeze.py compare .frozen     # after every step

Two kinds of items are frozen: `configs/...`, the results.csv of every config
at its smoke size, and `functions/...`, the public functions listed in
`functions.py` on fixed inputs. The last bits depend on the machine and on the
version of JAX, so nothing is committed: record and compare on one machine.

Both commands continue where they stopped. Results belong to the state of the
sources that computed them; `compare` starts again when a source changes.
"""

import argparse
import concurrent.futures
import csv
import fnmatch
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
AT_ONCE = 2
# Columns of `times` studies: they measure the machine, not the library.
TIMES = re.compile(r"(^|_)seconds$|^after_teachers$|_over_")
# Two devices, a pool of three threads, and compilation without polish, so
# that neither the number of cores nor the time of compilation matters.
SETTINGS = {
  "JAX_NUM_CPU_DEVICES": "2",
  "NPROC": "3",
  "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
}


def main(arguments: Sequence[str]) -> int:
  """Runs a command; 0 if everything that ran is equal and nothing is left."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
  parser.add_argument("command", choices=("record", "compare"))
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument(
    "--only", action="append", metavar="GLOB", help="names such as configs/pate/*"
  )
  parser.add_argument(
    "--budget",
    type=float,
    default=float("inf"),
    metavar="SECONDS",
    help="start no further config after this time",
  )
  parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the checkout to run")
  options = parser.parse_args(arguments)
  folder, root = options.folder.resolve(), options.root.resolve()
  digest = code_digest(root)
  recorded = folder / "recorded"
  if options.command == "record":
    _claim(recorded, digest)
    target = recorded
  else:
    target = folder / "compared" / digest[:12]
    _claim(target, digest)
  wanted = [
    name
    for name in item_names(root)
    if any(fnmatch.fnmatch(name, glob) for glob in options.only or ["*"])
  ]
  if options.command == "compare":
    unknown = [name for name in wanted if not (recorded / name).exists()]
    if unknown:
      print(f"not recorded, so not compared: {', '.join(unknown)}")
    wanted = [name for name in wanted if name not in unknown]
  left = compute(wanted, root, folder, target, budget=options.budget)
  print(f"{len(wanted) - len(left)} items are there, {len(left)} are left")
  if options.command == "record":
    return int(bool(left))
  return int(report(recorded, target, wanted, left) > 0 or bool(left))


def item_names(root: pathlib.Path) -> list[str]:
  """All items: the cases of `functions.py`, the configs without a suffix."""
  text = (HERE / "functions.py").read_text(encoding="utf-8")
  cases = re.findall(r"^@frozen\ndef (\w+)", text, flags=re.MULTILINE)
  configs = sorted((root / "configs").rglob("[!_]*.toml"))
  return [
    *(f"functions/{name}" for name in cases),
    *(path.relative_to(root).with_suffix("").as_posix() for path in configs),
  ]


def code_digest(root: pathlib.Path) -> str:
  """SHA-256 of everything that decides a result: sources and configs."""
  found = hashlib.sha256()
  paths = [*(root / "jaxfair").rglob("*.py"), *(root / "configs").rglob("*.toml")]
  for path in sorted(paths):
    name = path.relative_to(root).as_posix()
    found.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
  return found.hexdigest()


def compute(
  wanted: Iterable[str],
  root: pathlib.Path,
  folder: pathlib.Path,
  target: pathlib.Path,
  *,
  budget: float,
) -> list[str]:
  """Computes the items that are missing; returns those that are left."""
  ends = time.monotonic() + budget

  def one(name: str) -> str | None:
    if (target / name).exists():
      return None
    if time.monotonic() > ends:
      return name
    began = time.monotonic()
    failure = _child(name, root, folder, target)
    print(f"{time.monotonic() - began:6.0f} s  {name} {failure}", flush=True)
    return name if failure else None

  with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
    return [name for name in pool.map(one, wanted) if name is not None]


def report(
  recorded: pathlib.Path, target: pathlib.Path, wanted: Iterable[str], left: Iterable[str]
) -> int:
  """Prints what differs; the number of items that do."""
  done = [name for name in wanted if name not in set(left)]
  differing = 0
  for name in done:
    is_function = name.startswith("functions/")
    compare = differing_arrays if is_function else differing_cells
    lines = list(compare(recorded / name, target / name))
    differing += bool(lines)
    if lines:
      print(f"{name} differs:")
      print("".join(f"  {line}\n" for line in lines), end="")
  print(f"{len(done) - differing} of {len(done)} items are equal")
  return differing


def table_digest(path: pathlib.Path) -> str:
  """SHA-256 of a results.csv without its columns of times."""
  names, rows = _table(path)
  text = "\n".join(",".join(map(repr, row)) for row in [names, *rows])
  return hashlib.sha256(text.encode()).hexdigest()


def differing_cells(before: pathlib.Path, now: pathlib.Path) -> Iterator[str]:
  """One line for each column of a results.csv that differs."""
  if table_digest(before) == table_digest(now):
    return
  (old_names, old), (new_names, new) = _table(before), _table(now)
  if old_names != new_names:
    gone = [name for name in old_names if name not in new_names]
    more = [name for name in new_names if name not in old_names]
    yield f"columns: without {gone}, with {more}, or in another order"
  if len(old) != len(new):
    yield f"{len(old)} rows before, {len(new)} now"
    return
  for name in [name for name in old_names if name in new_names]:
    first, second = old_names.index(name), new_names.index(name)
    rows = [i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a[first] != b[second]]
    if rows:
      i = rows[0]
      yield (
        f"{name}: {len(rows)} of {len(old)} rows, first row {i + 1}: "
        f"{old[i][first]} -> {new[i][second]}"
      )


def differing_arrays(before: pathlib.Path, now: pathlib.Path) -> Iterator[str]:
  """One line for each array of the frozen functions that differs."""
  old, new = (dict(np.load(p / "arrays.npz")) for p in (before, now))
  for name in sorted({*old, *new}):
    if name not in old or name not in new:
      yield f"{name}: {'new' if name in new else 'gone'}"
      continue
    a, b = old[name], new[name]
    if a.dtype != b.dtype or a.shape != b.shape:
      yield f"{name}: {a.dtype}{a.shape} -> {b.dtype}{b.shape}"
    elif a.tobytes() != b.tobytes():
      with np.errstate(invalid="ignore"):
        most = np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max()
      yield f"{name}: differs by up to {most:g}"


def _table(path: pathlib.Path) -> tuple[list[str], list[list[str]]]:
  path = path / "results.csv"
  with path.open(newline="", encoding="utf-8") as file:
    names, *rows = csv.reader(file)
  kept = [i for i, name in enumerate(names) if not TIMES.search(name)]
  return [names[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _claim(target: pathlib.Path, digest: str) -> None:
  """Makes the folder, or refuses one that other sources were recorded in."""
  target.mkdir(parents=True, exist_ok=True)
  note = target / "code.txt"
  if note.exists() and note.read_text() != digest:
    raise SystemExit(
      f"{target} was recorded with other sources; name another folder, or delete it to record again"
    )
  note.write_text(digest)


def _child(name: str, root: pathlib.Path, folder: pathlib.Path, target: pathlib.Path) -> str:
  """Computes one item in a process of its own; what went wrong, if anything.

  The item's folder appears when it is complete. Equal programs are compiled
  once for all comparisons, so those take a fraction of the first recording.
  """
  work = target / "unfinished" / name.replace("/", "+")
  environment = os.environ | SETTINGS
  environment |= {
    "PYTHONPATH": str(root),
    "JAXFAIR_STATE": str(folder / "state"),
    "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
  }
  if name.startswith("functions/"):
    command = [str(HERE / "functions.py"), name, str(work)]
  else:  # the command line stays when modules move
    run = ["-m", "jaxfair", "run", f"{name}.toml", "--size", "smoke"]
    command = [*run, "--out", str(work)]
  ran = subprocess.run(
    [sys.executable, *command],
    env=environment,
    cwd=root,
    capture_output=True,
    text=True,
    check=False,
  )
  if ran.returncode:
    last = (ran.stderr.strip() or "no message").splitlines()[-1]
    return f"FAILED: {last}"
  (target / name).parent.mkdir(parents=True, exist_ok=True)
  work.rename(target / name)
  return ""


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
