"""Run directories: resume where it stopped, lose nothing that was computed.

    config.toml    the resolved config         versions.json  what computed it
    cells/*.csv    rows of each finished cell  results.csv    all rows, tidy
    claims.json    verdicts                    run.json       seed, notes, times
    data.json      digests of the data, for its owner only

A cell's file appears complete or not at all, so a run killed at any moment
continues with the cells that are missing. A mistake that shows before the
first cell is done leaves nothing behind.
"""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import math
import pathlib
import platform
import time
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import privacy
from jaxfair._whole_files import write_whole
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _folders
from jaxfair.experiments._data_digests import DataDigests
from jaxfair.experiments._folders import SECRET, ClaimRecord, RunRecord, read_record, read_words
from jaxfair.experiments._people import watched
from jaxfair.experiments._study import Cell, Context, Study, cell_name, check_claims, check_columns
from jaxfair.experiments._table import Table

Say = Callable[[str], None]
PACKAGES = (
  "jaxfair",
  "jax",
  "jaxlib",
  "numpy",
  "scipy",
  "optax",
  "flax",
  "dm-haiku",
  "dp-accounting",
)


@dataclasses.dataclass(frozen=True)
class Plan:
  """A resolved config: everything that is needed to run it."""

  study: Study  # the study
  values: dict[str, Any]  # the resolved config file as plain values
  settings: Any  # the study's own config
  seed: int | Literal["os"]  # fixed seed, or "os" for one from the operating system
  title: str  # heading of the report
  size: str | None  # the size that was chosen, if the file has sizes


def plan(study: Study, values: dict[str, Any], *, where: str = "") -> Plan:
  """Checks a config's values against the study they are for."""
  own = dict(values)
  own.pop("study", None)
  seed, title = own.pop("seed", 0), own.pop("title", "")
  size = own.pop("size", None)
  configs.check_frame(values, where)
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
    folder: run directory; created, or continued if it holds the same config
      and the data is what it was.
    say: called with each note for the reader, once.
    progress: called with `(done, total, name of the next cell)`.

  Returns:
    The table of all rows.
  """
  loaded: dict[str, str] = {}
  with watched(loaded.__setitem__):
    cells = made.study.plan_cells(made.settings)
  names = [cell_name(cell) for cell in cells]
  text = configs.dump(made.values)
  with _folders.locked(folder, text):
    write_whole(folder / "config.toml", text)
    paths = [folder / "cells" / f"{name}.csv" for name in names]
    record = _Record(made, folder, say)
    data = DataDigests(made.values, folder, loaded, record.tell)
    wanted = dict(zip(paths, cells, strict=True))
    _compute(made, wanted, record, data, progress)
    table = made.study.derive(Table.concat(map(Table.read, paths)))
    write_whole(folder / "results.csv", table.to_csv())
    write_claims(made.study, table, folder)
    record.write(finished=True)
    (folder / SECRET).unlink(missing_ok=True)
  check_columns(made.study, table)
  return table


def write_claims(study: Study, table: Table, folder: pathlib.Path) -> tuple[ClaimRecord, ...]:
  """Checks the claims and writes claims.json."""
  records = [
    ClaimRecord(
      name=claim.name,
      statement=claim.statement,
      source=claim.source,
      quote=claim.quote,
      verdict=finding.verdict,
      statistic=finding.statistic,
      value=_finite(finding.value),
      low=_finite(finding.low),
      high=_finite(finding.high),
      why=finding.why,
    )
    for claim, finding in check_claims(study, table)
  ]
  text = json.dumps([dataclasses.asdict(one) for one in records], indent=2)
  write_whole(folder / "claims.json", text)
  return tuple(records)


def _finite(value: float) -> float | None:
  return float(value) if math.isfinite(value) else None  # JSON has no NaN


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


def _compute(
  made: Plan,
  cells: dict[pathlib.Path, Cell],
  record: "_Record",
  data: DataDigests,
  progress: Callable[[int, int, str], None],
) -> None:
  """Computes the cells whose files are missing, in order."""
  missing = [path for path in cells if not path.exists()]
  if len(missing) < len(cells):
    found = len(cells) - len(missing)
    record.say(f"{found} of {len(cells)} cells are there from an earlier run")
  if not missing:
    progress(len(cells), len(cells), "")
    return
  folder = record.folder
  with data.kept():
    for note in made.study.load_people(made.settings):
      record.tell(note)
  record.tell_versions()
  root = _root_key(made, folder)
  # "/" is in no cell's name, so no cell has this key.
  shared = _named_key(root, "/shared by all cells")
  (folder / "cells").mkdir(exist_ok=True)
  for path in missing:
    progress(list(cells).index(path), len(cells), path.stem)
    own = _named_key(root, path.stem)
    release = made.seed == "os"
    context = Context(own, shared, release, folder, record.tell)
    with data.kept():
      rows = made.study.run(made.settings, cells[path], context)
    write_whole(path, rows.to_csv())
    record.write(finished=False)
  progress(len(cells), len(cells), "")


class _Record:
  """run.json: notes for the reader, and how long the run took."""

  def __init__(self, made: Plan, folder: pathlib.Path, say: Say):
    self.folder, self.say, self._made = folder, say, made
    earlier = read_record(folder)
    self._notes = list(earlier.notes)
    self._began = time.time() - earlier.seconds

  def tell(self, message: str) -> None:
    """Prints the sentence once and saves it, before the rows that it is about."""
    if message and message not in self._notes:
      self._notes.append(message)
      self.write(finished=False)
      self.say(message)

  def tell_versions(self) -> None:
    """Notes what computes the missing cells, if that differs from before."""
    path, now = self.folder / "versions.json", versions()
    before = read_words(path) or now
    changed = [n for n in now if before.get(n) != now[n]]
    if changed:
      told = ", ".join(f"{n} {before.get(n)} -> {now[n]}" for n in changed)
      self.tell(f"This run was continued on another set-up: {told}.")
    write_whole(path, json.dumps(now, indent=2))

  def write(self, *, finished: bool) -> None:
    """Writes run.json as it stands."""
    record = RunRecord(
      title=self._made.title,
      study=self._made.study.name,
      seed="os" if self._made.seed == "os" else "fixed",
      notes=tuple(self._notes),
      finished=finished,
      seconds=round(time.time() - self._began, 1),
    )
    text = json.dumps(dataclasses.asdict(record), indent=2)
    write_whole(self.folder / "run.json", text)


def _named_key(key: jax.Array, name: str) -> jax.Array:
  """A key for this name alone: 128 bits of its hash, 32 at a time."""
  digest = hashlib.sha256(name.encode()).digest()[:16]
  for word in np.frombuffer(digest, dtype="<u4"):
    key = jax.random.fold_in(key, word)
  return key


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
    write_whole(path, " ".join(str(word) for word in fresh), mode=0o600)
  try:
    words = np.array(path.read_text().split(), dtype=np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")
  except (OSError, OverflowError, TypeError, ValueError):
    raise _folders.RunError(
      f"{path} holds no key, so what was started in {folder} cannot be "
      "continued; restore it from a copy, or choose another --out"
    ) from None
