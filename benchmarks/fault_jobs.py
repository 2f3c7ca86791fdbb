"""What `faults.py` kills: four ways to release something, small and checked.

Every job works in a folder of its own and tells what it has released so far. A
check reads the folder from outside: whatever was told must be charged, once.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from jaxfair import accounting, cli, models, pate, privacy, training
from jaxfair.accounting import _locked_file
from jaxfair.types import Examples

Tell = Callable[[str], None]
STEPS = 20
QUERIES = 48
BUDGET = (6.0, 1e-5)
CONFIG = """
study = "methods"
network = "logistic"
epsilons = [3.0]
delta = 1e-3
seeds = 2
public_fraction = 0.2
seed = {seed}
{release}
[data]
csv = "{csv}"
label = "y"
group = "g"
[settings.plain]
steps = 6
batch_size = 16
[settings.dp_sgd]
steps = 20
batch_size = 16
"""


class CommandError(Exception):
  """The command line ended with another code than 0."""

  def __init__(self, code: Any):
    super().__init__(f"jaxfair ended with {code}")
    self.code = code


@dataclasses.dataclass(frozen=True)
class Job:
  """Something to kill.

  Attributes:
    name: in the table.
    work: does it in a folder, from the start or from where it was stopped,
      and returns what a resumed run must equal to the bit, or "" if there is
      nothing to compare.
    check: what is wrong with a folder, given the lines that were told.
    processes: how many do it at the same time.
    share: of all kills.
  """

  name: str
  work: Callable[[pathlib.Path, Tell], str]
  check: Callable[[pathlib.Path, list[str]], Iterator[str]]
  processes: int
  share: float


def train(folder: pathlib.Path, tell: Tell) -> str:
  """`train_to_budget` with a folder and a fixed key."""
  rng = np.random.default_rng(0)
  people = Examples(
    rng.normal(size=(60, 3)).astype(np.float32),
    rng.integers(0, 2, 60).astype(np.int32),
    np.zeros(60, np.int32),
  )
  config = training.DpSgdConfig(learning_rate=0.1, l2_clip=1.0, steps=STEPS, batch_size=8)
  fitted = training.train_to_budget(
    models.logistic(2),
    models.cross_entropy,
    people,
    config,
    epsilon=2.0,
    delta=1e-3,
    key=jax.random.key(0),
    folder=folder / "training",
    progress=lambda done, total: tell(f"step {done}"),
  )
  return digest(*map(np.asarray, jax.tree.leaves(fitted.params)))


def check_training(folder: pathlib.Path, told: list[str]) -> Iterator[str]:
  """Steps that were seen, or lie in a checkpoint, are charged."""
  charged = charged_steps(folder / "training" / "ledger.jsonl")
  seen = [int(line.split()[1]) for line in told if line.startswith("step")]
  saved = [
    int(path.name[5:]) for path in folder.glob("training/private/step-*") if path.name[5:].isdigit()
  ]
  if max([*seen, *saved, 0]) > charged:
    yield f"{max([*seen, *saved])} steps were taken, {charged} are charged"
  if charged > STEPS:
    yield f"{charged} steps are charged for {STEPS}"


def charged_steps(path: pathlib.Path) -> int:
  """The steps of DP-SGD in a ledger; 0 if there is none yet."""
  if not path.exists():
    return 0
  entries: Any = accounting.Ledger.read(path)
  return sum(entry.event.steps for entry in entries)


def answer(folder: pathlib.Path, tell: Tell) -> str:
  """Votes answered a few at a time; another process may do the same.

  Every other folder has a seed, so that its labels can be compared; the others
  draw from the operating system, and may never tell two labels for one query.
  """
  counts = np.stack([np.arange(QUERIES) % 41 + 30, 70 - np.arange(QUERIES) % 41])
  rule = pate.ConfidentGnMax(55, 20.0, 15.0)
  number = int(folder.name)  # 0 is the one to compare with
  seed = None if number and number % 2 == 0 else 7
  labels = np.zeros(0)
  for end in range(4, QUERIES + 1, 4):
    with opened(
      lambda: pate.Answerer(folder / "answers", rule, budget=BUDGET, batch_size=4, seed=seed)
    ) as answerer:
      found = answerer.answer(counts.T[:end], first=0)
      labels = found.labels
      known = zip(found.labels, found.asked, strict=True)
      tell("labels " + " ".join(str(v) for v, asked in known if asked))
  return digest(labels) if seed is not None else ""


def opened(begin: Callable[[], Any], patience: float = 120.0) -> Any:
  """Waits while another process holds the folder."""
  end = time.monotonic() + patience
  while True:
    try:
      return begin()
    except _locked_file.LedgerError as error:
      if "another process" not in str(error) and "by process" not in str(error):
        raise
      if time.monotonic() > end:
        raise
      time.sleep(0.002)


def check_answers(folder: pathlib.Path, told: list[str]) -> Iterator[str]:
  """No query has two labels, and every label and test is charged."""
  labels: dict[int, str] = {}
  for line in told:
    for query, label in enumerate(line.split()[1:]):
      if labels.setdefault(query, label) != label:
        yield f"query {query} was answered {labels[query]} and then {label}"
  path = folder / "answers" / "ledger.jsonl"
  entries: Any = accounting.Ledger.read(path) if path.exists() else ()
  tests = sum(e.event.count for e in entries if ": tests" in e.id)
  paid = sum(e.event.count for e in entries if ": answers" in e.id)
  answered = sum(label != str(pate.NO_ANSWER) for label in labels.values())
  if tests < len(labels) or paid < answered:
    yield (
      f"{len(labels)} tests and {answered} labels were released, {tests} and {paid} are charged"
    )
  if path.exists() and accounting.Ledger.read(path).epsilon() > BUDGET[0]:
    yield "the budget is overrun"


def command(folder: pathlib.Path, tell: Tell, *, release: bool) -> str:
  """`jaxfair run` of a small training, with a release or without."""
  config = folder.parent / f"{'release' if release else 'run'}.toml"
  os.environ["JAXFAIR_STATE"] = str(folder / "state")
  # The operating system would give another key: bits could not be compared.
  fixed = jax.random.key(11)
  privacy.os_key = lambda: fixed  # type: ignore[assignment]
  sys.argv = ["jaxfair", "run", str(config), "--out", str(folder / "run")]
  try:
    cli.main()
  except SystemExit as ended:
    if ended.code:
      raise CommandError(ended.code) from None
  tell("done")
  run = folder / "run"
  names = ["results.csv", "claims.json"]
  parts = [(run / name).read_bytes() for name in names]
  parts += [path.read_bytes() for path in sorted(run.glob("cells/*.csv"))]
  parts += [path.read_bytes() for path in run.glob("release/arrays.npz")]
  return digest(*parts)


def check_command(folder: pathlib.Path, told: list[str], *, release: bool) -> Iterator[str]:
  """What lies in release/ is paid for, in both ledgers."""
  run = folder / "run"
  own = charged_steps(run / "work" / "ledger.jsonl")
  there = (run / "release" / "arrays.npz").exists()
  if there and own != STEPS:
    yield f"a model of {STEPS} steps is released, {own} are charged"
  if there and release:
    books = list((folder / "state").rglob("*.jsonl"))
    whole = sum(charged_steps(book) for book in books)
    if whole != STEPS:
      yield f"the data set's ledger has {whole} steps of {STEPS}"
  if told and release and any(run.rglob("secret_key")):
    yield "a finished release has kept its key"


def digest(*parts: Any) -> str:
  """Of arrays and bytes."""
  found = hashlib.sha256()
  for part in parts:
    found.update(part if isinstance(part, bytes) else part.tobytes())
  return found.hexdigest()


def write_inputs(work: pathlib.Path) -> None:
  """A CSV file of 120 made-up people, and two configs that read it."""
  path, rng = work / "people.csv", np.random.default_rng(0)
  release = "release_epsilon = 2.0"
  for name, seed, more in (("run", "3", ""), ("release", '"os"', release)):
    text = CONFIG.format(seed=seed, release=more, csv=path)
    (work / f"{name}.toml").write_text(text)
  lines = ["a,b,g,y"]
  for i in range(120):
    a, b = rng.normal(size=2)
    lines.append(f"{a:.4f},{b:.4f},{'uv'[i % 2]},{int(a + b > 0)}")
  path.write_text("\n".join(lines) + "\n")


JOBS = (
  Job("train_to_budget", train, check_training, 1, 0.1),
  Job("Answerer, one process", answer, check_answers, 1, 0.4),
  Job("Answerer, two processes", answer, check_answers, 2, 0.3),
  Job(
    "jaxfair run",
    functools.partial(command, release=False),
    functools.partial(check_command, release=False),
    1,
    0.1,
  ),
  Job(
    "release with seed = os",
    functools.partial(command, release=True),
    functools.partial(check_command, release=True),
    1,
    0.1,
  ),
)
