"""The methods that FairPATE is compared with: one table, and how they are trained."""

import dataclasses
import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, models, pate, training
from jaxfair.experiments._measures import beside_constant
from jaxfair.fairness import admit_in_order, demographic_disparity
from jaxfair.fairness._counter import Counted
from jaxfair.pate import NO_ANSWER
from jaxfair.studies.fairpate.common import Ensemble, Repetition
from jaxfair.types import Examples, Model, Params

NO_MARGIN = 2.0  # no disparity reaches it
Route: TypeAlias = Literal["plain", "penalized", "mended", "after", "inside"]
STUDENTS: tuple[Route, ...] = ("plain", "penalized", "mended")
ROUTES: tuple[Route, ...] = (*STUDENTS, "after", "inside")  # of DP-SGD


class Method(NamedTuple):
  """What sets a method apart.

  Attributes:
    route: how its models are trained; all models of a route are one program.
    fair_labels: whether the labels that it learns from keep the margin.
    abstains: whether it keeps the margin at inference, by abstaining.
    has_lam: whether it has a penalty on the disparity.
  """

  route: Route
  fair_labels: bool = False
  abstains: bool = False
  has_lam: bool = False


METHODS = {
  "pate": Method("plain"),
  "fairpate": Method("plain", fair_labels=True, abstains=True),
  "fairpate_allowed": Method("plain", fair_labels=True, abstains=True),
  "fairpate_calibrated": Method("mended", fair_labels=True, has_lam=True),
  "pate_s_pre": Method("plain", fair_labels=True, abstains=True),
  "pate_s_in": Method("penalized", abstains=True, has_lam=True),
  "dp_sgd": Method("after"),
  "fair_dp_sgd": Method("after", abstains=True, has_lam=True),
  "fair_dp_sgd_inside": Method("inside", abstains=True, has_lam=True),
}


class Point(NamedTuple):
  """One setting of one method; NaN for what the method does not have."""

  method: str
  epsilon: float
  max_gap: float = np.nan
  lam: float = np.nan

  @property
  def kind(self) -> Method:
    """The method's row of the table."""
    return METHODS[self.method]


class Measured(NamedTuple):
  """What a model does to the people it answers, `raw_` to everybody, and beside a constant."""

  accuracy: Any
  gap: Any
  coverage: Any
  raw_accuracy: Any
  raw_gap: Any
  constant: dict[str, Any]


def trainings(points: list[Point]) -> tuple[list[Point], np.ndarray]:
  """Points that are trained differently, and which of them each point is.

  Points that differ only in the margin of their abstention share a model.
  """
  alike = [p if p.kind.fair_labels else p._replace(max_gap=np.nan) for p in points]
  distinct = list(dict.fromkeys(alike))
  return distinct, np.array([distinct.index(p) for p in alike])


def labels_of(own: Repetition, threshold: float, point: Point, *, key: jax.Array) -> np.ndarray:
  """[n] labels within epsilon that the method's student learns from.

  All methods share the key: for the same question they get the same answer.
  """
  delta = own.config.delta
  rho = accounting.zcdp_budget(epsilon=point.epsilon, delta=delta)
  judged = point.method.startswith("fairpate")
  margin = point.max_gap if judged else NO_MARGIN
  choice: Any = "allowed" if point.method == "fairpate_allowed" else "any"
  labels = own.ask(threshold, margin, rho, choice=choice, key=key).labels
  if point.method == "pate_s_pre":  # labels that were paid for are filtered
    group, sizes = own.public.group, _sizes(own)
    labels = _admit(own.config, labels, group, point.max_gap, sizes).labels
  return np.asarray(labels)


def train_students(
  own: Repetition,
  labels: np.ndarray,
  steps: int,
  *,
  penalties: tuple[training.Penalty, ...] = (),
  key: jax.Array,
) -> Params:
  """One student for each row of labels [S, n].

  All start alike and see the same batches. A student without any label is
  trained on class 0; its results must be dropped.
  """
  nobody = (labels == NO_ANSWER).all(axis=1)
  labels = np.where(nobody[:, None], 0, labels)
  settings = own.config.fit(steps, labels.shape[1], penalties=penalties)
  keys, x = jnp.broadcast_to(key, labels.shape[:1]), own.public.x
  return pate.train_student(own.model, models.cross_entropy, x, labels, settings, keys=keys).params


def mend(own: Repetition, params: Params, lams: np.ndarray, *, key: jax.Array) -> Params:
  """[S] students, each calibrated on the public people with its lam."""
  calibrate = functools.partial(
    training.calibrate_fairness,
    x=own.public.x,
    group=own.public.group,
    num_groups=own.people.num_groups,
    disparity=own.config.disparity,
    learning_rate=own.config.learning_rate,
    key=key,
  )
  return jax.lax.map(
    lambda pair: calibrate(own.model, pair[0], lam=pair[1]).params,
    (params, jnp.asarray(lams, jnp.float32)),
  )


def train_privately(
  own: Repetition, epsilons: list[float], base: training.DpSgdConfig, *, key: jax.Array
) -> Params:
  """[S] models of DP-SGD, one for each epsilon; all see the same batches."""
  size, delta = own.private.size, own.config.delta
  made = {
    epsilon: training.calibrate(base, size, epsilon=epsilon, delta=delta)
    for epsilon in dict.fromkeys(epsilons)
  }
  noise = jnp.array([made[epsilon].noise_multiplier for epsilon in epsilons])
  return training.fit_many(
    own.model,
    models.cross_entropy,
    own.private,
    dataclasses.replace(made[epsilons[0]], noise_multiplier=noise),
    keys=jnp.broadcast_to(key, (len(epsilons),)),
    trainer=training.dp_sgd,
  ).params


def penalty_of(
  own: Repetition,
  lams: Any,
  *,
  placement: Literal["after", "inside"] = "after",
  sample: int | None = 256,
) -> training.Penalty:
  """The penalty on the disparity of public people, with a weight per model."""
  return training.parity_penalty(
    own.model,
    own.public.x,
    own.public.group,
    num_groups=own.people.num_groups,
    lam=jnp.nan_to_num(jnp.asarray(lams, jnp.float32)),
    disparity=own.config.disparity,
    placement=placement,
    sample=None if sample is None else min(sample, own.config.queries),
  )


def measure(own: Repetition, params: Params, points: list[Point]) -> Measured:
  """[S] measures of models [S], each abstaining by the margin of its point."""
  margins = jnp.array([p.max_gap if p.kind.abstains else NO_MARGIN for p in points], jnp.float32)
  fixed = (own.config, own.model, _sizes(own))
  found = _measured(*fixed, params, own.test, margins)
  return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), found)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _measured(
  config: Ensemble,
  model: Model,
  sizes: tuple[int, int],
  stacked: Params,
  test: Examples,
  margins: jax.Array,
) -> Measured:
  def largest(counters: jax.Array) -> jax.Array:
    notion = config.disparity
    gaps = demographic_disparity(counters, notion=notion, skip_empty=True)
    return jnp.nanmax(gaps)

  def one(own: tuple[Params, jax.Array]) -> Measured:
    params, margin = own
    predicted = jnp.argmax(model.apply(params, test.x), -1).astype(jnp.int32)
    shown = jax.vmap(lambda limit: _admit(config, predicted, test.group, limit, sizes))(
      jnp.stack([margin, jnp.asarray(NO_MARGIN)])
    )
    covered = jnp.mean(shown.labels != NO_ANSWER, axis=1)
    accuracy = jnp.mean(shown.labels == test.y, axis=1) / covered
    gaps = jax.vmap(largest)(shown.counters)
    constant = beside_constant(test.y, predicted, sizes[1])
    return Measured(accuracy[0], gaps[0], covered[0], accuracy[1], gaps[1], constant)

  return jax.lax.map(one, (stacked, margins), batch_size=16)


def _sizes(own: Repetition) -> tuple[int, int]:
  return own.people.num_groups, own.people.num_classes


def _admit(
  config: Ensemble, labels: Any, group: Any, max_gap: Any, sizes: tuple[int, int]
) -> Counted:
  counts = {"num_groups": sizes[0], "num_classes": sizes[1]}
  return admit_in_order(labels, group, config.rule(max_gap), **counts)
