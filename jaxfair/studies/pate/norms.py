"""PATE: how far noise moves students of inputs with bounded norms."""

from collections.abc import Iterator

import jax.numpy as jnp

from jaxfair import experiments as ex
from jaxfair.experiments import _study
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate import students
from jaxfair.studies.pate.penalty import ALL, lines
from jaxfair.types import Examples, Model


class Config(es.PenaltyConfig):
  """Settings; a student sees inputs of at most these norms, longer ones are shortened."""

  norms: ex.Sweep[ex.Positive] = (1.0, 2.0, 4.0, 8.0)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """Students of the same labels, whose inputs are shortened more or less."""

  def train(model: Model, own: es.Ensemble) -> Iterator[students.Compared]:
    for norm in config.norms:  # one program for all
      settings = [{"norm": norm, "penalty": one} for one in config.penalties]
      seen = own._replace(public=shortened(own.public, norm))
      trained = students.penalty_students(config, model, seen)
      yield settings, trained, shortened(own.test, norm)

  return students.compare_on_splits(config, cell, context, train)


def shortened(people: Examples, norm: float) -> Examples:
  """The people, with inputs of at most this norm in the same directions."""
  x = jnp.asarray(people.x)
  axes = tuple(range(1, x.ndim))
  length = jnp.sqrt(jnp.sum(x**2, axis=axes, keepdims=True))
  return people._replace(x=x * jnp.minimum(1, norm / jnp.maximum(length, norm)))


def _notes(config: Config) -> list[str]:
  return [
    "Teachers see and label the people as they are; students see inputs shortened to the norm "
    f"on the axis, in training and in the test. Intervals are over {config.splits} splits with "
    f"their own teachers; each value is a mean over {config.draws} draws of noise.",
    "penalty is lambda beside the sum of the losses. At the largest, which is the papers', a "
    "network predicts one class for everybody.",
  ]


TREND = ex.trend("deviation", "norm") > 0
STUDY = es.study(
  "pate.norms",
  "PATE students of inputs with bounded norms",
  Config,
  run,
  notes=_notes,
  summaries=(
    ex.summary(
      "What noise does",
      "deviation, accuracy, clean_accuracy, gap ~ data, teachers, penalty, norm",
      ALL,
    ),
  ),
  claims={
    f"deviation, {which} penalty: The larger the inputs may be, the further noise moves the "
    f"student ({which} penalty) [Fig. 5, 11; thesis 4.5, 4.13]": TREND.at(
      **ALL, penalty=pick
    ).in_each("data")
    for which, pick in (("least", min), ("largest", max))
  },
  figures=lines("norm", "penalty", "deviation", "accuracy", x_title="largest input norm", log="x"),
)
