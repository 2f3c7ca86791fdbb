"""PATE: what penalty, number of teachers and input norms do to deviation, gap and accuracy."""

from collections.abc import Iterable, Iterator
from typing import Any

import jax.numpy as jnp

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _figures, _study
from jaxfair.experiments._usefulness import levels
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate import students
from jaxfair.types import Examples, Model

ALL = {"group": "everyone", "votes": students.NOISY}
CLEAN = {"votes": students.CLEAN}
LEARNT = CLEAN | {"penalty": min}  # at the largest penalties students collapse on purpose
EACH, SOME = "every set", "some set"  # a figure of one set names it instead
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


def claims(told: Iterable[tuple[str, _claims.Check, str, dict[str, str]]]) -> dict[str, Any]:
  """Each check in one set, in every set, or in some set, as the places say it."""
  made = {}
  for name, check, statement, places in told:
    for where, place in places.items():
      made[f"{name}, {where}: {statement} ({where}) [{place}]"] = in_sets(check, where)
  return made


def in_sets(check: _claims.Check, where: str) -> _claims.Check:
  """The check in every set, in some set, or in the set of this name."""
  if where == SOME:
    return check.in_some("data")
  return check.in_each("data") if where == EACH else check.at(data=where)


def trend(value: str, along: str, way: str, **at: Any) -> _claims.Check:
  """The value of noisy students "rises" or "falls" along a column."""
  found = ex.trend(value, along)
  check = (found > 0 if way == "rises" else found < 0).at(**(ALL | at))
  return if_learnt(check, at | CLEAN)


def if_learnt(check: _claims.Check, reference: _claims.Where) -> _claims.Check:
  """The check, if the models of these rows are better than a constant."""

  def run(table: ex.Table, level: float) -> _claims.Finding:
    useless = [one.told for one in levels(table, reference) if not one.learnt]
    if useless:
      raise _claims.CannotTellError(f"the model has not learnt: {'; '.join(useless)}")
    return check.run(table, level)

  return _claims.Check(run)


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
  "accuracy, balanced_accuracy, majority_accuracy, deviation, gap ~ data, teachers, penalty, votes",
  {"group": "everyone"},
)
PENALTY = es.study(
  "pate.penalty",
  "PATE students against the penalty on their parameters",
  Config,
  run,
  notes=notes,
  summaries=(SUMMARY,),
  plain=CLEAN,
  reference=LEARNT,
  claims=claims(
    [
      (
        "deviation",
        trend("deviation", "penalty", "falls"),
        "A larger penalty moves the student less",
        {"credit": "Fig. 2; Fig. 4.3", EACH: "Fig. 8; Fig. 4.10"},
      ),
      (
        "gap",
        trend("gap", "penalty", "falls"),
        "A larger penalty narrows the gap of excess risks",
        {"credit": "Fig. 2, gap; Fig. 4.3", EACH: "Fig. 8; Fig. 4.10"},
      ),
      (
        "accuracy",
        trend("accuracy", "penalty", "falls"),
        "A larger penalty can cost accuracy",
        {SOME: "Fig. 2, accuracy; Fig. 4.3, accuracy; Fig. 8, accuracy; Fig. 4.10, accuracy"},
      ),
    ]
  )
  | {
    "gap, students that learn: Up to a penalty of 5, where students learn, a larger penalty "
    "narrows the gap of excess risks": in_sets(
      trend("gap", "penalty", "falls", penalty=lambda told: tuple(p for p in told if p <= 5)), EACH
    )
  },
  figures=lines("penalty", "teachers", log="x"),
)

TEACHERS = es.study(
  "pate.teachers",
  "PATE students against the number of teachers",
  Config,
  run,
  notes=notes,
  summaries=(
    SUMMARY,
    ex.summary("How likely noise flips a label", "flip_probability ~ data, teachers", ALL),
  ),
  plain=CLEAN,
  reference=LEARNT,
  claims=claims(
    [
      (
        "flips",
        trend("flip_probability", "teachers", "falls", penalty=min),
        "Labels of more teachers are flipped less often",
        {"credit": "Fig. 3; Fig. 4.4", EACH: "Fig. 9; Fig. 4.11"},
      ),
      *(
        (
          f"{value}, {which} penalty",
          trend(value, "teachers", way, penalty=pick),
          f"{statement} ({which} penalty)",
          places,
        )
        for which, pick in (("least", min), ("largest", max))
        for value, way, statement, places in (
          (
            "deviation",
            "falls",
            "With more teachers noise moves the student less",
            {"adult": "Fig. 4", "credit": "Fig. 4.3, teachers", EACH: "Fig. 10; Fig. 4.12"},
          ),
          (
            "gap",
            "falls",
            "More teachers narrow the gap of excess risks",
            {"adult": "Fig. 4", "credit": "Fig. 4.3, teachers", EACH: "Fig. 10; Fig. 4.12"},
          ),
          (
            "accuracy",
            "rises",
            "More teachers make the student of noisy votes more accurate",
            {"adult": "Fig. 4", "credit": "Fig. 4.3, teachers"},
          ),
        )
      ),
      (
        "accuracy without noise",
        trend("accuracy", "teachers", "falls", penalty=min, **CLEAN),
        "Very many teachers can cost accuracy: the student of clean votes",
        {SOME: "Fig. 4, many teachers; Fig. 10, accuracy; Fig. 4.12, accuracy"},
      ),
    ]
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

NORMS = es.study(
  "pate.norms",
  "PATE students of inputs with bounded norms",
  NormConfig,
  run_norms,
  notes=_norm_notes,
  summaries=(
    ex.summary(
      "What noise does",
      "deviation, accuracy, gap ~ data, teachers, penalty, norm, votes",
      {"group": "everyone"},
    ),
  ),
  plain=CLEAN,
  reference=LEARNT,
  claims=claims(
    (
      f"deviation, {which} penalty",
      trend("deviation", "norm", "rises", penalty=pick),
      f"The larger the inputs may be, the further noise moves the student ({which} penalty)",
      {"credit": "Fig. 5; Fig. 4.5", EACH: "Fig. 11; Fig. 4.13"},
    )
    for which, pick in (("least", min), ("largest", max))
  ),
  figures=lines("norm", "penalty", "deviation", "accuracy", x_title="largest input norm", log="x"),
)

STUDIES = {study.name: study for study in (PENALTY, TEACHERS, NORMS)}
