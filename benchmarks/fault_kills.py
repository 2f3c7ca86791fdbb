"""Children that are killed, or whose disk is full, and what remains of them.

The parent has everything imported but no JAX backend, which would not survive
a fork; a child starts its own.
"""

import contextlib
import dataclasses
import errno
import functools
import os
import pathlib
import pickle
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from typing import Any

import fault_jobs
from fault_jobs import Job, write_inputs

from jaxfair import accounting
from jaxfair.checks import JaxfairError

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
LIFE = 1800.0  # seconds after which a child is taken to hang


@dataclasses.dataclass(frozen=True)
class Fault:
  """What goes wrong in a child.

  Attributes:
    kind: "none"; "kill" at an operation on files; "late" for a kill after some
      seconds; "full" for operations on files that fail from one on; "limit"
      for files that may not grow beyond some bytes.
    at: number of the operation, seconds, or bytes.
  """

  kind: str = "none"
  at: float = 0.0

  def __str__(self) -> str:
    return f"{self.kind} at {self.at:g}"


@dataclasses.dataclass
class Life:
  """How one child ended, and what it told."""

  code: int
  told: list[str]
  result: str = ""
  operations: int = 0
  seconds: float = 0.0
  error: str = ""


@dataclasses.dataclass
class Row:
  """A line of the table."""

  name: str
  faults: int = 0
  resumed: int = 0
  compared: int = 0
  equal: int = 0
  failures: list[str] = dataclasses.field(default_factory=list)


def prepare(work: pathlib.Path) -> None:
  """Makes the parent ready: data, remembered arithmetic, compiled programs."""
  import jax

  work.mkdir(parents=True, exist_ok=True)
  if any(work.iterdir()):
    raise SystemExit(f"{work} is not empty; name another folder with --work")
  write_inputs(work)
  jax.config.update("jax_compilation_cache_dir", str(work / "programs"))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
  for name in ("calibrate_dp_sgd", "composed_guarantee", "max_batch_for"):
    setattr(accounting, name, remembered(getattr(accounting, name)))


# Noise for a budget takes seconds to find, and is the same in every life.
REMEMBERED: dict[str, Any] = {}


def remembered(function: Any) -> Any:
  """Computed once for equal arguments; children inherit what is known."""

  @functools.wraps(function)
  def call(*args: Any, **kwargs: Any) -> Any:
    name = f"{function.__name__} {args} {sorted(kwargs.items())}"
    if name not in REMEMBERED:
      REMEMBERED[name] = function(*args, **kwargs)
    return REMEMBERED[name]

  return call


def kills(job: Job, count: int, work: pathlib.Path, seed: int) -> Row:
  """Kills a job at random moments until `count` kills have hit."""
  rng, row = random.Random(f"{seed} {job.name}"), Row(job.name)
  wanted = reference(job, work, row)
  number = 1
  while row.faults < count and len(row.failures) < 5:
    faults = []
    for _ in range(min(rng.randint(1, 4), count - row.faults)):
      late = rng.random() < 0.3
      at = rng.random() * 0.6 * wanted.seconds  # compiled, it takes less
      faults.append(Fault("late", at) if late else Fault("kill", rng.randint(1, wanted.operations)))
    row.faults += endure(job, work, number, faults, wanted, row)
    number += 1
  return row


def full_disks(job: Job, count: int, work: pathlib.Path, seed: int) -> Row:
  """Lets the disk be full at random writes, then goes on with space."""
  rng, row = random.Random(f"{seed} full {job.name}"), Row(job.name)
  wanted = reference(job, work, row)
  for number in range(1, count + 1):
    fault = (
      Fault("full", rng.randint(1, wanted.operations))
      if rng.random() < 0.6
      else Fault("limit", int(10 ** rng.uniform(0, 4.5)))
    )
    row.faults += 1
    endure(job, work, number, [fault], wanted, row)
  return row


def reference(job: Job, work: pathlib.Path, row: Row) -> Life:
  """An uninterrupted run, which compiles programs for those that follow."""
  folder = work / "0"
  shutil.rmtree(folder, ignore_errors=True)
  (wanted,) = live(job, folder, [Fault()])
  if wanted.code:
    raise SystemExit(f"{job.name} does not even run: {wanted.error}")
  REMEMBERED.update(pickle.loads((work / "remembered").read_bytes()))
  row.failures += job.check(folder, wanted.told)
  return wanted


def endure(
  job: Job, work: pathlib.Path, number: int, faults: list[Fault], wanted: Life, row: Row
) -> int:
  """One folder: faults one after the other, then a run to the end."""
  folder, told, hits = work / str(number), [], 0
  shutil.rmtree(folder, ignore_errors=True)
  story = f"{job.name}, folder {number}, {', '.join(map(str, faults))}"
  for fault in [*faults, Fault()]:
    lives = live(job, folder, [fault] * job.processes)
    for life in lives:
      hits += life.code == -signal.SIGKILL
      told += life.told
      if life.error and (fault.kind == "none" or life.error[0] == "!"):
        row.failures.append(f"{story}: {fault}: {life.error.lstrip('!')}")
    row.failures += [f"{story}: {w}" for w in job.check(folder, told)]
    if fault.kind == "none":
      found = {life.result for life in lives}
      row.resumed += 1
      row.compared += found != {""}
      row.equal += found == {wanted.result}
      if found not in ({""}, {wanted.result}):
        row.failures.append(f"{story}: the resumed run has other bits")
  if not any(one.startswith(story) for one in row.failures):
    shutil.rmtree(folder)
  return hits


def live(job: Job, folder: pathlib.Path, faults: list[Fault]) -> list[Life]:
  """Starts a child for each fault, and waits for all."""
  folder.mkdir(parents=True, exist_ok=True)
  children = []
  for i, fault in enumerate(faults):
    said = folder.with_name(f"{folder.name}.told{i}")
    said.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
      _child(job, folder, said, fault)
    children.append((child, said, time.monotonic(), fault))
  return [_wait(*one) for one in children]


def _wait(child: int, said: pathlib.Path, began: float, fault: Fault) -> Life:
  limit = fault.at if fault.kind == "late" else LIFE
  while True:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
      break
    if time.monotonic() - began > limit:
      os.kill(child, signal.SIGKILL)
      _, status = os.waitpid(child, 0)
      break
    time.sleep(0.002)
  code = os.waitstatus_to_exitcode(status)
  *lines, _ = said.read_text().split("\n") if said.exists() else [""]
  life = Life(code, [])
  life.seconds = time.monotonic() - began
  for line in lines:
    kind, _, rest = line.partition(" ")
    if kind == "result":
      life.result, operations = rest.rsplit(" ", 1)
      life.operations = int(operations)
    elif kind == "error":
      life.error = rest
    else:
      life.told.append(line)
  if code == -signal.SIGKILL and life.seconds >= LIFE:
    life.error = f"!hangs for {LIFE:g} seconds"
  elif code not in (0, 1, -signal.SIGKILL):
    life.error = f"!ended with code {code}"
  return life


def _child(job: Job, folder: pathlib.Path, said: pathlib.Path, fault: Fault) -> None:
  """Does the job and never returns."""
  handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
  write, counted = os.write, [0]

  def tell(line: str) -> None:
    write(handle, (line + "\n").encode())

  code = 1
  try:
    quiet = os.open(f"{said}.output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    if fault.kind == "limit":
      resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault.at), -1))
    _watch(fault, counted)
    result = job.work(folder, tell)
    if folder.name == "0":
      known = pickle.dumps(REMEMBERED)
      folder.with_name("remembered").write_bytes(known)
    tell(f"result {result} {counted[0]}")
    code = 0
  except BaseException as error:
    sys.stdout.flush()
    sys.stderr.flush()
    output = pathlib.Path(f"{said}.output").read_text(errors="replace")
    expected = isinstance(error, JaxfairError | OSError)
    if isinstance(error, fault_jobs.CommandError):
      lines = [o for o in output.splitlines() if o.startswith("jaxfair: ")]
      expected = error.code == 2 and len(lines) == 1 and "Traceback" not in output
    with contextlib.suppress(OSError):
      traceback.print_exc()
    told = " ".join(f"{type(error).__name__}: {error}".split())
    tell(f"error {'' if expected else '!'}{told[:300]}")
  finally:
    os._exit(code)


def _watch(fault: Fault, counted: list[int]) -> None:
  """Counts what is done to files, and lets the chosen operation go wrong."""

  def operate() -> None:
    counted[0] += 1
    if fault.kind == "kill" and counted[0] == fault.at:
      os.kill(os.getpid(), signal.SIGKILL)
    if fault.kind == "full" and counted[0] >= fault.at:
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  def hook(event: str, arguments: Any) -> None:
    if event == "open":
      path, _, flags = arguments
      ours = isinstance(path, str | bytes | os.PathLike) and flags & WRITES
      if ours and "/programs/" not in os.fsdecode(path):
        operate()
    elif event in ("os.rename", "os.link", "os.mkdir"):
      operate()

  def counting(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
      operate()
      return function(*args, **kwargs)

    return call

  os.fsync, os.write = counting(os.fsync), counting(os.write)
  sys.addaudithook(hook)
