"""FairPATE and its rivals: epsilon, gap, accuracy and coverage together.

The table has one row per method, setting and seed: the points of a frontier. A repetition is a
split of the people with its own teachers; all methods of a repetition share votes and noise.
"""

import dataclasses
import functools
import itertools
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, methods, training, tree
from jaxfair import experiments as ex
from jaxfair._fields import OneOrMany, several
from jaxfair.experiments import Count, Positive, _study
from jaxfair.experiments._measures import beside_constant
from jaxfair.fairness import demographic_disparity
from jaxfair.fairness._counter_sequence import admit_in_order
from jaxfair.methods import _method
from jaxfair.pate import NO_ANSWER
from jaxfair.studies.fairpate import charging, claims, common
from jaxfair.studies.fairpate.charging import CHARGES, PAPER, SOUND
from jaxfair.studies.fairpate.common import METHODS, NO_MARGIN, PLAIN, Point, Repetition
from jaxfair.types import Examples, Model, Params


class Config(common.OneThreshold):
  """Settings of a frontier; the first five may be one value or many.

  `jaxfair run CONFIG --set method=fairpate --set epsilon=3.0 --set
  max_gap=0.05` trains one point of it.

  Attributes:
    method: what is compared. pate and dp_sgd know nothing of fairness and
      answer everybody. So does fairpate_calibrated, which calibrates
      FairPATE's students on public people instead. fair_dp_sgd_inside adds the
      penalty before the clip, as the paper lists it, fair_dp_sgd after the
      noise. fair_soft_pate asks for scores, once; plain is without privacy.
    epsilon: budgets, at `delta`.
    max_gap: margins, of the labels and of abstention at inference.
    lam: weights of the disparity, for the methods that have a penalty.
    charge: for labels of teachers; only "every argmax" is a guarantee.
    other: a second set, whose frontier is compared with the first one's.
  """

  method: OneOrMany[Annotated[str, _fields.OneOf(tuple(METHODS))]] = tuple(
    name for name in METHODS if name not in ("fairpate_allowed", "fairpate_calibrated")
  )
  epsilon: OneOrMany[Positive] = (2.0, 5.0, 10.0)
  max_gap: OneOrMany[Positive] = (0.01, 0.05, 0.2)
  lam: OneOrMany[ex.NonNegative] = (0.1, 0.3, 1.0)
  charge: OneOrMany[Annotated[str, _fields.OneOf(CHARGES)]] = (SOUND, PAPER)
  other: ex.People | None = None
  sgd_steps: Count = 150

  @property
  def points(self) -> list[Point]:
    """All settings of all methods; NaN for what a method does not have."""
    found = []
    for name in several(self.method):
      kind, nothing = METHODS[name], (np.nan,)
      judged = kind.fair_labels or kind.abstains
      axes: list[Any] = [nothing if name == PLAIN else several(self.epsilon)]
      axes.append(several(self.max_gap) if judged else nothing)
      axes.append(several(self.lam) if kind.has_lam else nothing)
      axes.append(several(self.charge) if kind.voted else (PLAIN if name == PLAIN else SOUND,))
      found += [Point(name, *values) for values in itertools.product(*axes)]
    return found


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All methods on one repetition."""
  own = common.split(config, cell, context)
  key_votes, key_noise, *keys = (jax.random.fold_in(context.key, i) for i in range(5))
  voted = [point for point in config.points if point.kind.voted]
  labels = _labels(own, voted, own.votes(key=key_votes), key=key_noise) if voted else {}
  tables = []
  for route in dict.fromkeys(point.kind.route for point in config.points):
    points = [point for point in config.points if point.kind.route == route]
    distinct, which = trainings(points)
    params, answered = _train(own, distinct, labels, keys)
    params, answered = tree.take(params, which), answered[which]
    tables.append(_rows(own, points, params, answered))
  return ex.Table.concat(tables).plus(seed=cell["seed"])


def _labels(
  own: Repetition, points: list[Point], votes: np.ndarray, *, key: jax.Array
) -> dict[Point, np.ndarray]:
  """[queries] labels that the budget of each point pays for; NO_ANSWER elsewhere."""
  threshold, priced = own.config.threshold, charging.Charges(own.config, votes)
  margins = (NO_MARGIN, *several(own.config.max_gap))
  phases: dict[Any, Any] = {}
  for choice in dict.fromkeys(point.kind.choice for point in points):
    runs = own.phases(votes, [(threshold, margin) for margin in margins], choice, key=key)
    phases |= {(choice, margin): phase for margin, phase in zip(margins, runs, strict=True)}
  found = {}
  for point in trainings(points)[0]:
    fair, asks = point.kind.fair_labels, point.kind.name == "fairpate"
    phase = phases[point.kind.choice, point.max_gap if asks else NO_MARGIN]
    done = priced.asked(phase, threshold, point.charge)(point.epsilon)
    labels = np.where(done, phase.labels, NO_ANSWER)
    if fair and not asks:  # PATE-S_pre: everything was answered, and is filtered now
      rule, sizes = own.config.rule(point.max_gap), own.population.sizes
      kept = admit_in_order(
        labels, own.public.group, rule, num_groups=sizes.groups, num_classes=sizes.classes
      )
      labels = np.asarray(kept.labels)
    found[_named(point)] = labels
  return found


def trainings(points: list[Point]) -> tuple[list[Point], np.ndarray]:
  """Points that are trained differently, and which of them each point is.

  Points that differ only in the margin of their abstention share a model.
  """
  alike = [_named(p if p.kind.fair_labels else p._replace(max_gap=np.nan)) for p in points]
  distinct = list(dict.fromkeys(alike))
  return distinct, np.array([distinct.index(p) for p in alike])


def _named(point: Point) -> Point:
  """The same point, equal to others with the same NaNs."""
  unknown: dict[str, Any] = {k: np.nan for k, value in point._asdict().items() if value != value}
  return point._replace(**unknown)


@functools.lru_cache(maxsize=1024)
def _plan(config: Config, sizes: _method.Sizes, point: Point) -> methods.Plan:
  return point.plan(config, sizes)  # priced once for all repetitions


def _train(
  own: Repetition, points: list[Point], labels: dict[Point, np.ndarray], keys: list[jax.Array]
) -> tuple[Params, np.ndarray]:
  """[S] models, and the number of labels that each has learned from."""
  key_student, key_private, key_calibration = keys
  plans = [_plan(own.config, own.population.sizes, point) for point in points]
  maker: Any = methods.get(plans[0].method)
  if points[0].kind.voted:
    given = np.stack([labels[point] for point in points])
    students = maker.students(plans, own.population, given, key=key_student)
    if points[0].kind.mended:
      lams = [point.lam for point in points]
      students = _mend(own, plans[0].model, students, lams, key=key_calibration)
    return students, (given >= 0).sum(axis=1).astype(float)
  unknown = np.full(len(points), np.nan)
  if hasattr(maker, "fit_many"):
    return maker.fit_many(plans, own.population, key=key_private).params, unknown
  fits = [maker.fit(plan, own.population, key=key_private).params for plan in plans]
  return tree.stack(fits), unknown


def _mend(
  own: Repetition, model: Model, params: Params, lams: list[float], *, key: jax.Array
) -> Params:
  """[S] students, each calibrated on the public people with its lam."""
  calibrate = functools.partial(
    training.calibrate_fairness,
    x=jnp.asarray(own.public.x),
    group=jnp.asarray(own.public.group),
    num_groups=own.people.num_groups,
    disparity=own.config.disparity,
    learning_rate=own.config.learning_rate,
    key=key,
  )
  return jax.lax.map(
    lambda pair: calibrate(model, pair[0], lam=pair[1]).params,
    (params, jnp.asarray(lams, jnp.float32)),
  )


def _rows(own: Repetition, points: list[Point], params: Params, answered: np.ndarray) -> ex.Table:
  """One row for each point; unknown where it has learned from no label."""
  margins = [point.max_gap if point.kind.abstains else NO_MARGIN for point in points]
  plan = _plan(own.config, own.population.sizes, trainings(points)[0][0])
  fixed = (own.config, plan.model, own.people.num_groups, own.people.num_classes)
  test = plan.bounded(dataclasses.replace(own.population, private=own.test)).private
  measured = _measured(*fixed, params, test, jnp.array(margins, jnp.float32))
  found = {name: np.asarray(value, np.float64) for name, value in measured.items()}
  columns = dict(zip(Point._fields, zip(*points, strict=True), strict=True))
  return ex.Table(
    {"data": [own.people.name] * len(points)}
    | columns
    | {name: np.where(answered == 0, np.nan, found[name]) for name in found}
    | {"answered": answered}
  )


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _measured(
  config: Config,
  model: Model,
  num_groups: int,
  num_classes: int,
  stacked: Params,
  test: Examples,
  margins: jax.Array,
) -> dict[str, jax.Array]:
  """[S] measures of models [S], each abstaining by its margin; `raw_` of everybody."""

  def largest(counters: jax.Array) -> jax.Array:
    return jnp.nanmax(demographic_disparity(counters, notion=config.disparity, skip_empty=True))

  def one(own: tuple[Params, jax.Array]) -> dict[str, jax.Array]:
    params, margin = own
    predicted = jnp.argmax(model.apply(params, test.x), -1).astype(jnp.int32)

    def admit(limit: jax.Array) -> Any:
      rule = config.rule(limit)
      return admit_in_order(
        predicted, test.group, rule, num_groups=num_groups, num_classes=num_classes
      )

    shown = jax.vmap(admit)(jnp.stack([margin, jnp.asarray(NO_MARGIN)]))
    covered = jnp.mean(shown.labels != NO_ANSWER, axis=1)
    accuracy = jnp.mean(shown.labels == test.y, axis=1) / covered
    gaps = jax.vmap(largest)(shown.counters)
    of_all = {"raw_accuracy": accuracy[1], "raw_gap": gaps[1]}
    shown_to = {"accuracy": accuracy[0], "gap": gaps[0], "coverage": covered[0]}
    return shown_to | of_all | beside_constant(test.y, predicted, num_classes)

  return jax.lax.map(one, (stacked, margins), batch_size=16)


def _notes(config: Config) -> list[str]:
  return [
    f"epsilon is a budget at delta {config.delta:g}. For teachers it concerns one person replaced "
    "by another, for DP-SGD one person added or removed.",
    *charging.TOLD,
    "gap, accuracy and coverage are measured on held-out people who are answered within the "
    "margin; raw_gap and raw_accuracy on everybody. They have no noise and are for those who "
    "hold the data.",
    f"Intervals are over {config.seeds} splits with their own teachers, noise and students.",
  ]


SETTING = "method, charge, epsilon, max_gap, lam"
STUDY = common.study(
  "fairpate",
  "Epsilon, gap, accuracy, coverage of FairPATE and its rivals",
  Config,
  run,
  derive=claims.derive,
  notes=_notes,
  points={"charge": SOUND},
  plain={"method": PLAIN},
  release=common.release,
  summaries=(
    ex.summary("What each setting reaches", f"gap, accuracy, coverage, answered ~ {SETTING}"),
    ex.summary("Everybody answered: without abstention", f"raw_gap, raw_accuracy ~ {SETTING}"),
  ),
  claims=claims.CLAIMS,
  figures=claims.FIGURES,
)
