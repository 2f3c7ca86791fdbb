"""PATE: what penalty, number of teachers and input norms do to deviation, gap and accuracy."""

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _figures, _study
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate import students
from jaxfair.types import Examples, Model

ALL = {"group": "everyone"}
SHOWN = {
  "deviation": ("How far noise moves the student", "E ||d||"),
  "gap": ("Gap of excess risks between groups", "gap (errors)"),
  "accuracy": ("Accuracy of the students of noisy votes", ""),
}


class Config(es.PenaltyConfig):
  """Settings; one penalty by default."""

  penalties: ex.Sweep[ex.Positive] = (1.0,)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All penalties on every split of one data set and number of teachers."""

  def train(model: Model, own: es.Ensemble) -> Iterator[students.Compared]:
    flips = analysis.flip_probability(own.counts, sigma=config.sigma)
    common = {"flip_probability": float(flips.mean())}
    settings = [{**common, "penalty": one} for one in config.penalties]
    yield settings, students.penalty_students(config, model, own), own.test

  return students.compare_on_splits(config, cell, context, train)


def notes(config: Config) -> list[str]:
  """What readers must know."""
  return [
    f"Teachers vote on {config.queries} public people; the labels carry Gaussian noise of sigma "
    f"{config.sigma:g}. Every split has its own teachers; intervals are over {config.splits} "
    f"splits, and each value is a mean over {config.draws} draws of noise.",
    "penalty is lambda of equation (1) of the paper, beside the sum of the losses. Where it is "
    "large the student predicts one class for everybody: it deviates little and has no gap, but "
    "has learned nothing.",
    "gap is the largest difference between groups of the errors that noise adds. Which groups "
    "are compared is decided on other draws than those that measure it, so it may fall below "
    "0. It is measured without noise: for those who hold the data.",
  ]


class NormConfig(es.PenaltyConfig):
  """Settings; a student sees inputs of at most these norms, longer ones are shortened."""

  norms: ex.Sweep[ex.Positive] = (1.0, 2.0, 4.0, 8.0)


def run_norms(config: NormConfig, cell: _study.Cell, context: _study.Context) -> ex.Table:
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


def _norm_notes(config: NormConfig) -> list[str]:
  return [
    "Teachers see and label the people as they are; students see inputs shortened to the norm "
    f"on the axis, in training and in the test. Intervals are over {config.splits} splits with "
    f"their own teachers; each value is a mean over {config.draws} draws of noise.",
    "penalty is lambda beside the sum of the losses. At the largest, which is the papers', a "
    "network predicts one class for everybody.",
  ]


def trends(
  along: str, at: dict[str, Any], told: dict[str, tuple[str, str]]
) -> dict[str, _claims.Check]:
  """Claims that a value "rises" or "falls" along a column, in every set."""
  made = {}
  for statement, (value, way) in told.items():
    trend = ex.trend(value, along)
    check = trend > 0 if way == "rises" else trend < 0
    made[statement] = check.at(**ALL, **at).in_each("data")
  return made


def lines(
  x: str, color: str, *names: str, facet: str = "data", **options: Any
) -> list[_figures.Figure]:
  """Deviation, gap and accuracy along a column, as in the papers."""
  made = []
  for y in names or SHOWN:
    title, y_title = SHOWN[y]
    log = options.get("log", "") + ("y" if y == "deviation" and color == "penalty" else "")
    shown: dict[str, Any] = {**options, "log": log, "y_title": y_title, "zero": y == "gap"}
    made.append(ex.lines(f"{y}: {title}", f"{y} ~ {x}, {color} | {facet}", where=ALL, **shown))
  return made


SUMMARY = ex.summary(
  "What noise does",
  "accuracy, clean_accuracy, deviation, gap, flip_probability ~ data, teachers, penalty",
  ALL,
)
SOURCES = ("Fig. 2, 8; thesis 4.3, 4.10", "Fig. 4, 10; thesis 4.3, 4.12")
PENALTY = es.study(
  "pate.penalty",
  "PATE students against the penalty on their parameters",
  Config,
  run,
  notes=notes,
  summaries=(SUMMARY,),
  claims=trends(
    "penalty",
    {"teachers": min},
    {
      f"deviation: A larger penalty moves the student less [{SOURCES[0]}]": ("deviation", "falls"),
      f"gap: A larger penalty narrows the gap of excess risks [{SOURCES[0]}]": ("gap", "falls"),
      f"accuracy: A larger penalty costs accuracy [{SOURCES[0]}]": ("accuracy", "falls"),
    },
  ),
  figures=lines("penalty", "teachers", log="x"),
)

TEACHERS = es.study(
  "pate.teachers",
  "PATE students against the number of teachers",
  Config,
  run,
  notes=notes,
  summaries=(SUMMARY,),
  claims=trends(
    "teachers",
    {"penalty": min},
    {
      "flips: Labels of more teachers are flipped less often [Fig. 3, 9; thesis 4.4, 4.11]": (
        "flip_probability",
        "falls",
      ),
      f"deviation: With more teachers noise moves the student less [{SOURCES[1]}]": (
        "deviation",
        "falls",
      ),
      f"gap: More teachers narrow the gap of excess risks [{SOURCES[1]}]": ("gap", "falls"),
      "accuracy: More teachers make the student more accurate [Fig. 4]": ("accuracy", "rises"),
    },
  ),
  figures=(
    ex.lines(
      "flips: How likely noise flips a label",
      "flip_probability ~ teachers, data",
      "Mean over the public people, exact for their votes.",
      where=ALL,
    ),
    *lines("teachers", "penalty"),
  ),
)

TREND = ex.trend("deviation", "norm") > 0
NORMS = es.study(
  "pate.norms",
  "PATE students of inputs with bounded norms",
  NormConfig,
  run_norms,
  notes=_norm_notes,
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

STUDIES = {study.name: study for study in (PENALTY, TEACHERS, NORMS)}
