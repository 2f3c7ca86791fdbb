"""What a study is: a grid of cells -> rows -> claims -> figures.

A study module defines one `STUDY`. It says which cells there are, how one cell
becomes rows, which claims are checked on the table of all rows, and what is
drawn. Running, resuming, saving and reporting are done for it.
"""

import dataclasses
import hashlib
import json
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax

from jaxfair.studies.table import Table
from jaxfair.types import Examples

Parts = tuple[Examples, ...]
Settings = Mapping[str, str | int | float]
Verdict = Literal["supported", "not supported", "not run"]


@dataclasses.dataclass(frozen=True)
class Context:
  """What a cell gets besides its settings.

  Attributes:
    key: random key of this cell alone; independent of the order of cells.
    shared_key: the same in all cells, for what comparisons between cells need
      in common, such as the splits. Never for noise.
    for_release: whether the run's randomness is the operating system's.
    folder: this run's directory, for ledgers and checkpoints.
    say: tells the person something once, e.g. that stand-in data is used.
  """

  key: jax.Array
  shared_key: jax.Array
  for_release: bool
  folder: pathlib.Path
  say: Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Finding:
  """What a claim's check found on the table.

  Attributes:
    statistic: what was computed, in words.
    value: its estimate.
    low: lower end of its confidence interval.
    high: upper end.
    holds: whether the interval lies on the claim's side.
    why: a reason, needed when the check could not be run (`holds` None).
  """

  statistic: str
  value: float = math.nan
  low: float = math.nan
  high: float = math.nan
  holds: bool | None = None
  why: str = ""

  @property
  def verdict(self) -> Verdict:
    """Supported / not supported / not run."""
    if self.holds is None:
      return "not run"
    return "supported" if self.holds else "not supported"


@dataclasses.dataclass(frozen=True)
class Claim:
  """A sentence that the table can support or not.

  Attributes:
    name: short id, unique in the study.
    statement: the sentence, as its source puts it.
    check: looks at the whole table.
    source: where the claim is made, e.g. "Fig. 3.1"; empty for our own.
  """

  name: str
  statement: str
  check: Callable[[Table], Finding]
  source: str = ""


@dataclasses.dataclass(frozen=True)
class Figure:
  """A picture, said in columns: the report draws it.

  Rows that agree in facet, x and colour are repetitions: their mean is drawn
  with a 95% interval.

  Attributes:
    name: file name, unique in the study.
    title: what one sees, as a sentence.
    x: column on the horizontal axis.
    y: column on the vertical axis.
    mark: bars, lines with a band, or points.
    colour: column that tells the series apart.
    facet: column with one panel per value.
    caption: how to read it.
    x_title: axis title; the column's name in words by default.
    y_title: likewise.
    log_x: logarithmic horizontal axis.
    log_y: logarithmic vertical axis.
    where: keeps only rows with these values.
    reference: draws a horizontal line here, e.g. parity at 0.
  """

  name: str
  title: str
  x: str
  y: str
  mark: Literal["bar", "line", "point"] = "bar"
  colour: str | None = None
  facet: str | None = None
  caption: str = ""
  x_title: str = ""
  y_title: str = ""
  log_x: bool = False
  log_y: bool = False
  where: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  reference: float | None = None


@dataclasses.dataclass(frozen=True)
class Summary:
  """A table of means with their 95% intervals over repetitions.

  Attributes:
    title: what one reads off it.
    by: columns that name a line of the table.
    values: columns that are averaged.
    where: keeps only rows with these values.
  """

  title: str
  by: Sequence[str]
  values: Sequence[str]
  where: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Study:
  """One experiment, from config to figures.

  Attributes:
    name: as configs write it, and the module's name.
    summary: one line for `jaxfair list`.
    config: frozen dataclass of the settings; a config file fills it.
    cells: all cells of a config; each is a small mapping that names it.
    run: computes one cell's rows (all seeds in one compiled call).
    claims: sentences checked on the table.
    figures: what is drawn.
    summaries: tables of means, at the top of the report.
    derive: adds columns that need more than one cell, such as what a private
      model loses against the plain one.
    notes: sentences for the report that depend on the config, such as what
      the numbers protect and what they do not.
    points: what rows must have to be points of a frontier, if not all are:
      those whose epsilon is no guarantee must not be chosen from.
  """

  name: str
  summary: str
  config: type
  cells: Callable[[Any], Sequence[Settings]]
  run: Callable[[Any, Settings, Context], Table]
  claims: Sequence[Claim] = ()
  figures: Sequence[Figure] = ()
  summaries: Sequence[Summary] = ()
  derive: Callable[[Table], Table] = lambda table: table
  notes: Callable[[Any], Sequence[str]] = lambda config: ()
  points: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def cell_name(settings: Settings) -> str:
  """A file name for a cell: readable, and unique by a hash of its settings."""
  text = json.dumps(dict(settings), sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()[:10]
  words = "-".join(str(value) for value in settings.values())
  plain = (c.isascii() and (c.isalnum() or c in "-._") for c in words)
  safe = "".join(
    c if keep else "_" for c, keep in zip(words, plain, strict=True)
  )
  return f"{safe[:60]}-{digest}"


def check_claims(study: Study, table: Table) -> list[tuple[Claim, Finding]]:
  """Checks every claim; without rows it is 'not run'."""
  found = []
  for claim in study.claims:
    if not len(table):
      finding = Finding("", why="no rows")
    else:
      finding = claim.check(table)
    found.append((claim, finding))
  return found
