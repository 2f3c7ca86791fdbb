"""From votes to students: every method's labels, trained and measured."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, models, pate, training
from jaxfair.fairness import CounterRule, admit_in_order, demographic_disparity
from jaxfair.pate import NO_ANSWER
from jaxfair.studies.fairpate.config import (
  OneThreshold,
  Repetition,
  fit_config,
)
from jaxfair.types import Examples, Model, Params


class Point(NamedTuple):
  """One setting of one method; NaN for what the method does not have."""

  method: str
  epsilon: float
  max_gap: float = np.nan
  lam: float = np.nan


def labels_of(
  config: OneThreshold, own: Repetition, point: Point, *, key: jax.Array
) -> np.ndarray:
  """[n] labels that the method's student learns from, within epsilon.

  All methods share the key: where they ask the same, they hear the same.
  """
  rho = accounting.zcdp_budget(epsilon=point.epsilon, delta=config.delta)
  judged = point.method.startswith("fairpate")
  found = _ask(
    own.counts, own.public.group, point.max_gap if judged else 2.0, rho, key,
    _Query(
      own.people.num_groups, config.threshold, config.sigma_threshold,
      config.sigma_answer, config.min_count, config.disparity, config.guard,
      "allowed" if point.method == "fairpate_allowed" else "any",
    ),
  )  # fmt: skip
  labels = found.labels
  if point.method == "pate_s_pre":  # what was paid for is filtered afterwards
    labels = admit_in_order(
      labels, own.public.group, config.rule(point.max_gap),
      num_groups=own.people.num_groups, num_classes=own.people.num_classes,
    ).labels  # fmt: skip
  return np.asarray(labels)


def train_students(
  config: OneThreshold,
  own: Repetition,
  labels: np.ndarray,
  *,
  steps: int,
  lams: Any = None,
  key: jax.Array,
) -> Params:
  """One student for each row of labels [S, n]; with a penalty if lams [S].

  All start alike and see the same batches. One without a single label learns
  that everybody is of class 0; its rows are left empty afterwards.
  """
  nobody = (labels == NO_ANSWER).all(axis=1)
  labels = np.where(nobody[:, None], 0, labels)
  settings = fit_config(config, steps, labels.shape[1])
  if lams is not None:
    penalty = training.parity_penalty(
      own.model, own.public.x, own.public.group,
      num_groups=own.people.num_groups, lam=jnp.asarray(lams, jnp.float32),
      disparity=config.disparity, sample=min(256, labels.shape[1]),
    )  # fmt: skip
    settings = training.FitConfig(**{**vars(settings), "penalty": penalty})
  return pate.train_student(
    own.model, models.cross_entropy, own.public.x, labels, settings,
    keys=jnp.broadcast_to(key, labels.shape[:1]),
  ).params  # fmt: skip


def calibrated(
  config: OneThreshold,
  own: Repetition,
  params: Params,
  lams: Any,
  *,
  key: jax.Array,
) -> Params:
  """[S] students, each mended on the public people with its lam.

  All see the same batches.
  """

  def one(pair: Any) -> Params:
    mine, lam = pair
    return training.calibrate_fairness(
      own.model, mine, own.public.x, own.public.group,
      num_groups=own.people.num_groups, lam=lam, disparity=config.disparity,
      learning_rate=config.learning_rate, key=key,
    ).params  # fmt: skip

  return jax.lax.map(one, (params, jnp.asarray(lams, jnp.float32)))


class Measured(NamedTuple):
  """What a model does to the test people, answering all or abstaining.

  Attributes:
    accuracy: of those answered.
    gap: largest disparity of those answered.
    coverage: share of people answered.
    raw_accuracy: of everybody.
    raw_gap: of everybody.
  """

  accuracy: Any
  gap: Any
  coverage: Any
  raw_accuracy: Any
  raw_gap: Any


def measure(
  config: OneThreshold, own: Repetition, params: Params, max_gaps: Any
) -> Measured:
  """[S] measures of models [S], each abstaining by its own margin.

  A margin of 2 is none: nobody is refused.
  """
  found = _measured(
    own.model, params, own.test, jnp.asarray(max_gaps, jnp.float32),
    config.rule(0.0), own.people.num_groups, own.people.num_classes,
  )  # fmt: skip
  return jax.tree.map(lambda a: np.asarray(a, np.float64), found)


class _Query(NamedTuple):
  """What fixes the program of a query phase."""

  num_groups: int
  threshold: float
  sigma_threshold: float
  sigma_answer: float
  min_count: int
  disparity: Any
  guard: Any
  choice: Any


@functools.partial(jax.jit, static_argnames=("query",))
def _ask(
  counts: Any, groups: Any, max_gap: Any, rho: Any, key: jax.Array,
  query: _Query,
) -> pate.FairAnswers:  # fmt: skip
  return pate.fair_gnmax(
    counts, groups, **query._asdict(), max_gap=max_gap, max_rho=rho, key=key
  )


@functools.partial(
  jax.jit, static_argnames=("model", "num_groups", "num_classes")
)
def _measured(
  model: Model, stacked: Params, test: Examples, max_gaps: jax.Array,
  rule: CounterRule, num_groups: int, num_classes: int,
) -> Measured:  # fmt: skip
  sizes: Any = {"num_groups": num_groups, "num_classes": num_classes}

  def gap(counters: jax.Array) -> jax.Array:
    table = demographic_disparity(
      counters, notion=rule.disparity, skip_empty=True
    )
    return jnp.nanmax(table)

  def one(own: Any) -> Measured:
    params, max_gap = own
    predicted = jnp.argmax(model.apply(params, test.x), -1).astype(jnp.int32)
    limits = jnp.stack([max_gap, jnp.asarray(2.0)])

    def ask(limit: jax.Array) -> Any:
      mine = CounterRule(limit, rule.min_count, rule.disparity, rule.guard)
      return admit_in_order(predicted, test.group, mine, **sizes)

    shown = jax.vmap(ask)(limits)
    right = jnp.mean(shown.labels == test.y, axis=1)
    covered = jnp.mean(shown.labels != NO_ANSWER, axis=1)
    accuracy, gaps = right / covered, jax.vmap(gap)(shown.counters)
    return Measured(accuracy[0], gaps[0], covered[0], accuracy[1], gaps[1])

  return jax.lax.map(one, (stacked, max_gaps), batch_size=16)
