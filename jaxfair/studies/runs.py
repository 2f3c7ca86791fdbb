"""Run directories: resume where it stopped, lose nothing that was computed.

    config.toml    the resolved config         versions.json  what computed it
    cells/*.csv    rows of each finished cell  results.csv    all rows, tidy
    claims.json    verdicts                    run.json       seed, notes, times

A cell's file appears complete or not at all, so a run killed at any moment
continues with the cells that are missing.
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, privacy
from jaxfair.studies import config as configs
from jaxfair.studies import protocol
from jaxfair.studies.table import Table

SECRET = "secret_key"
Say = Callable[[str], None]
PACKAGES = ("jaxfair", "jax", "jaxlib", "numpy", "scipy", "optax", "flax",
            "dm-haiku", "dp-accounting")  # fmt: skip


class RunError(checks.JaxfairError):
  """A run directory that cannot be used, and what to do."""


@dataclasses.dataclass(frozen=True)
class Plan:
  """A resolved config: everything that is needed to run it.

  Attributes:
    study: the study.
    values: the resolved config file as plain values.
    settings: the study's own config.
    seed: fixed seed, or "os" for one from the operating system.
    title: heading of the report.
    size: the size that was chosen, if the file has sizes.
  """

  study: protocol.Study
  values: dict[str, Any]
  settings: Any
  seed: int | Literal["os"]
  title: str
  size: str | None


def plan(
  study: protocol.Study, values: dict[str, Any], *, where: str = ""
) -> Plan:
  """Checks a config's values against the study they are for."""
  own = dict(values)
  own.pop("study", None)
  seed, title = own.pop("seed", 0), own.pop("title", "")
  size = own.pop("size", None)
  is_int = isinstance(seed, int) and not isinstance(seed, bool)
  if seed != "os" and not (is_int and 0 <= seed < 2**31):
    raise configs.ConfigError(
      f"{where}seed={seed!r} must be a whole number from 0 to 2147483647, or "
      '"os" for a release'
    )
  if not isinstance(title, str):
    raise configs.ConfigError(f"{where}title={title!r} must be a string")
  settings: Any = configs.build(study.config, own, where=where)
  resolved: dict[str, Any] = {"study": study.name, "title": title, "seed": seed}
  resolved |= {"size": size} if size else {}
  resolved |= configs.plain(settings)
  return Plan(study, resolved, settings, seed, title or study.summary, size)


def execute(
  made: Plan,
  folder: pathlib.Path,
  *,
  say: Say = print,
  progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Table:
  """Runs the cells that are missing, then writes the table and the verdicts.

  Args:
    made: from `plan`.
    folder: run directory; created, or continued if it holds the same config.
    say: told things worth knowing, once.
    progress: `(done, total, name of the next cell)`.

  Returns:
    The table of all rows.
  """
  cells = list(made.study.cells(made.settings))
  checks.require(bool(cells), "this config describes no cell to run")
  names = [protocol.cell_name(cell) for cell in cells]
  checks.require(len(set(names)) == len(names), "two cells have equal settings")
  text = configs.dump(made.values)
  _match(folder, text)
  with _locked(folder):
    _write(folder / "config.toml", text)
    _write(folder / "versions.json", json.dumps(versions(), indent=2))
    key = _root_key(made, folder)
    earlier = _load(folder / "run.json", {"notes": [], "seconds": 0.0})
    notes = earlier["notes"]

    def tell(message: str) -> None:
      if message and message not in notes:
        notes.append(message)
        say(message)

    began = time.time() - earlier["seconds"]
    (folder / "cells").mkdir(exist_ok=True)
    for done, (cell, name) in enumerate(zip(cells, names, strict=True)):
      progress(done, len(cells), name)
      path = folder / "cells" / f"{name}.csv"
      if not path.exists():
        cell_key = jax.random.fold_in(key, zlib.crc32(name.encode()))
        shared = jax.random.fold_in(key, zlib.crc32(b"shared by all cells"))
        context = protocol.Context(cell_key, shared, folder, tell)
        _write(path, made.study.run(made.settings, cell, context).to_csv())
        _write(folder / "run.json", _record(made, notes, began, finished=False))
    progress(len(cells), len(cells), "")
    table = Table.concat(
      Table.from_csv((folder / "cells" / f"{name}.csv").read_text("utf-8"))
      for name in names
    )
    _write(folder / "results.csv", table.to_csv())
    write_claims(made.study, table, folder)
    _write(folder / "run.json", _record(made, notes, began, finished=True))
    (folder / SECRET).unlink(missing_ok=True)
  return table


def write_claims(
  study: protocol.Study, table: Table, folder: pathlib.Path
) -> list[dict[str, Any]]:
  """Checks the claims and writes claims.json."""
  records = []
  for claim, finding in protocol.check_claims(study, table):
    found = dataclasses.asdict(finding)
    for end in ("value", "low", "high"):  # JSON has no NaN
      found[end] = found[end] if math.isfinite(found[end]) else None
    names = {"name": claim.name, "statement": claim.statement}
    names |= {"source": claim.source, "verdict": finding.verdict}
    records.append(names | found)
  _write(folder / "claims.json", json.dumps(records, indent=2))
  return records


def versions() -> dict[str, str]:
  """Versions of what computed a run, and on what."""
  found = {}
  for name in PACKAGES:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      found[name] = importlib.metadata.version(name)
  devices = jax.devices()
  return found | {
    "python": platform.python_version(),
    "system": f"{platform.system()} {platform.machine()}",
    "devices": f"{len(devices)} x {devices[0].device_kind}",
  }


def _record(made: Plan, notes: list[str], began: float, finished: bool) -> str:
  release = "os" if made.seed == "os" else "fixed"
  record = {
    "title": made.title,
    "study": made.study.name,
    "seed": release,
    "notes": notes,
    "finished": finished,
    "seconds": round(time.time() - began, 1),
  }
  return json.dumps(record, indent=2)


def _root_key(made: Plan, folder: pathlib.Path) -> jax.Array:
  """The run's key: from the fixed seed, or from the operating system.

  A key from the operating system must survive a crash, or a resumed run could
  not finish the same computation; until then it lies in a file that only its
  owner may read, and that is deleted when the run is done.
  """
  if made.seed != "os":
    return jax.random.key(made.seed)
  path = folder / SECRET
  if not path.exists():
    fresh = np.asarray(jax.random.key_data(privacy.os_key()))
    _write(path, " ".join(str(word) for word in fresh), mode=0o600)
  words = np.array(path.read_text().split(), dtype=np.uint32)
  return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


def _match(folder: pathlib.Path, text: str) -> None:
  """Refuses a directory that holds something else."""
  if not folder.exists():
    return
  present = folder / "config.toml"
  if not folder.is_dir() or (any(folder.iterdir()) and not present.exists()):
    raise RunError(f"{folder} is not a run directory; choose another --out")
  if present.exists() and present.read_text(encoding="utf-8") != text:
    raise RunError(
      f"{folder} holds a run of another config; choose another --out, or "
      "delete it"
    )


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
  """One process at a time writes a run directory."""
  import fcntl

  folder.mkdir(parents=True, exist_ok=True)
  with open(folder / ".lock", "w") as lock:
    try:
      fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      raise RunError(
        f"{folder} is being written by another process; wait for it, or "
        "choose another --out"
      ) from None
    yield


def _write(path: pathlib.Path, text: str, mode: int = 0o666) -> None:
  """Writes a file completely or not at all."""
  partial = path.with_name(path.name + ".partial")
  partial.unlink(missing_ok=True)
  handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
  with open(handle, "w", encoding="utf-8") as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
  os.replace(partial, path)


def _load(path: pathlib.Path, default: Any) -> Any:
  if not path.exists():
    return default
  return json.loads(path.read_text(encoding="utf-8"))
