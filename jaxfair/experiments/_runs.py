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
import json
import math
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from jaxfair import methods
from jaxfair._whole_files import write_whole
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _folders, _workers
from jaxfair.experiments._cells import CellResult, Plan, compute_cell, root_key, versions
from jaxfair.experiments._data_digests import DataDigests
from jaxfair.experiments._folders import SECRET, ClaimRecord, RunRecord, read_record, read_words
from jaxfair.experiments._people import watched
from jaxfair.experiments._study import Cell, Study, cell_name, check_claims, check_columns
from jaxfair.experiments._table import Table
from jaxfair.experiments._tracking import Guard, Tracker

Say = Callable[[str], None]
Progress = Callable[[int, int, str], None]


def silent(*told: object) -> None:
  """Tells nobody."""
  del told


def plan(study: Study, values: dict[str, Any], *, where: str = "") -> Plan:
  """Checks a config's values against the study they are for."""
  own = dict(values)
  own.pop("study", None)
  seed, title = own.pop("seed", 0), own.pop("title", "")
  size = own.pop("size", None)
  configs.check_frame(values, where)
  settings: Any = configs.build(study.config, own, where=where)
  # As the config names it: a user's own study is found again by its path.
  resolved: dict[str, Any] = {
    "study": values.get("study", study.name),
    "title": title,
    "seed": seed,
  }
  resolved |= {"size": size} if size else {}
  resolved |= configs.plain(settings)
  return Plan(study, resolved, settings, seed, title or study.summary, size)


def execute(
  made: Plan,
  folder: pathlib.Path,
  *,
  say: Say = print,
  progress: Progress = silent,
  workers: str | None = None,
  track: Tracker | None = None,
  track_non_private: bool = False,
) -> Table:
  """Runs the cells that are missing, then writes the table and the verdicts.

  Args:
    made: from `plan`.
    folder: run directory; created, or continued if it holds the same config
      and the data is what it was.
    say: called with each note for the reader, once.
    progress: called with `(done, total, name of the next cell)`.
    workers: where to compute cells: a number of processes on this machine, "ray", or
      "ray:ADDRESS"; this process by default. The table has the same bytes. Runs with the
      operating system's randomness, and studies whose cells keep files, stay in this process.
    track: a tracker, with functions `on_cell`, `on_row` and `on_release` that are called with cells
      and with a released model.
    track_non_private: also sends it the rows, which are measured on people without noise.

  Returns:
    The table of all rows.
  """
  guard = None if track is None else Guard(track, say, allow_non_private=track_non_private)
  with opened(made, folder, say) as (cells, record, data):
    if guard is not None:
      tell, named = guard.on_cell, {path.stem: cell for path, cell in cells.items()}
      record.on_cell = lambda name: tell(name, named[name])
    compute(made, cells, record, data, progress, workers)
    table = made.study.derive(Table.concat(map(Table.read, cells)))
    write_whole(folder / "results.csv", table.to_csv(), mode=made.mode)
    write_claims(made.study, table, folder, mode=made.mode)
    record.write(finished=True)
    (folder / SECRET).unlink(missing_ok=True)
  check_columns(made.study, table)
  if guard is not None:
    guard.on_table(made.study, list(next(iter(cells.values()))), table)
    if (folder / "release").exists():
      guard.on_release(methods.load(folder / "release"))
  return table


@contextlib.contextmanager
def opened(
  made: Plan, folder: pathlib.Path, say: Say
) -> Iterator[tuple[dict[pathlib.Path, Cell], "Record", DataDigests]]:
  """Holds a run directory; yields the cells by file, the record and the data's digests."""
  loaded: dict[str, str] = {}
  with watched(loaded.__setitem__):
    cells = made.study.plan_cells(made.settings)
  text = configs.dump(made.values)
  with _folders.locked(folder, text):
    write_whole(folder / "config.toml", text)
    record = Record(made, folder, say)
    data = DataDigests(made.values, folder, loaded, record.tell)
    yield {folder / "cells" / f"{cell_name(cell)}.csv": cell for cell in cells}, record, data


def write_claims(
  study: Study, table: Table, folder: pathlib.Path, *, mode: int = 0o666
) -> tuple[ClaimRecord, ...]:
  """Checks the claims and writes claims.json, with the permissions of the run's files."""
  records = [
    ClaimRecord(
      name=claim.name,
      statement=claim.statement,
      source=claim.source,
      quotes=claim.quotes,
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
  write_whole(folder / "claims.json", text, mode=mode)
  return tuple(records)


def _finite(value: float) -> float | None:
  return float(value) if math.isfinite(value) else None  # JSON has no NaN


def compute(
  made: Plan,
  cells: dict[pathlib.Path, Cell],
  record: "Record",
  data: DataDigests,
  progress: Progress,
  workers: str | None,
) -> None:
  """Computes the cells whose files are missing; each file is written once its cell is done."""
  missing = {path: cell for path, cell in cells.items() if not path.exists()}
  found = len(cells) - len(missing)
  if found:
    record.say(f"{found} of {len(cells)} cells were computed by an earlier run")
  if not missing:
    progress(len(cells), len(cells), "")
    return
  with data.kept():
    for note in made.study.load_people(made.settings):
      record.tell(note)
  record.tell_versions()
  (record.folder / "cells").mkdir(exist_ok=True)

  def step(done: int, name: str) -> None:
    progress(found + done, len(cells), name)

  if workers is not None and made.seed == "os":
    record.say("Cells are computed in this process: the key of a release does not leave it.")
  elif workers is not None and made.study.writes_files(made.settings):
    record.say(f"Cells of {made.study.name} keep files, so they are computed in this process.")
  elif workers is not None:
    _compute_on_workers(made, missing, record, data, step, workers)
    return
  _compute_here(made, missing, record, data, step)


def _compute_here(
  made: Plan,
  cells: dict[pathlib.Path, Cell],
  record: "Record",
  data: DataDigests,
  step: Callable[[int, str], None],
) -> None:
  root = root_key(made, record.folder)
  for done, (path, cell) in enumerate(cells.items()):
    step(done, path.stem)
    with data.kept():
      result = compute_cell(made, cell, root, folder=record.folder, say=record.tell)
    _keep(path, result, record, data)
  step(len(cells), "")


def _compute_on_workers(
  made: Plan,
  cells: dict[pathlib.Path, Cell],
  record: "Record",
  data: DataDigests,
  step: Callable[[int, str], None],
  workers: str,
) -> None:
  paths = {path.stem: path for path in cells}
  engine = _workers.engine_of(workers)
  step(0, f"{min(engine.slots, len(cells))} workers")
  finished = _workers.compute_on(engine, made, list(paths))
  for done, (name, result) in enumerate(finished, start=1):
    _keep(paths[name], result, record, data)
    step(done, name if done < len(cells) else "")


def _keep(path: pathlib.Path, result: CellResult, record: "Record", data: DataDigests) -> None:
  """Writes a finished cell: notes and digests first, so that no rows are without them."""
  for name, digest in result.digests:
    data.note({name: digest})
  for note in result.notes:
    record.tell(note)
  write_whole(path, result.rows, mode=record.mode)
  record.write(finished=False)
  record.on_cell(path.stem)


def _cpu_seconds() -> float:
  """Processor time of this process and of the children that it has waited for."""
  return sum(os.times()[:4])


class Record:
  """run.json: notes for the reader, and how long the run took."""

  def __init__(self, made: Plan, folder: pathlib.Path, say: Say):
    self.folder, self.say, self._made, self.mode = folder, say, made, made.mode
    self.on_cell: Callable[[str], None] = silent
    earlier = read_record(folder)
    self._notes = list(earlier.notes)
    self._began = time.time() - earlier.seconds
    self._cpu_began = _cpu_seconds() - earlier.cpu_seconds

  def add_times(self, other: RunRecord) -> None:
    """Counts what other processes computed for this run."""
    self._began -= other.seconds
    self._cpu_began -= other.cpu_seconds

  def tell(self, message: str) -> None:
    """Prints the sentence once and saves it, before the rows that it is about."""
    if message and message not in self._notes:
      self._notes.append(message)
      self.write(finished=False)
      self.say(message)

  def tell_versions(self) -> None:
    """Notes what computes the missing cells, if that differs from before."""
    path, now = self.folder / "versions.json", versions(self._made.study)
    before = read_words(path) or now
    changed = [n for n in now if before.get(n) != now[n]]
    if changed:
      told = ", ".join(f"{n} {before.get(n)} -> {now[n]}" for n in changed)
      self.tell(f"This run was continued in another environment: {told}.")
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
      cpu_seconds=round(_cpu_seconds() - self._cpu_began, 1),
    )
    text = json.dumps(dataclasses.asdict(record), indent=2)
    write_whole(self.folder / "run.json", text, mode=self.mode)
