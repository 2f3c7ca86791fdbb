"""PATE: what the student's penalty does to deviation, gap and accuracy."""

from collections.abc import Iterator
from typing import Any

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _figures, _study
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate import students
from jaxfair.types import Model

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
SOURCE = "Fig. 2, 8; thesis 4.3, 4.10"
STUDY = es.study(
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
      f"deviation: A larger penalty moves the student less [{SOURCE}]": ("deviation", "falls"),
      f"gap: A larger penalty narrows the gap of excess risks [{SOURCE}]": ("gap", "falls"),
      f"accuracy: A larger penalty costs accuracy [{SOURCE}]": ("accuracy", "falls"),
    },
  ),
  figures=lines("penalty", "teachers", log="x"),
)
