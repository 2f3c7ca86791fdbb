"""PATE: what the student's penalty does to deviation, gap and accuracy."""

from collections.abc import Iterable, Iterator
from typing import Any

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Figure, Summary
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


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
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


def trend_claims(along: str, at: dict[str, Any], rows: Iterable[tuple[str, ...]]) -> list[Claim]:
  """Claims by name, value, "rises" or "falls", statement and source."""
  made = []
  for name, value, way, statement, source in rows:
    trend = ex.trend(value, along)
    check = trend > 0 if way == "rises" else trend < 0
    check = check.at(**ALL, **at).in_each("data")
    made.append(Claim(name, statement, check, source))
  return made


def lines(x: str, color: str, *names: str, **options: Any) -> list[Figure]:
  """Deviation, gap and accuracy along a column, as in the papers."""
  made = []
  for name in names or SHOWN:
    title, y_title = SHOWN[name]
    shown: dict[str, Any] = {"facet": "data", "y_title": y_title, **options}
    shown["log_y"] = name == "deviation" and color == "penalty"
    shown["reference"] = 0.0 if name == "gap" else None
    made.append(Figure(name, title, x, name, "line", color, where=ALL, **shown))
  return made


SUMMARY = Summary(
  "What noise does",
  ("data", "teachers", "penalty"),
  ("accuracy", "clean_accuracy", "deviation", "gap", "flip_probability"),
  ALL,
)
STATEMENTS = {
  "deviation": "A larger penalty moves the student less",
  "gap": "A larger penalty narrows the gap of excess risks",
  "accuracy": "A larger penalty costs accuracy",
}
SOURCE = "Fig. 2, 8; thesis 4.3, 4.10"
STUDY = es.study(
  "pate.penalty",
  "PATE students against the penalty on their parameters",
  Config,
  run,
  notes=notes,
  summaries=(SUMMARY,),
  claims=trend_claims(
    "penalty",
    {"teachers": min},
    [(name, name, "falls", told, SOURCE) for name, told in STATEMENTS.items()],
  ),
  figures=lines("penalty", "teachers", log_x=True),
)
