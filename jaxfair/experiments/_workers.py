"""Cells of a run on workers: processes of this machine, or a Ray cluster.

The driver holds the run directory and is its only writer. A worker gets the resolved config and
the name of a cell, and returns plain values (`CellResult`). Keys are derived from names, so the
table has the same bytes whichever worker computed a cell, and a cell whose worker died is computed
again by another.
"""

import concurrent.futures
import contextlib
import importlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from jaxfair import _schema, checks
from jaxfair.experiments import _config, _folders
from jaxfair.experiments._cells import CellResult, Plan, code_digest, software

TRIES = 3  # of one cell, if workers die
WORKER = "jaxfair.experiments._worker"  # another process, so it is named and not imported


class WorkerDiedError(Exception):
  """The process that computed a cell is gone; the cell may be tried again."""


class Engine(Protocol):
  """Where cells are computed."""

  slots: int  # cells at a time

  def compute(self, config: str, name: str) -> dict[str, Any]:
    """`_worker.answer` on a worker; blocks; raises `WorkerDiedError` if the worker is lost."""
    ...

  def close(self) -> None:
    """Ends all workers."""
    ...


def compute_on(
  engine: Engine, made: Plan, names: Sequence[str]
) -> Iterator[tuple[str, CellResult]]:
  """Computes cells on workers and yields each with its result, as they finish.

  Args:
    engine: from `engine_of`; closed at the end.
    made: a plan with a fixed seed, whose study keeps no files.
    names: of the cells.

  Raises:
    RunError: if a cell's workers died three times, or a worker runs other software.
  """
  config, own = _config.dump(made.values), {"code": code_digest(), **software()}

  def one(name: str) -> CellResult:
    for _ in range(TRIES):
      with contextlib.suppress(WorkerDiedError):
        return _read_answer(engine.compute(config, name), name, own)
    raise _folders.RunError(
      f"cell {name}: its worker died {TRIES} times; out of memory? Try fewer --workers; the "
      "same command continues with the missing cells"
    )

  pool = concurrent.futures.ThreadPoolExecutor(engine.slots)
  try:
    waiting = {pool.submit(one, name): name for name in names}
    for done in concurrent.futures.as_completed(waiting):
      yield waiting[done], done.result()
  finally:
    pool.shutdown(wait=False, cancel_futures=True)
    engine.close()
    pool.shutdown()


def engine_of(workers: str) -> Engine:
  """The workers that a person asks for.

  Args:
    workers: a number of processes on this machine, "ray" for a Ray cluster that runs here or
      that Ray finds by itself, or "ray:ADDRESS".
  """
  kind, _, address = workers.partition(":")
  if kind == "ray":
    return RayEngine(address or None)
  checks.require(
    workers.isdecimal() and 1 <= int(workers) <= 1024,
    f"workers={checks.shown(workers)} must be a number of processes from 1 to 1024, ray, or "
    "ray:ADDRESS",
  )
  return LocalEngine(int(workers))


def _read_answer(found: dict[str, Any], name: str, own: Mapping[str, str]) -> CellResult:
  differs = [key for key in own if found["software"].get(key) != own[key]]
  if differs:
    told = ", ".join(f"{key} {found['software'].get(key)} instead of {own[key]}" for key in differs)
    raise _folders.RunError(
      f"a worker has other software than this process ({told}); install the same on all machines"
    )
  if "mistake" in found:
    raise checks.JaxfairError(found["mistake"])
  if "failure" in found:
    raise RuntimeError(f"cell {name} failed on a worker:\n{found['failure']}")
  result: CellResult = _schema.build(CellResult, found["result"], where=f"cell {name}: ")
  return result


class LocalEngine:
  """Processes on this machine; each computes one cell at a time."""

  def __init__(self, slots: int):
    """Starts no process yet: a thread of the driver starts its own with its first cell."""
    self.slots = slots
    self._own = threading.local()
    self._lock = threading.Lock()
    self._all: set[subprocess.Popen[str]] = set()
    self._closed = False

  def compute(self, config: str, name: str) -> dict[str, Any]:
    """Sends a cell to this thread's process and waits for the answer."""
    process: Any = getattr(self._own, "process", None) or self._start()  # with both pipes
    try:
      process.stdin.write(json.dumps([config, name]) + "\n")
      process.stdin.flush()
      line = process.stdout.readline()
    except (OSError, ValueError):  # the pipe is broken, or closed by `close`
      line = ""
    if not line.endswith("\n"):
      self._own.process = None
      process.kill()
      process.wait()
      checks.require(not self._closed, "the run was stopped")
      raise WorkerDiedError
    found: dict[str, Any] = json.loads(line)
    return found

  def close(self) -> None:
    """Kills the processes; a cell that one of them computes is lost."""
    with self._lock:
      self._closed = True
      for process in self._all:
        process.kill()
        with contextlib.suppress(OSError), process:
          process.wait()

  def _start(self) -> "subprocess.Popen[str]":
    with self._lock:
      checks.require(not self._closed, "the run was stopped")
      process = subprocess.Popen(
        [sys.executable, "-m", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | worker_environment(self.slots),
      )
      self._all.add(process)
    self._own.process = process
    return process


def worker_environment(slots: int) -> dict[str, str]:
  """What a worker's environment has besides the driver's.

  The devices of this machine are shared out. XLA cuts long sums by the size of its pool of
  threads, so that stays as it is, and with it the bits of every result.
  """
  devices = os.environ.get("JAX_NUM_CPU_DEVICES")
  if devices is None:
    return {}
  return {"JAX_NUM_CPU_DEVICES": str(max(1, int(devices) // slots))}


class RayEngine:
  """Tasks on a Ray cluster: one that is running, or one that is started here."""

  def __init__(self, address: str | None):
    """Connects to the cluster.

    Args:
      address: of a running cluster, such as "auto" or "ray://head:10001"; None starts one on
        this machine, unless the environment variable RAY_ADDRESS names another.
    """
    try:
      import ray
    except ImportError:
      raise checks.ArgumentError(
        "workers='ray' needs Ray; install it with: pip install 'jaxfair[cluster]'"
      ) from None
    self._ray = ray
    self._started = not ray.is_initialized()
    if self._started:
      try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
      except (ConnectionError, RuntimeError, ValueError) as error:
        raise checks.ArgumentError(
          f"workers='ray:{address}': no Ray cluster answers there ({error}); start one with "
          "`ray start --head`, or leave the address out"
        ) from None
    self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
    keep = ("NPROC", "XLA_FLAGS", "JAX_PLATFORMS", "JAXFAIR_DATA", "PYTHONPATH")
    variables = {key: os.environ[key] for key in keep if key in os.environ}
    variables |= worker_environment(self.slots)
    self._task = ray.remote(max_retries=0, runtime_env={"env_vars": variables})(_remote)

  def compute(self, config: str, name: str) -> dict[str, Any]:
    """Sends a cell to the cluster and waits for the answer."""
    try:
      found: dict[str, Any] = self._ray.get(self._task.remote(config, name))
    except self._ray.exceptions.RayError:
      raise WorkerDiedError from None
    return found

  def close(self) -> None:
    """Leaves the cluster; one that was started here ends."""
    if self._started:
      self._ray.shutdown()


def _remote(config: str, name: str) -> dict[str, Any]:
  """The task of a Ray worker, which imports jaxfair itself."""
  found: dict[str, Any] = importlib.import_module(WORKER).answer(config, name)
  return found
