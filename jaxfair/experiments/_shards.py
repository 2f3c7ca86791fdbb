"""Shares of a run for the jobs of a cluster's queue, and one run made of them."""

import dataclasses
import pathlib

from jaxfair import checks
from jaxfair._whole_files import write_whole
from jaxfair.experiments import _folders
from jaxfair.experiments._cells import Plan
from jaxfair.experiments._folders import read_record, read_words
from jaxfair.experiments._runs import Progress, Say, compute, execute, opened, silent
from jaxfair.experiments._table import Table


@dataclasses.dataclass(frozen=True)
class Shard:
  """One of several equal shares of a run's cells: 1/4 to 4/4."""

  index: int
  count: int

  @classmethod
  def parse(cls, text: str) -> "Shard":
    """Reads "1/4"."""
    first, _, second = text.partition("/")
    right = first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)
    checks.require(
      right, f"shard={checks.shown(text)} must be one of several shares, such as 1/4 to 4/4"
    )
    return cls(int(first), int(second))

  def __str__(self) -> str:
    return f"{self.index}/{self.count}"

  def folder(self, run: pathlib.Path) -> pathlib.Path:
    """Where this share of a run is computed."""
    return run.with_name(f"{run.name}.shard-{self.index}-of-{self.count}")


def execute_shard(
  made: Plan,
  folder: pathlib.Path,
  shard: Shard,
  *,
  say: Say = print,
  progress: Progress = silent,
  workers: str | None = None,
) -> pathlib.Path:
  """Computes one of several equal shares of a run's cells, in a directory of its own.

  Jobs of a cluster's queue compute one share each, on any machines; `merge` makes one run of
  them.

  Args:
    made: from `plan`, with a fixed seed: a key of the operating system would be another one in
      every job.
    folder: the directory of the whole run; the share is computed beside it.
    shard: which share.
    say: see `execute`.
    progress: see `execute`.
    workers: see `execute`.

  Returns:
    The directory of the share.
  """
  checks.require(
    made.seed != "os" and not made.study.writes_files(made.settings),
    f"shard={shard}: {made.study.name} with seed={made.seed!r} is computed as a whole, since its "
    "key or its files belong to one run; leave --shard out",
  )
  own = shard.folder(folder)
  with opened(made, own, say) as (cells, record, data):
    checks.require(
      shard.count <= len(cells),
      f"shard={shard}: this run has {len(cells)} cells; use at most that many shards",
    )
    mine = dict(list(cells.items())[shard.index - 1 :: shard.count])
    compute(made, mine, record, data, progress, workers)
  return own


def merge(made: Plan, folder: pathlib.Path, *, say: Say = print) -> Table:
  """Makes one run of the shares that `execute_shard` computed beside its directory.

  Raises:
    RunError: if cells are missing, or the shares differ in config, software or data.
  """
  shards = sorted(folder.parent.glob(f"{folder.name}.shard-*"))
  with opened(made, folder, say) as (cells, record, data):
    software = [_software(shard) for shard in shards]
    for shard, found in zip(shards, software, strict=True):
      if (shard / "config.toml").read_bytes() != (folder / "config.toml").read_bytes():
        raise _folders.RunError(
          f"{shard} holds a run of another config; delete it, or run it again"
        )
      if found != software[0]:
        raise _folders.RunError(
          f"{shard} was computed with other software than {shards[0]}; run one of them again"
        )
      data.note(read_words(shard / _folders.DATA))
    found_cells = {p.name: p for shard in shards for p in (shard / "cells").glob("*.csv")}
    missing = [path.stem for path in cells if path.name not in found_cells]
    if missing:
      raise _folders.RunError(
        f"{len(missing)} of {len(cells)} cells are missing beside {folder}, the first of them "
        f"{missing[0]}; run the shards that have not finished (jaxfair run CONFIG --shard I/N)"
      )
    for shard in shards:
      own = read_record(shard)
      for note in own.notes:
        record.tell(note)
      record.add_times(own)
    (folder / "cells").mkdir(exist_ok=True)
    write_whole(folder / "versions.json", (shards[0] / "versions.json").read_text())
    for path in cells:
      write_whole(path, found_cells[path.name].read_text())
  return execute(made, folder, say=silent)


def _software(folder: pathlib.Path) -> dict[str, str]:
  """What computed a run, without the devices, which do not change its bits."""
  found = read_words(folder / "versions.json")
  return {name: found[name] for name in found if name != "devices"}
