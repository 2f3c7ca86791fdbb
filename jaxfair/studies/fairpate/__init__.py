"""FairPATE and its rivals: epsilon, gap, accuracy and coverage together.

One row per method, setting and seed: the points of a frontier. A repetition is
a split of the people with teachers of its own; all methods of a repetition
share votes and noise.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, models, training, tree
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.fairpate import claims, figures, students
from jaxfair.studies.fairpate import config as settings
from jaxfair.studies.fairpate.config import Floats, Method, Repetition, several
from jaxfair.studies.fairpate.students import Measured, Point
from jaxfair.studies.protocol import Summary


@dataclasses.dataclass(frozen=True)
class Config(settings.OneThreshold):
  """Settings of a frontier; the first four may be one value or many.

  `jaxfair run CONFIG --set method=fairpate --set epsilon=3.0 --set
  max_gap=0.05` trains one point of it.

  Attributes:
    method: whom to compare; pate and dp_sgd have no fairness in them, and
      answer everybody. So does fairpate_calibrated, which mends FairPATE's
      students on public people instead. fair_dp_sgd adds the penalty behind
      the noise, fair_dp_sgd_inside before the clip, as the paper lists it.
    epsilon: budgets, at `delta`.
    max_gap: margins, of the labels and of abstention at inference.
    lam: weights of the disparity, of pate_s_in, fairpate_calibrated and the
      two FairDP-SGDs.
    student_steps: of batches of `batch_size`.
    sgd_steps: of DP-SGD.
    sgd_batch: expected batch of DP-SGD.
    sgd_learning_rate: of plain descent.
    l2_clip: of DP-SGD.
  """

  method: tuple[Method, ...] | Method = (
    "pate",
    "fairpate",
    "fairpate_allowed",
    "pate_s_pre",
    "pate_s_in",
    "dp_sgd",
    "fair_dp_sgd",
    "fair_dp_sgd_inside",
  )
  epsilon: Floats = (1.0, 3.0, 10.0)
  max_gap: Floats = (0.02, 0.05, 0.1)
  lam: Floats = (1.0, 5.0)
  student_steps: int = 300
  sgd_steps: int = 300
  sgd_batch: int = 256
  sgd_learning_rate: float = 0.5
  l2_clip: float = 1.0

  def __post_init__(self) -> None:
    super().__post_init__()
    for name in ("student_steps", "sgd_steps"):
      checks.integer(name, getattr(self, name), low=1)
    checks.integer("sgd_batch", self.sgd_batch, low=1, high=self.private_people)
    for name in ("method", "epsilon", "max_gap", "lam"):
      values = several(getattr(self, name))
      checks.require(
        0 < len(set(values)) == len(values),
        f"{name}={list(values)} must be one or more different values",
      )
    for name in ("epsilon", "max_gap", "sgd_learning_rate", "l2_clip"):
      checks.positive(name, getattr(self, name))
    checks.non_negative("lam", self.lam)


def points(config: Config) -> list[Point]:
  """All settings of all methods."""
  found = []
  for method in several(config.method):
    margins = (np.nan,)
    if method not in settings.WITHOUT_MARGIN:
      margins = several(config.max_gap)
    lams = several(config.lam) if method in settings.WITH_LAM else (np.nan,)
    found += [
      Point(method, epsilon, margin, lam)
      for epsilon in several(config.epsilon)
      for margin in margins
      for lam in lams
    ]
  return found


def trainings(some: list[Point]) -> tuple[list[Point], np.ndarray]:
  """Points that are trained differently, and which of them each one is.

  Points of a method that only abstains by its margin share a model.
  """
  alike = [
    p._replace(max_gap=np.nan) if p.method in settings.MARGIN_AFTERWARDS else p
    for p in some
  ]
  names = [str(p) for p in alike]
  distinct = dict(zip(names, alike, strict=True))
  places = {name: place for place, name in enumerate(distinct)}
  return list(distinct.values()), np.array([places[name] for name in names])


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All methods on one repetition."""
  wanted = points(config)
  key_noise, key_student, key_sgd, key_mend = jax.random.split(
    jax.random.fold_in(context.key, 1), 4
  )
  tables = []
  own = settings.without_votes(config, cell, context)
  voted = [p for p in wanted if "sgd" not in p.method]
  if voted:
    asked = settings.with_votes(config, own, context)
    tables += _students(config, asked, voted, key_noise, key_student, key_mend)
  private = [p for p in wanted if "sgd" in p.method]
  for inside in (False, True):
    some = [p for p in private if p.method.endswith("inside") == inside]
    if some:
      distinct, which = trainings(some)
      params = _private(config, own, distinct, inside=inside, key=key_sgd)
      params = tree.take(params, which)
      tables.append(_rows(config, own, some, params, np.nan))
  return Table.concat(tables).plus(seed=_same(tables, cell["seed"]))


def _students(
  config: Config,
  own: Repetition,
  wanted: list[Point],
  key_noise: jax.Array,
  key_student: jax.Array,
  key_mend: jax.Array,
) -> list[Table]:
  """Rows of all methods that learn from votes."""
  tables = []
  for kind in ("", "pate_s_in", "fairpate_calibrated"):
    some = [p for p in wanted if _kind(p) == kind]
    if not some:
      continue
    distinct, which = trainings(some)
    labels = np.stack(
      [students.labels_of(config, own, p, key=key_noise) for p in distinct]
    )
    lams = np.array([p.lam for p in distinct])
    params = students.train_students(
      config, own, labels, steps=config.student_steps,
      lams=lams if kind == "pate_s_in" else None, key=key_student,
    )  # fmt: skip
    if kind == "fairpate_calibrated":
      params = students.calibrated(config, own, params, lams, key=key_mend)
    answered = (labels >= 0).sum(axis=1).astype(float)[which]
    params = tree.take(params, which)
    tables.append(_rows(config, own, some, params, answered))
  return tables


def _kind(point: Point) -> str:
  """What sets a student's training apart; "" for nothing."""
  special = ("pate_s_in", "fairpate_calibrated")
  return point.method if point.method in special else ""


def _private(
  config: Config, own: Repetition, wanted: list[Point], *, inside: bool,
  key: jax.Array,
) -> Any:  # fmt: skip
  """[S] models of DP-SGD, with the penalty inside the clip or after."""
  base = training.DpSgdConfig(
    learning_rate=config.sgd_learning_rate, l2_clip=config.l2_clip,
    steps=config.sgd_steps, batch_size=config.sgd_batch,
    weight_decay=config.weight_decay,
  )  # fmt: skip
  size = own.private.size
  for_epsilon = functools.cache(
    lambda epsilon: training.calibrate(
      base, size, epsilon=epsilon, delta=config.delta
    )
  )
  first = for_epsilon(wanted[0].epsilon)
  noise = [for_epsilon(p.epsilon).noise_multiplier for p in wanted]
  penalty = training.parity_penalty(
    own.model, own.public.x, own.public.group,
    num_groups=own.people.num_groups, disparity=config.disparity,
    lam=jnp.nan_to_num(jnp.array([p.lam for p in wanted])),
    placement="inside" if inside else "after",
    sample=min(256, config.queries),
  )  # fmt: skip
  made = dataclasses.replace(
    first, noise_multiplier=jnp.array(noise), penalty=penalty
  )
  return training.fit_many(
    own.model, models.cross_entropy, own.private, made,
    keys=jnp.broadcast_to(key, (len(wanted),)), trainer=training.dp_sgd,
  ).params  # fmt: skip


def _rows(
  config: Config, own: Repetition, some: list[Point], params: Any, answered: Any
) -> Table:
  margins = [
    2.0 if p.method in settings.ANSWERS_ALL else p.max_gap for p in some
  ]
  found = students.measure(config, own, params, margins)
  answered = np.broadcast_to(answered, len(some))
  unknown = answered == 0  # nothing was learnt
  values = {
    name: np.where(unknown, np.nan, value)
    for name, value in found._asdict().items()
  }
  columns = {name: [getattr(p, name) for p in some] for name in Point._fields}
  names: dict[str, Any] = {"data": [own.people.name] * len(some)}
  return Table(names | columns | values | {"answered": answered})


def _same(tables: list[Table], value: Any) -> list[Any]:
  return [value] * sum(map(len, tables))


def _notes(config: Config) -> list[str]:
  return [
    "epsilon is a budget fixed beforehand, at delta "
    f"{config.delta:g}; no vote was looked at to tell it. For teachers it is "
    "about one person replaced by another, for DP-SGD about one added or "
    "removed.",
    "Labels refused as unfair are charged. The paper's epsilons are not: they "
    "charge nothing for them and are computed from the votes. At the same "
    "number its runs answer more.",
    "gap, accuracy and coverage are measured on held-out people who are "
    "answered within the margin; raw_gap and raw_accuracy on everybody. They "
    "have no noise and are for those who hold the data.",
    f"Intervals are over {config.seeds} splits with their own teachers, noise "
    "and students.",
  ]


STUDY = protocol.Study(
  name="fairpate",
  summary="Epsilon, gap, accuracy, coverage of FairPATE and its rivals",
  config=Config,
  cells=settings.cells,
  run=run,
  derive=claims.named,
  notes=_notes,
  summaries=(
    Summary(
      "What each setting reaches",
      by=("method", "epsilon", "max_gap", "lam"),
      values=("gap", "accuracy", "coverage", "answered"),
    ),
    Summary(
      "Everybody answered: without abstention",
      by=("method", "epsilon", "max_gap", "lam"),
      values=("raw_gap", "raw_accuracy"),
    ),
  ),
  claims=claims.CLAIMS,
  figures=figures.FIGURES,
)

__all__ = ["STUDY", "Config", "Measured", "points", "trainings"]
