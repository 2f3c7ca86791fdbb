"""What a study is: a grid of cells -> rows -> claims -> figures.

A study module defines one `STUDY`. It says which cells there are, how one cell
becomes rows, which claims are checked on the table of all rows, and what is
drawn. The framework loads people, runs, resumes, saves and reports.
"""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxfair import checks, data
from jaxfair.experiments._claims import (
  CannotTellError,
  Check,
  Claim,
  Finding,
  narrowed,
  read_claims,
)
from jaxfair.experiments._figures import Figure, OwnFigure, Summary
from jaxfair.experiments._people import People, load_people, set_name
from jaxfair.experiments._quotes import quotes_beside
from jaxfair.experiments._table import NoColumnError, Table
from jaxfair.experiments._usefulness import Judged, Level, judge, levels, strata
from jaxfair.types import Examples

Parts = tuple[Examples, ...]
Cell = Mapping[str, str | int | float]


@dataclasses.dataclass(frozen=True)
class Context:
  """What a cell is given besides its settings.

  Attributes:
    key: random key of this cell alone; independent of the order of cells.
    shared_key: the same in all cells, for what comparisons between cells need
      in common, such as the splits. Never for noise.
    for_release: whether the run's randomness is the operating system's.
    run_folder: this run's directory; None on a worker, which has none.
    say: tells the person something once.
  """

  key: jax.Array
  shared_key: jax.Array
  for_release: bool
  run_folder: pathlib.Path | None
  say: Callable[[str], None]

  @property
  def folder(self) -> pathlib.Path:
    """This run's directory, for ledgers, checkpoints and files that a cell keeps."""
    checks.require(
      self.run_folder is not None,
      "a worker has no run directory; declare the study with keeps_files=True, and its cells "
      "are computed by the process that holds the directory",
    )
    assert self.run_folder is not None
    return self.run_folder

  def load(self, people: People) -> data.Dataset:
    """Loads the people and reports what a reader must know about them."""
    loaded, note = load_people(people)
    self.say(note)
    return loaded

  def load_rows(self, sets: Sequence[People], name: object) -> data.Dataset:
    """The set with this name, with every row treated as a person, as in the papers.

    Where a person has many rows, as in Parkinsons, a split of whole persons
    would leave a public part of one or two of them.
    """
    (wanted,) = (one for one in sets if set_name(one) == name)
    people = self.load(wanted)
    if people.unit is not None:
      self.say(
        f"{people.name} has several rows of one person. Rows are split as in the papers, so "
        "epsilon protects a row, not a person, and a person may be in both training and test."
      )
    return dataclasses.replace(people, unit=None)


def people_of(config: Any) -> Iterator[People]:
  """The people that a config names, in the order of its fields."""
  if isinstance(config, People):
    yield config
  elif dataclasses.is_dataclass(config):
    for field in dataclasses.fields(config):
      yield from people_of(getattr(config, field.name))
  elif isinstance(config, tuple):
    for value in config:
      yield from people_of(value)


@dataclasses.dataclass(frozen=True)
class Study:
  """One experiment, from config to figures.

  Attributes:
    name: as configs write it, and the module's name.
    summary: one line for `jaxfair list`.
    config: a `Settings` class; a config file fills it.
    cells: all cells of a config; each is a small mapping that names it.
    run: computes one cell's rows (all seeds in one compiled call).
    claims: sentences checked on the table: `{"name: statement [source]": check}`. The quotes of
      the sources are read from quotes.toml beside the module of `run`.
    figures: what is drawn: `bars`, `lines` or `points`, or a function from the table of all rows
      to a matplotlib or plotly figure, whose docstring is the title.
    summaries: tables of means, at the top of the report.
    people: which people a config is about; those in its fields by default.
    precheck: checks a config before any work, given all of these people.
    derive: adds columns that need more than one cell, such as what a private
      model loses against the plain one.
    notes: sentences for the report that depend on the config, such as what
      the numbers protect and what they do not.
    points: what rows must have to be points of a frontier, if not all are:
      rows whose epsilon is not a guarantee must not be chosen from.
    plain: what the rows of the model without privacy have; empty if there are none.
    reference: restricts the table to the models that must have learned their task for claims to be
      run; by default those of `plain`, and without these all rows that have a balanced accuracy.
    repeats_reference: whether the rows of all settings repeat the accuracies of one reference
      model of each data set and network, so that they say nothing of the settings themselves.
    titles: what a column is called on the axes of figures.
    release: the `[release]` table of one point of the frontier, given the config and the
      point's columns, method among them; None for a point that cannot be released.
    keeps_files: whether cells write to the run directory (`Context.folder`), or a function of the
      config that tells it; such cells are not computed on workers.
  """

  name: str
  summary: str
  config: type
  cells: Callable[[Any], Sequence[Cell]]
  run: Callable[[Any, Cell, Context], Table]
  claims: Mapping[str, Check] | Sequence[Claim] = ()
  figures: Sequence[Any] = ()
  summaries: Sequence[Summary] = ()
  people: Callable[[Any], Iterable[People]] = people_of
  precheck: Callable[..., Any] = lambda config, *people: None
  derive: Callable[[Table], Table] = lambda table: table
  notes: Callable[[Any], Sequence[str]] = lambda config: ()
  points: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  plain: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  reference: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  repeats_reference: bool = False
  titles: Mapping[str, str] = dataclasses.field(default_factory=dict)
  release: Callable[[Any, Mapping[str, Any]], dict[str, Any] | None] | None = None
  keeps_files: bool | Callable[[Any], bool] = False

  def __post_init__(self) -> None:
    if isinstance(self.claims, Mapping):
      object.__setattr__(self, "claims", read_claims(self.claims, quotes_beside(self.run)))
    titled = [self._titled(one) for one in self.figures]
    object.__setattr__(self, "figures", tuple(titled))

  def _titled(self, one: Any) -> Figure | OwnFigure:
    """A figure with the axes' titles of this study; a function as a figure."""
    if not isinstance(one, Figure):
      return one if isinstance(one, OwnFigure) else OwnFigure.of(one)
    x, y = one.x_title or self.titles.get(one.x, ""), one.y_title or self.titles.get(one.y, "")
    return dataclasses.replace(one, x_title=x, y_title=y)

  @property
  def column_figures(self) -> list[Figure]:
    """The figures that are described by columns."""
    return [one for one in self.figures if isinstance(one, Figure)]

  def load_people(self, config: Any) -> list[str]:
    """Finds the people and prechecks the config; returns notes for the reader."""
    loaded = [load_people(one) for one in self.people(config)]
    self.precheck(config, *(people for people, _ in loaded))
    return [note for _, note in loaded]

  def writes_files(self, config: Any) -> bool:
    """Whether the cells of a config write to the run directory."""
    return self.keeps_files(config) if callable(self.keeps_files) else self.keeps_files

  def plan_cells(self, config: Any) -> list[Cell]:
    """All cells of a config."""
    cells = list(self.cells(config))
    checks.require(bool(cells), "this config describes no cell to run")
    names = [cell_name(cell) for cell in cells]
    checks.require(len(set(names)) == len(names), "two cells have equal settings")
    return cells

  def levels(self, table: Table) -> list[Level]:
    """How well the reference models have learnt their tasks."""
    return levels(table, self.reference or self.plain)

  def judge(self, table: Table, columns: Sequence[str] | None = None) -> list[Judged]:
    """Which settings are no better than a constant; of repeated models, which data sets.

    Args:
      table: the rows.
      columns: which tell the settings apart; `setting_columns` by default.
    """
    columns = self.setting_columns(table) if columns is None else columns
    if not self.repeats_reference:
      return judge(table, columns, self.plain)
    return judge(table, strata(table), self.plain, by_share=False)

  def setting_columns(self, table: Table) -> list[str]:
    """The columns that identify the settings of a run, besides group and seed."""
    named = [*self.plain, *(name for summary in self.summaries for name in summary.by)]
    named += [
      name for figure in self.column_figures for name in (figure.color, figure.facet) if name
    ]
    apart = dict.fromkeys(name for name in named if name not in ("group", "seed"))
    return [name for name in apart if name in table]


def grid(**axes: str | tuple[Any, ...]) -> Callable[[Any], list[Cell]]:
  """Cells over all combinations of some config fields: `grid(data="sets", labels=("a", "b"))`.

  Args:
    **axes: name in the cell -> field of the config, with one value or several, or a tuple of
      values. People are named as they are in tables.
  """

  def cells(config: Any) -> list[Cell]:
    values = [_values(getattr(config, a) if isinstance(a, str) else a) for a in axes.values()]
    return [dict(zip(axes, chosen, strict=True)) for chosen in itertools.product(*values)]

  return cells


def cell_name(cell: Cell) -> str:
  """A file name for a cell: readable, and unique by a hash of its settings."""
  text = json.dumps(dict(cell), sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()[:10]
  words = "-".join(str(value) for value in cell.values())
  plain = (c.isascii() and (c.isalnum() or c in "-._") for c in words)
  safe = "".join(c if keep else "_" for c, keep in zip(words, plain, strict=True))
  return f"{safe[:60]}-{digest}"


def check_claims(study: Study, table: Table) -> list[tuple[Claim, Finding]]:
  """Checks every claim on the rows of models that have learnt their task.

  Where the reference model of a data set or network has not, its rows are left out; a claim that
  has no other rows is not run, and one that loses rows says which.
  """
  useless = {one.names: one.told for one in study.levels(table) if not one.learnt}
  if not useless:
    return _findings(study, table)
  why, columns = "; ".join(useless.values()), [table[name] for name in strata(table)]
  places = zip(*columns, strict=True) if columns else [()] * len(table)
  kept = table.keep(np.array([tuple(map(str, one)) not in useless for one in places], bool))
  found = []
  for (claim, was), (_, now) in zip(_findings(study, table), _findings(study, kept), strict=True):
    if repr(now) != repr(was):
      told = f"the model has not learnt: {why}"
      if now.verdict == "not run":
        now = dataclasses.replace(now, why=told)
      else:
        now = dataclasses.replace(now, statistic=f"{now.statistic} (left out: {told})")
    found.append((claim, now))
  return found


def _findings(study: Study, table: Table) -> list[tuple[Claim, Finding]]:
  nothing = Finding("not run", why="no rows")
  claims = typing.cast(Sequence[Claim], study.claims)  # a mapping has become claims by now
  return [(claim, claim.check(table) if len(table) else nothing) for claim in claims]


def check_columns(study: Study, table: Table) -> None:
  """Raises if a claim, figure or summary names a column that its rows do not have.

  What has no rows, such as a part that was not run, names no column in vain.
  """
  wrong = {f"claim {own.name!r}": found.missing for own, found in _findings(study, table)}
  everything: list[Figure | Summary] = [*study.column_figures, *study.summaries]
  for drawn in everything:
    try:
      rows = narrowed(table, drawn.where)
      for column in drawn.columns:
        rows[column]
    except NoColumnError as error:
      wrong[f"{type(drawn).__name__.lower()} {drawn.title!r}"] = error.column
    except CannotTellError:
      continue
  for what, column in wrong.items():
    checks.require(
      not column,
      f"study {study.name}: {what} names column {column!r}, which its rows do not have; "
      f"{checks.options(column, table.names)}",
    )


def _values(value: object) -> list[Any]:
  listed = value if isinstance(value, tuple) else (value,)
  return [set_name(one) if isinstance(one, People) else one for one in listed]
