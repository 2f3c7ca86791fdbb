"""A run directory as a frontier: settings over seeds, and how to train each."""

import math
import pathlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import checks, frontier
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _registry
from jaxfair.experiments._folders import RunError, read_record
from jaxfair.experiments._measures import EVERYONE
from jaxfair.experiments._table import Table
from jaxfair.experiments._usefulness import judge, majority_accuracy
from jaxfair.frontier import _attaining, _objectives, _shapes, _shares

NEEDED = (*(objective.name for objective in _objectives.OBJECTIVES), "seed")
DRAWS = 1000


class RunFrontier(NamedTuple):
  """The results of a run, setting by setting."""

  title: str  # of the run
  study: str  # its name
  seed: Any  # fixed, or "os"
  notes: tuple[str, ...]  # what the reader must be told
  points: _objectives.Points  # settings x seeds x objectives
  keys: tuple[str, ...]  # columns that name a setting, besides method and objectives
  settings: list[dict[str, Any]]  # [n] values of those columns; None where a setting has none
  methods: list[str]  # [n] what each setting is a setting of; "" if the run has no such column
  sets: list[tuple[str, ...]]  # [n] `key=value` texts for `jaxfair run config.toml --set ...`
  config: pathlib.Path  # the run's own config file
  attained: _attaining.Attainment  # who is on the frontier, and how surely
  reach: dict[str, _shares.Share]  # of each method, if there are several
  majority: float  # accuracy of the majority class, with gap and epsilon 0; NaN if not known
  useless: tuple[str, ...]  # [n] why a setting is no better than a constant; "" if it is better
  # The first words of the line that releases a setting, if the study says how; its number follows.
  releases: str = ""

  def command(self, number: int) -> str:
    """The line that trains a setting, and releases it where the study says how."""
    if self.releases:
      return f"{self.releases} {number} --out runs/chosen"
    words = ["jaxfair", "run", str(self.config)]
    for assignment in self.sets[number]:
      words += ["--set", assignment]
    return shlex.join([*words, "--out", "runs/chosen"])


def read_frontier(folder: pathlib.Path, *, data: str | None = None) -> RunFrontier:
  """Reads a finished run whose rows are settings x seeds.

  Args:
    folder: a run directory. Its results.csv has the columns epsilon, gap,
      accuracy, coverage and seed, and a column for each key of its config
      that is swept: `sigma`, or `sigmas` in the config.
    data: which data set, if the rows are of several.

  Returns:
    The settings. One that lacks a value in some seed is left out and counted.
  """
  config, table = _files(pathlib.Path(folder))
  values = configs.parse(config)
  study = _registry.find(values.get("study"), where=f"{config}: ")
  rows = _of_one_set(_measured(table.where(**study.points), folder), data)
  keys = {
    name: key for name in rows.names if name != "seed" and (key := _key(name, rows[name], values))
  }
  names = [*(("method",) if "method" in rows else ()), *keys]
  places, cube = settings_cube(rows, list(dict.fromkeys(names)), where=folder)
  points = frontier.points(cube, missing="drop")
  checks.require(
    len(points.rows) > 0,
    f"{folder}: every setting lacks a value in some seed; nothing can be shown",
  )
  kept = [places[i] for i in points.rows]
  settings = [{n: _plain(place.get(n)) for n in keys} for place in kept]
  swept = {n: k for n, k in keys.items() if _varies(n, k, rows, values)}
  record = read_record(config.parent)
  methods = [str(place.get("method", "")) for place in kept]
  key_attained, key_reach = jax.random.split(jax.random.key(0))
  draws = DRAWS if len(kept) < 1000 else 200
  reach = {}
  if len(set(methods)) > 1:
    few = 100 if len(kept) < 300 else 30  # volumes take a while
    reach = _shares.volume_shares(points, methods, key=key_reach, draws=few)
  return RunFrontier(
    title=str(values.get("title") or values.get("study")),
    study=str(values.get("study")),
    seed=values.get("seed"),
    notes=record.notes,
    points=points,
    keys=tuple(n for n in swept if n not in ("method", *NEEDED)),
    settings=settings,
    methods=methods,
    sets=[_sets(one, place, swept, values) for one, place in zip(settings, kept, strict=True)],
    config=config,
    attained=frontier.attainment(points, key=key_attained, draws=draws),
    reach=reach,
    majority=majority_accuracy(rows),
    useless=_useless(rows, list(dict.fromkeys(names)), study.plain, kept),
    releases="" if study.release is None else _releases(folder, data),
  )


def _releases(folder: pathlib.Path, data: str | None) -> str:
  chosen = [] if data is None else ["--data", data]
  return shlex.join(["jaxfair", "release", str(folder), *chosen, "--point"])


class Comparison(NamedTuple):
  """Two frontiers side by side."""

  shapes: _shapes.Shapes  # of the surfaces of best accuracy
  # What becomes of settings chosen on the first set and used on the second; None if they have no
  # settings in common.
  transfer: _shapes.Transfer | None
  shared: int  # how many settings are in both


def compare_frontiers(first: RunFrontier, second: RunFrontier) -> Comparison:
  """Compares the frontiers of two runs: their shapes, and whether a choice carries over.

  Limits on epsilon and gap are quantiles of what both runs reach. Draws of
  seeds are the same every time.
  """
  return compare_points(first.points, second.points, _names(first), _names(second))


def compare_points(
  first: _objectives.Points,
  second: _objectives.Points,
  first_names: Sequence[Any],
  second_names: Sequence[Any],
) -> Comparison:
  """`compare_frontiers` for points whose settings are identified by names."""
  grid: Any = _shapes.limit_grid(first, second)
  key_shapes, key_transfer = jax.random.split(jax.random.key(0))
  shapes = _shapes.compare_shapes(first, second, grid, key=key_shapes)
  place = {name: i for i, name in enumerate(second_names)}
  both = [(i, place[name]) for i, name in enumerate(first_names) if name in place]
  if not both:
    return Comparison(shapes, None, 0)
  rows = np.array(both).T
  chosen, used = (
    points._replace(values=points.values[own])
    for points, own in zip((first, second), rows, strict=True)
  )
  carried = _shapes.transfer(chosen, used, grid, key=key_transfer)
  return Comparison(shapes, carried, len(both))


def _useless(
  rows: Table, names: Sequence[str], plain: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
  """Why each setting that is kept is no better than a constant; "" where it is."""
  judged = judge(rows, names, plain if all(name in rows for name in plain) else {})
  why = {tuple(_plain(one.setting[n]) for n in names): one.why for one in judged}
  return tuple(why.get(tuple(place[n] for n in names), "") for place in kept)


def _names(run: RunFrontier) -> list[Any]:
  """What a setting is called, the same in every run of a grid."""
  return [
    (method, *sorted(setting.items()))
    for method, setting in zip(run.methods, run.settings, strict=True)
  ]


def _files(folder: pathlib.Path) -> tuple[pathlib.Path, Table]:
  config = folder / "config.toml"
  if not config.is_file():
    raise RunError(f"{folder} is not a run directory; see `jaxfair run --help`")
  results = folder / "results.csv"
  if not results.is_file():
    raise RunError(f"{folder} is not finished; continue it with the same `jaxfair run`")
  return config, Table.read(results)


def _measured(table: Table, folder: pathlib.Path) -> Table:
  missing = [name for name in NEEDED if name not in table]
  if missing:
    raise RunError(
      f"{folder} has no column {missing[0]}; a frontier needs "
      f"{', '.join(NEEDED)}: run configs/pate/frontier.toml, for instance"
    )
  if "group" in table and EVERYONE in table.unique("group"):
    table = table.where(group=EVERYONE)
  some = np.zeros(len(table), bool)
  for name in NEEDED[:-1]:
    some |= ~np.isnan(table[name])
  return table.keep(some)


def _of_one_set(rows: Table, data: str | None) -> Table:
  if "data" not in rows:
    return rows
  found = rows.unique("data")
  if data is None:
    checks.require(
      len(found) == 1, f"the run is about {', '.join(map(str, found))}; choose one with --data"
    )
    return rows
  checks.one_of("data", data, found)
  return rows.where(data=data)


def _key(name: str, column: np.ndarray, values: Mapping[str, Any]) -> str:
  """The config key whose values a column holds; "" for none."""
  told = {_plain(value) for value in column.tolist()} - {None}
  for key in (name, f"{name}s"):
    offered = values.get(key)
    listed = offered if isinstance(offered, list) else [offered]
    # A list of tables or of lists, or a switch, is not a list of settings.
    plain = all(isinstance(x, str | int | float) for x in listed)
    if told and plain and all(value in listed for value in told):
      return key
  return ""


def _varies(name: str, key: str, rows: Table, values: Mapping[str, Any]) -> bool:
  offered = values[key]
  return len(rows.unique(name)) > 1 or (isinstance(offered, list) and len(offered) > 1)


def settings_cube(
  rows: Table, names: Sequence[str], *, where: object = "the table"
) -> tuple[list[dict[str, Any]], np.ndarray]:
  """Settings in order of appearance, and [n, s, d] values; NaN for none.

  Args:
    rows: one per setting and seed, with the columns of `NEEDED`.
    names: columns that name a setting.
    where: begins the error if two rows are of one setting and seed.
  """
  columns = [[_plain(v) for v in rows[name].tolist()] for name in names]
  places = list(zip(*columns, strict=True)) if names else [()] * len(rows)
  number = {place: i for i, place in enumerate(dict.fromkeys(places))}
  seeds = {seed: i for i, seed in enumerate(rows.unique("seed"))}
  at = [number[place] for place in places]
  of = [seeds[seed] for seed in rows["seed"].tolist()]
  if len(set(zip(at, of, strict=True))) < len(rows):
    raise RunError(
      f"{where} has several rows of one setting and seed; settings are told "
      f"apart by {', '.join(names) or 'nothing'}, so a column is missing that "
      "has the name of a config key"
    )
  cube = np.full((len(number), len(seeds), len(NEEDED) - 1), math.nan)
  cube[at, of] = np.stack([rows[name] for name in NEEDED[:-1]], axis=1)
  return [dict(zip(names, place, strict=True)) for place in number], cube


def _sets(
  setting: Mapping[str, Any],
  place: Mapping[str, Any],
  swept: Mapping[str, str],
  values: Mapping[str, Any],
) -> tuple[str, ...]:
  """`key=value` for every key that is swept, as TOML."""
  found = []
  for name, key in swept.items():
    value = setting.get(name, place.get(name))
    if value is None:
      continue
    offered = values[key]
    if isinstance(offered, list):
      exact = [next(x for x in offered if x == value)]
      found.append(configs.dump({key: exact}).strip().replace(" = ", "=", 1))
  return tuple(found)


def _plain(value: Any) -> Any:
  return None if value == "" or value != value else value
