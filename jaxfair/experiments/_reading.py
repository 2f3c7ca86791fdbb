"""A run directory, read back: what was planned, found and judged."""

import pathlib
from typing import NamedTuple

from jaxfair.experiments import _config as configs
from jaxfair.experiments import _folders, _registry
from jaxfair.experiments._cells import Plan
from jaxfair.experiments._folders import ClaimRecord, RunError, RunRecord
from jaxfair.experiments._runs import plan, write_claims
from jaxfair.experiments._study import Study
from jaxfair.experiments._table import Table


class Run(NamedTuple):
  """A run, as far as it was computed."""

  folder: pathlib.Path  # its directory
  plan: Plan  # the study and its resolved settings
  table: Table  # all rows so far
  claims: tuple[ClaimRecord, ...]  # what was found, and the verdicts
  record: RunRecord  # notes, seconds, whether it is finished
  notes: tuple[str, ...]  # everything that a reader must be told


def read_plan(folder: str | pathlib.Path, *, study: Study | None = None) -> Plan:
  """The study and the config that a run directory belongs to."""
  config = pathlib.Path(folder) / "config.toml"
  if not config.is_file():
    raise RunError(f"{folder} is not a run directory; see `jaxfair run --help`")
  values, where = configs.parse(config), f"{config}: "
  return plan(study or _registry.find(values.get("study"), where=where), values, where=where)


def read_run(folder: str | pathlib.Path, *, study: Study | None = None) -> Run:
  """Reads a run with at least one finished cell; judges its claims if that has not been done.

  Args:
    folder: the run directory.
    study: the study, if its config does not name one that can be found.
  """
  folder = pathlib.Path(folder)
  made = read_plan(folder, study=study)
  table, record = _table(folder, made.study), _folders.read_record(folder)
  judged = record.finished and (folder / "claims.json").exists()
  claims = (
    _folders.read_verdicts(folder)
    if judged
    else write_claims(made.study, table, folder, mode=made.mode)
  )
  notes = (*record.notes, *made.study.notes(made.settings))
  return Run(folder, made, table, claims, record, notes)


def _table(folder: pathlib.Path, study: Study) -> Table:
  if (folder / "results.csv").exists():
    return Table.read(folder / "results.csv")
  cells = sorted((folder / "cells").glob("*.csv"))
  if not cells:
    raise RunError(f"{folder} has no finished cell yet; run it first")
  return study.derive(Table.concat(map(Table.read, cells)))
