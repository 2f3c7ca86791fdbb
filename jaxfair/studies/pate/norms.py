"""PATE: how far noise moves students of inputs with bounded norms."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from jaxfair import checks
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import in_each, trend
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
from jaxfair.types import Examples

ALL = {"group": EVERYONE}


@dataclasses.dataclass(frozen=True)
class Config(PenaltyConfig):
  """Settings.

  Attributes:
    norms: largest input norm a student sees; longer inputs are shortened.
  """

  norms: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("norms", self.norms)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Students of the same labels, whose inputs are shortened more or less."""
  people, made = repetitions(config, cell, context)
  model = model_of(config, people)
  tables = []
  for seed, ensemble in made:
    noisy = hard_labels(
      ensemble, [config.sigma], config.draws, key=ensemble.key_noise
    )
    for norm in config.norms:  # one program for all
      seen = ensemble._replace(public=shortened(ensemble.public, norm))
      trained = penalty_students(config, model, seen, noisy)
      test = shortened(ensemble.test, norm)
      found = compare(model, trained, test, people.num_groups)
      tables.append(
        comparison_rows(
          [{**cell, "norm": norm, "penalty": p} for p in config.penalties],
          found,
          seed=seed,
          group_names=people.group_names,
        )
      )
  return Table.concat(tables)


def shortened(people: Examples, norm: float) -> Examples:
  """The people, with inputs of at most this norm in the same directions."""
  x = jnp.asarray(people.x)
  axes = tuple(range(1, x.ndim))
  length = jnp.sqrt(jnp.sum(x**2, axis=axes, keepdims=True))
  return people._replace(x=x * jnp.minimum(1, norm / jnp.maximum(length, norm)))


def _notes(config: Config) -> list[str]:
  return [
    "Teachers see and label the people as they are; students see inputs "
    "shortened to the norm on the axis, in training and in the test. "
    f"Intervals are over {config.splits} splits with their own teachers, each "
    f"value is a mean over {config.draws} draws of noise.",
    "penalty is lambda beside the sum of the losses. At the largest, which is "
    "the papers', a network answers one class to everybody.",
  ]


def _claim(which: str, pick: Any) -> Claim:
  """At the least penalty, or at the largest."""

  def check(table: Table) -> protocol.Finding:
    held = {"penalty": pick(table["penalty"])} if "penalty" in table else {}
    return trend("deviation", "norm", rises=True, where=ALL | held)(table)

  return Claim(
    f"deviation, {which} penalty",
    "The larger the inputs may be, the further noise moves the student "
    f"({which} penalty)",
    in_each("data", check),
    "Fig. 5, 11; thesis 4.5, 4.13",
  )


STUDY = protocol.Study(
  name="pate.norms",
  summary="PATE students of inputs with bounded norms",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "What noise does",
      by=("data", "teachers", "penalty", "norm"),
      values=("deviation", "accuracy", "clean_accuracy", "gap"),
      where=ALL,
    ),
  ),
  claims=(
    _claim("least", min),
    _claim("largest", max),
  ),
  figures=(
    Figure(
      "deviation",
      "How far noise moves the student",
      x="norm",
      y="deviation",
      mark="line",
      color="penalty",
      facet="data",
      x_title="largest input norm",
      y_title="E ||d||",
      log_x=True,
      log_y=True,
      where=ALL,
    ),
    Figure(
      "accuracy",
      "Accuracy of the students of noisy labels",
      x="norm",
      y="accuracy",
      mark="line",
      color="penalty",
      facet="data",
      x_title="largest input norm",
      log_x=True,
      where=ALL,
    ),
  ),
)
