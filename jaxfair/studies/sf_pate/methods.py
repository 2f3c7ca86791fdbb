"""The four methods, and two without privacy, at every epsilon side by side.

Each gives stacked parameters, one model per epsilon. All start from theta*
and train the same model; all fair trainings have the same settings.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import pate, privacy, training, tree
from jaxfair.fairness import constraints
from jaxfair.pate import _attribute, _sf_votes
from jaxfair.studies.sf_pate.common import LOSS, Config, Repetition
from jaxfair.training import _ensembles
from jaxfair.types import Examples, Params

SF_S, SF_T = "SF_S-PATE", "SF_T-PATE"
M, M_CORRECTED, PF_LD = "M", "M, corrected", "PF-LD"
PLAIN, FAIR = "plain", "fair, not private"
Method = Callable[[Repetition], Params]


def fair_student(split: Repetition) -> Params:
  """SF_S: teachers vote on groups; fair students of noisy groups."""
  config = split.config
  counts, rows, key = group_counts(split, config.teachers)
  voted = split.train.take(rows)._replace(group=_noisy(config, counts, key))
  return _fair_students(split, voted, 2 * config.proximity)


def fair_teachers(split: Repetition) -> Params:
  """SF_T: fair teachers vote on labels; plain students of noisy labels."""
  config, classes = split.config, split.people.num_classes
  parts, rows, keys = _dealt(split, config.teachers, 2, 5)
  x = split.train.take(rows).x
  # As many steps as a plain teacher, on the whole part.
  settings = training.LagrangianConfig(
    batch_size=None,
    **split.constrained(
      learning_rate=config.teacher_rate,
      rounds=max(1, config.teacher_steps // config.teacher_round),
      steps_per_round=config.teacher_round,
    ),
  )
  teacher = config.network(classes, teacher=True)
  counts = _sf_votes.label_votes(
    teacher, LOSS, parts, x, settings, num_classes=classes, key=keys[2]
  )
  voted, nobody = _noisy(config, counts, keys[3]), jnp.zeros(len(x), jnp.int32)
  steps = config.rounds * config.steps_per_round
  return training.fit_many(
    split.model,
    LOSS,
    Examples(x, voted, nobody),
    config.fit(steps, config.queries, proximity=2 * config.proximity),
    trainer=_ensembles.Untraced(training.fit),
    stacked=Examples(False, True, False),
    anchor=split.plain,
    **_started_alike(split, keys[4]),
  ).params


def randomised(split: Repetition, *, mend: bool = False) -> Params:
  """M: everybody's group by randomised response; fair training on all.

  Args:
    split: the repetition.
    mend: take the known noise out of the groups' means.
  """
  train, epsilons = split.train, split.config.epsilons
  keys = jax.random.split(jax.random.fold_in(split.key, 3), len(epsilons))
  groups = split.people.num_groups
  reported = [
    pate.randomised_groups(train, epsilon=one, num_groups=groups, key=key)
    for one, key in zip(epsilons, keys, strict=True)
  ]
  voted = [jnp.asarray(one.examples.group) for one in reported]
  if not mend:
    people = train._replace(group=jnp.stack(voted))
    return _fair_students(split, people, 0.0)
  # The correction is part of the program: one for each epsilon.
  fits = []
  for epsilon, group in zip(epsilons, voted, strict=True):
    matrix = privacy.response_matrix(epsilon=epsilon, num_categories=groups)
    notion = constraints.corrected(split.notion, matrix)
    fit = training.lagrangian(
      split.model,
      LOSS,
      train._replace(group=group),
      split.fair(train.size, constraint=notion),
      key=jax.random.fold_in(split.key, 9),
      initial=split.plain,
    )
    fits.append(fit.params)
  return tree.stack(fits)


def private_lagrangian(split: Repetition) -> Params:
  """PF-LD: clipped and noised constraints, on everybody."""
  made = [private_config(split, one) for one in split.config.epsilons]
  names = ("noise_multiplier", "dual_noise", "count_noise")
  noises: dict[str, Any] = {
    name: np.array([getattr(one, name) for one in made], np.float32) for name in names
  }
  return training.fit_many(
    split.model,
    LOSS,
    split.train,
    dataclasses.replace(made[0], **noises),
    keys=jax.random.split(jax.random.fold_in(split.key, 4), len(made)),
    trainer=training.private_lagrangian,
    initial=plain(split),
  ).params


def plain(split: Repetition) -> Params:
  """theta*, for comparison: private, and not fair."""
  count = len(split.config.epsilons)
  return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), split.plain)


def fair(split: Repetition) -> Params:
  """Fair training with everybody's own group, for comparison: not private."""
  # As many as there are epsilons, all alike: M's program serves for both.
  shape = (len(split.config.epsilons), split.train.size)
  group = jnp.broadcast_to(split.train.group, shape)
  return _fair_students(split, split.train._replace(group=group), 0.0)


METHODS: dict[str, Method] = {
  SF_S: fair_student,
  SF_T: fair_teachers,
  M: randomised,
  M_CORRECTED: functools.partial(randomised, mend=True),
  PF_LD: private_lagrangian,
  PLAIN: plain,
  FAIR: fair,
}


def group_counts(split: Repetition, teachers: int) -> tuple[np.ndarray, np.ndarray, jax.Array]:
  """[m, G] votes of this many teachers, the queries' rows, a key for noise."""
  config, groups = split.config, split.people.num_groups
  parts, rows, keys = _dealt(split, teachers, 1, 4)
  steps = config.teacher_steps
  counts = _sf_votes.group_votes(
    config.network(groups, teacher=True),
    LOSS,
    parts,
    split.train.x[rows],
    training.FitConfig(config.teacher_rate, steps=steps, batch_size=None),
    num_groups=groups,
    key=keys[2],
  )
  return counts, rows, keys[3]


def private_config(split: Repetition, epsilon: float) -> training.PrivateLagrangianConfig:
  """PF-LD's settings at an epsilon."""
  config = split.config
  return training.PrivateLagrangianConfig(
    l2_clip=config.l2_clip, batch_size=config.batch_size, **split.constrained()
  ).calibrated(split.train.size, epsilon=epsilon, delta=config.delta)


def _dealt(
  split: Repetition, teachers: int, purpose: int, count: int
) -> tuple[Any, np.ndarray, jax.Array]:
  """The teachers' parts, the queries' rows, and keys; two of them are used."""
  keys = jax.random.split(jax.random.fold_in(split.key, purpose), count)
  train, groups = split.train, split.people.num_groups
  parts = _attribute.deal(train, teachers, num_groups=groups, key=keys[0])
  asked = split.config.queries
  rows = _attribute.draw_queries(train.size, asked, key=keys[1])
  return parts, rows, keys


def _fair_students(split: Repetition, people: Examples, proximity: float) -> Params:
  """One fair student for each row of groups, started alike."""
  settings = split.fair(people.x.shape[0])
  return training.fit_many(
    split.model,
    LOSS,
    people,
    dataclasses.replace(settings, proximity=proximity),
    stacked=Examples(False, False, True),
    trainer=training.lagrangian,
    anchor=split.plain if proximity else None,
    **_started_alike(split, jax.random.fold_in(split.key, 9)),
  ).params


def _started_alike(split: Repetition, key: jax.Array) -> dict[str, Any]:
  """Students that differ by their labels or groups alone."""
  keys = jnp.broadcast_to(key, (len(split.config.epsilons),))
  return {"keys": keys, "initial": plain(split)}


def _noisy(config: Config, counts: np.ndarray, key: jax.Array) -> jax.Array:
  """[epsilons, m] noisy answers."""
  return _answers(counts, np.asarray(config.sigmas, np.float32), key)


@jax.jit
def _answers(counts: Any, sigmas: jax.Array, key: jax.Array) -> jax.Array:
  keys = jax.random.split(key, len(sigmas))

  def one(sigma: Any, key: jax.Array) -> jax.Array:
    return pate.gnmax(counts, sigma=sigma, key=key, continuous=True)

  return jax.vmap(one)(sigmas, keys)
