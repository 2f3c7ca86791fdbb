"""Malformed configs and files: taken, or refused in one line."""

import contextlib
import datetime
import io
import json
import math
import os
import pathlib
import random
import re
import signal
import sys
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import fault_files
from fault_kills import Row

from jaxfair import data, experiments
from jaxfair.checks import JaxfairError
from jaxfair.experiments import _config as configs

CONFIGS = pathlib.Path(__file__).parents[1] / "configs"
SECONDS = 60  # after which a case is taken to hang
WEIRD: tuple[Any, ...] = (
  10**400,
  -(10**400),
  2**63,
  2**63 - 1,
  -1,
  0,
  1,
  2**31,
  1e308,
  -1e308,
  5e-324,
  math.nan,
  math.inf,
  -math.inf,
  "",
  "x" * 100_000,
  "\0",
  "=1+1",
  "../..",
  "🐈",
  [],
  [[]],
  [[[[1]]]],
  {},
  {"a": 1},
  [1, "a"],
  True,
  False,
  [0.0] * 3000,
  datetime.date(1979, 5, 27),
  datetime.time(7, 32),
  datetime.datetime(1979, 5, 27, 7, 32),
)
WHOLE = (0, 1, 2, 3, -1, 10**6, 2**31, 2**62, -(2**63))
REAL = (
  0.0,
  -0.0,
  -1.0,
  1.0,
  0.5,
  1e-9,
  1e9,
  1e-300,
  5e-324,
  1e300,
  1.8e308,
  math.nan,
  math.inf,
  -math.inf,
)
TOKENS = (
  "[",
  "]",
  "[[",
  "=",
  "\n",
  '"',
  "'''",
  "nan",
  "-inf",
  "0x" + "f" * 5000,
  "9" * 5000,
  "[" * 3000,
  "\\ud800",
  "a.b.c = 1\n",
  "[sizes.smoke]\n",
  "[data]\n",
  "1979-05-27",
  "true",
  "\x00",
  "\x7f",
  "é",
  "#",
)


def check(part: str, count: int, work: pathlib.Path, seed: int, case: int | None) -> list[Row]:
  """The rows of one part; one case again, with its traceback, if asked for."""
  os.environ.pop("JAXFAIR_DATA", None)  # large sets take long to load
  os.environ["JAXFAIR_CACHE"] = str(work / "cache")
  rows: dict[str, Row] = {}
  for number in range(count) if case is None else [case]:
    rng = random.Random(f"{seed} {part} {number}")
    draw = config_case if part == "configs" else fault_files.file_case
    kind, use = draw(rng, work)
    row = rows.setdefault(kind, Row(kind))
    row.faults += 1
    wrong = attempt(use, shown=case is not None)
    if wrong:
      again = f"--only {part} --case {number} --seed {seed}"
      row.failures.append(f"{kind} {number}: {wrong} (again: {again})")
  return list(rows.values())


def attempt(use: Callable[[], Any], *, shown: bool = False) -> str:
  """What is wrong with how the input was handled; "" for nothing."""

  def stop(*_: Any) -> None:
    raise TimeoutError(f"takes more than {SECONDS} seconds")

  signal.signal(signal.SIGALRM, stop)
  signal.alarm(SECONDS)
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      found = use()
    return found if isinstance(found, str) else ""
  except JaxfairError as error:
    if shown:
      print(error)
    long = len(str(error)) > 3000 or "\n" in str(error)
    return f"not one line: {str(error)[:80]!r}" if long else ""
  except Exception as error:
    if shown:
      traceback.print_exc()
    place = traceback.extract_tb(error.__traceback__)
    ours = [f for f in place if "/jaxfair/" in f.filename]
    at = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__} at {at}: {str(error)[:120]}"
  finally:
    signal.alarm(0)


def config_case(rng: random.Random, work: pathlib.Path) -> tuple[str, Callable[[], Any]]:
  """One config with a few mistakes, read as `jaxfair run` reads it."""
  paths = sorted(CONFIGS.rglob("*.toml"))
  text = rng.choice(paths).read_text(encoding="utf-8")
  kind = rng.choice(["types", "numbers", "text"])
  sizes = list(tomllib.loads(text).get("sizes", {}))
  if kind == "text":
    for _ in range(rng.randint(1, 3)):
      text = mutate_text(rng, text)
  else:
    values = tomllib.loads(text)
    if kind == "numbers":  # and people who are there, so that more is computed
      own = {"csv": str(work / "people.csv"), "label": "y", "group": "g"}
      if isinstance(values.get("data"), dict):
        values["data"] = rng.choice([own, {"name": "colored_digits"}])
    for _ in range(rng.randint(1, 2)):
      mutate_values(rng, values, alike=kind == "numbers")
    text = dump(values)
  path = work / "mutated.toml"
  path.write_text(text, encoding="utf-8", errors="surrogateescape")
  size = rng.choice([None, *sizes])
  sets = [weird_set(rng)] if rng.random() < 0.1 else []

  def use() -> None:
    made = experiments.load(path, size=size, sets=sets)
    made.study.cells(made.settings)

  data.fetch = _no_fetch
  return f"configs with wrong {kind}", use


def _no_fetch(name: str, **_: Any) -> None:
  raise data.DataError(f"{name} is not fetched here")


def weird_set(rng: random.Random) -> str:
  """A `--set` that somebody might mistype."""
  name = rng.choice(["seeds", "data.name", "data", "x", "", "seed", "a..b"])
  value = rng.choice([*map(str, TOKENS), "1", "\udc80", "{a = 1}", "[1"])
  return name + rng.choice(["=", "", "=="]) + value


def mutate_values(rng: random.Random, values: dict[str, Any], *, alike: bool) -> None:
  """Replaces, removes, adds or wraps one value somewhere.

  Args:
    rng: where and what.
    values: a config, changed in place.
    alike: only replaces numbers, by others of the same type.
  """
  tables = [values]
  for table in tables:
    tables += [v for v in table.values() if isinstance(v, dict)]
  if alike:
    places = [(t, k) for t in tables for k, v in t.items() if _numeric(v)]
    if places:
      table, key = rng.choice(places)
      table[key] = _other(rng, table[key])
    return
  table = rng.choice([t for t in tables if t] or [values])
  key = rng.choice(sorted(table) or ["x"])
  how = rng.randrange(6)
  if how == 0:
    table.pop(key, None)
  elif how == 1:
    table[key + rng.choice("sx_ ")] = table.get(key)
  elif how == 2:
    table[key] = [table.get(key, 1)] * rng.choice([1, 2, 50])
  elif how == 3 and isinstance(table.get(key), list) and table[key]:
    table[key] = [*table[key], rng.choice(WEIRD)]
  else:
    table[key] = rng.choice(WEIRD)


def _numeric(value: Any) -> bool:
  inner = value if isinstance(value, list) else [value]
  return bool(inner) and all(type(one) in (int, float) for one in inner)


def _other(rng: random.Random, value: Any) -> Any:
  if isinstance(value, list):
    changed = [*value]
    changed[rng.randrange(len(changed))] = _other(rng, value[0])
    return rng.choice([changed, [], changed * 2, changed[:1]])
  return rng.choice(WHOLE if isinstance(value, int) else REAL)


def mutate_text(rng: random.Random, text: str) -> str:
  """Cuts, doubles or inserts something at a random place."""
  start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
  end = min(end, start + rng.choice([1, 10, 100]))
  how = rng.randrange(5)
  if how == 0:
    return text[:start] + text[end:]
  if how == 1:
    return text[:end] + text[start:]
  if how == 2:
    return text[:start]
  if how == 3 and (numbers := list(re.finditer(r"\b\d[\d_.e-]*", text))):
    found = rng.choice(numbers)
    put = rng.choice(["0", "-1", "9" * 400, "nan", "1e999", "-inf", '"1"', "[]"])
    return text[: found.start()] + put + text[found.end() :]
  return text[:start] + rng.choice(TOKENS) + text[start:]


def dump(values: Any) -> str:
  """As TOML, dates too."""
  marked = json.dumps(values, default=lambda date: f"@{date.isoformat()}@")
  text = configs.dump(json.loads(marked))
  return re.sub(r'"@([^@"]*)@"', r"\1", text)


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
  """What is printed meanwhile."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    yield out, err


def command(*arguments: str) -> str:
  """Runs `jaxfair`; what is wrong with how it ended, "" for nothing."""
  from jaxfair import cli

  sys.argv = ["jaxfair", *arguments]
  with captured() as (_, err):
    try:
      cli.main()
      code: Any = 0
    except SystemExit as ended:
      code = ended.code
  lines = err.getvalue().splitlines()
  if code in (0, None):
    return ""
  fine = code == 2 and len(lines) == 1 and lines[0].startswith("jaxfair: ")
  return "" if fine else f"exit code {code} and {len(lines)} lines"
