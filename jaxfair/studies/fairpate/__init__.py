"""FairPATE and its rivals: epsilon, gap, accuracy and coverage together.

One row per method, setting and seed: the points of a frontier. A repetition is
a split of the people with teachers of its own; all methods of a repetition
share votes and noise.
"""

import itertools
from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import checks, tree
from jaxfair import experiments as ex
from jaxfair.experiments import Count, OneOrMany, Positive, Summary, several
from jaxfair.studies.fairpate import claims, common, methods
from jaxfair.studies.fairpate.common import Repetition
from jaxfair.studies.fairpate.methods import METHODS, Point
from jaxfair.training import DpSgdConfig


class Config(common.OneThreshold):
  """Settings of a frontier; the first four may be one value or many.

  `jaxfair run CONFIG --set method=fairpate --set epsilon=3.0 --set
  max_gap=0.05` trains one point of it.

  Attributes:
    method: what is compared. pate and dp_sgd know nothing of fairness and
      answer everybody. So does fairpate_calibrated, which calibrates
      FairPATE's students on public people instead. fair_dp_sgd adds the
      penalty after the noise, fair_dp_sgd_inside before the clip, as the paper
      lists it.
    epsilon: budgets, at `delta`.
    max_gap: margins, of the labels and of abstention at inference.
    lam: weights of the disparity, for the methods that have a penalty.
    sgd_batch: expected batch of DP-SGD.
  """

  method: OneOrMany[Annotated[str, ex.OneOf(tuple(METHODS))]] = tuple(
    name for name in METHODS if name != "fairpate_calibrated"
  )
  epsilon: OneOrMany[Positive] = (1.0, 3.0, 10.0)
  max_gap: OneOrMany[Positive] = (0.02, 0.05, 0.1)
  lam: OneOrMany[ex.NonNegative] = (1.0, 5.0)
  student_steps: Count = 300
  sgd_steps: Count = 300
  sgd_batch: Count = 256
  sgd_learning_rate: Positive = 0.5
  l2_clip: Positive = 1.0

  def check(self) -> None:
    """A batch comes from the private people."""
    super().check()
    checks.integer("sgd_batch", self.sgd_batch, high=self.private_people)

  @property
  def points(self) -> list[Point]:
    """All settings of all methods; NaN for what a method does not have."""
    found = []
    for name in several(self.method):
      kind, axes = METHODS[name], [several(self.epsilon)]
      judged = kind.fair_labels or kind.abstains
      axes.append(several(self.max_gap) if judged else (np.nan,))
      axes.append(several(self.lam) if kind.has_lam else (np.nan,))
      found += [Point(name, *values) for values in itertools.product(*axes)]
    return found


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All methods on one repetition."""
  keys = jax.random.split(jax.random.fold_in(context.key, 1), 4)
  own = common.split(config, cell, context)
  if any(p.kind.route in methods.STUDENTS for p in config.points):
    own = own.vote(key=jax.random.fold_in(context.key, 0))
  tables = []
  for route in methods.ROUTES:
    points = [p for p in config.points if p.kind.route == route]
    if points:
      distinct, which = methods.trainings(points)
      params, answered = _train(config, own, route, distinct, keys)
      params, answered = tree.take(params, which), answered[which]
      tables.append(_rows(own, points, params, answered))
  table = ex.Table.concat(tables)
  return table.plus(seed=[cell["seed"]] * len(table))


def _train(
  config: Config, own: Repetition, route: methods.Route, points: list[Point], keys: jax.Array
) -> tuple[Any, np.ndarray]:
  """[S] models, and the number of labels that each has learned from."""
  key_noise, key_student, key_sgd, key_mend = keys
  lams = np.array([p.lam for p in points])
  if route in ("after", "inside"):
    settings = DpSgdConfig(
      learning_rate=config.sgd_learning_rate,
      l2_clip=config.l2_clip,
      steps=config.sgd_steps,
      batch_size=config.sgd_batch,
      weight_decay=config.weight_decay,
      penalties=(methods.penalty_of(own, lams, placement=route),),
    )
    epsilons = [p.epsilon for p in points]
    params = methods.train_privately(own, epsilons, settings, key=key_sgd)
    return params, np.full(len(points), np.nan)
  labels = np.stack([methods.labels_of(own, config.threshold, p, key=key_noise) for p in points])
  penalties = (methods.penalty_of(own, lams),) if route == "penalized" else ()
  params = methods.train_students(
    own, labels, config.student_steps, penalties=penalties, key=key_student
  )
  if route == "mended":
    params = methods.mend(own, params, lams, key=key_mend)
  return params, (labels >= 0).sum(axis=1).astype(float)


def _rows(own: Repetition, points: list[Point], params: Any, answered: np.ndarray) -> ex.Table:
  """One row for each point; unknown where it has learned from no label."""
  found = methods.measure(own, params, points)._asdict()
  found |= found.pop("constant")
  columns = dict(zip(Point._fields, zip(*points, strict=True), strict=True))
  return ex.Table(
    {"data": [own.people.name] * len(points)}
    | columns
    | {name: np.where(answered == 0, np.nan, found[name]) for name in found}
    | {"answered": answered}
  )


def _notes(config: Config) -> list[str]:
  return [
    f"epsilon is a budget fixed beforehand, at delta {config.delta:g}; it does not depend on "
    "the votes. For teachers it concerns one person replaced by another, for DP-SGD one person "
    "added or removed.",
    "Labels refused as unfair are charged. The paper charges nothing for them and computes its "
    "epsilons from the votes, so at the same number its runs answer more.",
    "gap, accuracy and coverage are measured on held-out people who are answered within the "
    "margin; raw_gap and raw_accuracy on everybody. They have no noise and are for those who "
    "hold the data.",
    f"Intervals are over {config.seeds} splits with their own teachers, noise and students.",
  ]


SETTING = ("method", "epsilon", "max_gap", "lam")

STUDY = common.study(
  "fairpate",
  "Epsilon, gap, accuracy, coverage of FairPATE and its rivals",
  Config,
  run,
  derive=claims.derive,
  notes=_notes,
  summaries=(
    Summary("What each setting reaches", SETTING, ("gap", "accuracy", "coverage", "answered")),
    Summary("Everybody answered: without abstention", SETTING, ("raw_gap", "raw_accuracy")),
  ),
  claims=claims.CLAIMS,
  figures=claims.FIGURES,
)
