"""Students over penalties, for every number of teachers: two figures' ground.

What `pate.penalty` and `pate.teachers` share.
"""

import dataclasses
from collections.abc import Sequence

from jaxfair import analysis
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, in_each, trend
from jaxfair.studies.pate.ensembles import (
  PenaltyConfig,
  cells,
  model_of,
  repetitions,
)
from jaxfair.studies.pate.students import (
  compare,
  comparison_rows,
  hard_labels,
  penalty_students,
)
from jaxfair.studies.protocol import Claim, Figure, Summary

ALL = {"group": EVERYONE}


@dataclasses.dataclass(frozen=True)
class Config(PenaltyConfig):
  """Settings of a sweep; one penalty by default."""

  penalties: tuple[float, ...] = (1.0,)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All penalties on every split of one data set and number of teachers."""
  people, made = repetitions(config, cell, context)
  model = model_of(config, people)
  tables = []
  for seed, ensemble in made:
    noisy = hard_labels(
      ensemble, [config.sigma], config.draws, key=ensemble.key_noise
    )
    trained = penalty_students(config, model, ensemble, noisy)
    found = compare(model, trained, ensemble.test, people.num_groups)
    flips = analysis.flip_probability(ensemble.counts, sigma=config.sigma)
    common = {**cell, "flip_probability": float(flips.mean())}
    settings = [common | {"penalty": penalty} for penalty in config.penalties]
    tables.append(
      comparison_rows(
        settings, found, seed=seed, group_names=people.group_names
      )
    )
  return Table.concat(tables)


def notes(config: Config) -> list[str]:
  """What the reader of a sweep must know."""
  return [
    f"Teachers vote on {config.queries} public people; labels are noisy by "
    f"Gaussian noise of sigma {config.sigma:g}. Every split has its own "
    f"teachers; intervals are over {config.splits} splits, and each value is "
    f"a mean over {config.draws} draws of noise.",
    "penalty is lambda of equation (1) of the paper, beside the sum of the "
    "losses. Where it is large the student answers one class to everybody: "
    "then it deviates little, has no gap, and knows nothing.",
    "gap is the largest difference between groups of the errors that noise "
    "adds; which groups are compared is decided on other draws than those "
    "that measure it, so it may fall below 0. Measured without noise: for "
    "those who hold the data.",
  ]


def sweep(
  name: str,
  summary: str,
  *,
  claims: Sequence[Claim],
  figures: Sequence[Figure],
) -> protocol.Study:
  """A study of this ground: what it claims and draws is its own."""
  return protocol.Study(
    name=name,
    summary=summary,
    config=Config,
    cells=cells,
    run=run,
    notes=notes,
    summaries=(SUMMARY,),
    claims=tuple(claims),
    figures=tuple(figures),
  )


def trend_on_each(value: str, along: str, *, rises: bool, other: str) -> Check:
  """The trend on every data set, at the least value of the other column."""

  def check(table: Table) -> protocol.Finding:
    held = {other: min(table[other])} if other in table else {}
    return trend(value, along, rises=rises, where=ALL | held)(table)

  return in_each("data", check)


def figures(x: str, colour: str, *, log_x: bool = False) -> list[Figure]:
  """Deviation, gap and accuracy along a column, as in the papers."""
  shown = (
    ("deviation", "How far noise moves the student", "E ||d||", None),
    ("gap", "Gap of excess risks between groups", "gap (errors)", 0.0),
    ("accuracy", "Accuracy of the students of noisy labels", "", None),
  )
  return [
    Figure(
      value,
      title,
      x=x,
      y=value,
      mark="line",
      color=colour,
      facet="data",
      y_title=y_title,
      log_x=log_x,
      log_y=value == "deviation" and colour == "penalty",
      where=ALL,
      reference=line,
    )
    for value, title, y_title, line in shown
  ]


SUMMARY = Summary(
  "What noise does",
  by=("data", "teachers", "penalty"),
  values=(
    "accuracy",
    "clean_accuracy",
    "deviation",
    "gap",
    "flip_probability",
  ),
  where=ALL,
)
