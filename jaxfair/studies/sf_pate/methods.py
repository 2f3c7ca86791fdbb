"""The four methods, and two without privacy, at every epsilon side by side.

Each gives stacked parameters, one model per epsilon. All start from theta*
and train the same model; all fair trainings have the same settings.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import data, models, pate, privacy, training
from jaxfair.fairness import constraints
from jaxfair.pate import attribute, sf_votes
from jaxfair.studies.sf_pate import common
from jaxfair.training import ensembles
from jaxfair.types import Examples, Params

LOSS = models.cross_entropy
SF_S, SF_T = "SF_S-PATE", "SF_T-PATE"
M, M_CORRECTED, PF_LD = "M", "M, corrected", "PF-LD"
PLAIN, FAIR = "plain", "fair, not private"
Method = Callable[[common.Config, data.Dataset, common.Repetition], Params]


def fair_student(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """SF_S: teachers vote on groups; fair students of noisy groups."""
  counts, rows, key = group_counts(config, people, split, config.teachers)
  queries = split.train.take(rows)
  voted = _noisy(counts, common.sigmas(config), key)
  return _fair_students(
    config, people, split, queries._replace(group=voted), 2 * config.proximity
  )


def fair_teachers(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """SF_T: fair teachers vote on labels; plain students of noisy labels."""
  keys = jax.random.split(jax.random.fold_in(split.key, 2), 5)
  parts = attribute.deal(
    split.train, config.teachers, num_groups=people.num_groups, key=keys[0]
  )
  rows = attribute.draw_queries(split.train.size, config.queries, key=keys[1])
  queries = split.train.take(rows)
  notion = common.notion_of(config, people)
  counts = sf_votes.label_votes(
    common.teacher_of(config, people, people.num_classes), LOSS, parts,
    queries.x, _teacher(config, notion), num_classes=people.num_classes,
    key=keys[2],
  )  # fmt: skip
  voted = _noisy(counts, common.sigmas(config), keys[3])
  settings = dataclasses.replace(
    common.plain(
      config, config.rounds * config.steps_per_round, config.queries
    ),
    proximity=2 * config.proximity,
  )
  nobody = jnp.zeros(config.queries, jnp.int32)
  return training.fit_many(
    common.model_of(config, people), LOSS, Examples(queries.x, voted, nobody),
    settings, keys=_same(keys[4], len(config.epsilons)),
    trainer=ensembles.Untraced(training.fit),
    stacked=Examples(False, True, False),
    initial=_repeated(split.plain, len(config.epsilons)), anchor=split.plain,
  ).params  # fmt: skip


def randomised(
  config: common.Config,
  people: data.Dataset,
  split: common.Repetition,
  *,
  mend: bool = False,
) -> Params:
  """M: everybody's group by randomised response; fair training on all."""
  key = jax.random.fold_in(split.key, 3)
  keys = jax.random.split(key, len(config.epsilons))
  found = []
  for epsilon, own in zip(config.epsilons, keys, strict=True):
    reported = pate.randomised_groups(
      split.train, epsilon=epsilon, num_groups=people.num_groups, key=own
    ).examples
    notion = common.notion_of(config, people)
    if mend:
      matrix = privacy.response_matrix(
        epsilon=epsilon, num_categories=people.num_groups
      )
      notion = constraints.corrected(notion, matrix)
    found.append((reported.group, notion))
  if not mend:
    voted = jnp.stack([jnp.asarray(group) for group, _ in found])
    return _fair_students(
      config, people, split, split.train._replace(group=voted), 0.0
    )
  # The correction is part of the program: one for each epsilon.
  fits = [
    training.lagrangian(
      common.model_of(config, people), LOSS,
      split.train._replace(group=jnp.asarray(group)),
      common.fair(config, notion, split.train.size),
      key=jax.random.fold_in(split.key, 9), initial=split.plain,
    ).params
    for group, notion in found
  ]  # fmt: skip
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fits)


def mended(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """M with the known noise taken out of the groups' means."""
  return randomised(config, people, split, mend=True)


def private_lagrangian(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """PF-LD: clipped and noised constraints, on everybody."""
  made = [
    private_config(config, people, split.train.size, epsilon)
    for epsilon in config.epsilons
  ]
  names = ("noise_multiplier", "dual_noise", "count_noise")
  noises: dict[str, Any] = {
    name: np.array([getattr(one, name) for one in made], np.float32)
    for name in names
  }
  return training.fit_many(
    common.model_of(config, people), LOSS, split.train,
    dataclasses.replace(made[0], **noises),
    keys=jax.random.split(jax.random.fold_in(split.key, 4), len(made)),
    trainer=training.private_lagrangian,
    initial=_repeated(split.plain, len(made)),
  ).params  # fmt: skip


def plain(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """theta*, for comparison: private, and not fair."""
  del people
  return _repeated(split.plain, len(config.epsilons))


def fair(
  config: common.Config, people: data.Dataset, split: common.Repetition
) -> Params:
  """Fair training with everybody's own group, for comparison: not private."""
  # As many as there are epsilons, all alike: M's program serves for both.
  own = jnp.broadcast_to(
    split.train.group, (len(config.epsilons), split.train.size)
  )
  return _fair_students(
    config, people, split, split.train._replace(group=own), 0.0
  )


METHODS: dict[str, Method] = {
  SF_S: fair_student,
  SF_T: fair_teachers,
  M: randomised,
  M_CORRECTED: mended,
  PF_LD: private_lagrangian,
  PLAIN: plain,
  FAIR: fair,
}


def group_counts(
  config: common.Config,
  people: data.Dataset,
  split: common.Repetition,
  teachers: int,
) -> tuple[np.ndarray, np.ndarray, jax.Array]:
  """[m, G] votes of so many teachers, the queries' rows, a key for noise."""
  keys = jax.random.split(jax.random.fold_in(split.key, 1), 4)
  parts = attribute.deal(
    split.train, teachers, num_groups=people.num_groups, key=keys[0]
  )
  rows = attribute.draw_queries(split.train.size, config.queries, key=keys[1])
  counts = sf_votes.group_votes(
    common.teacher_of(config, people, people.num_groups), LOSS, parts,
    split.train.x[rows],
    training.FitConfig(
      learning_rate=config.teacher_rate, steps=config.teacher_steps,
      batch_size=None,
    ),
    num_groups=people.num_groups, key=keys[2],
  )  # fmt: skip
  return counts, rows, keys[3]


def private_config(
  config: common.Config, people: data.Dataset, size: int, epsilon: float
) -> training.PrivateLagrangianConfig:
  """PF-LD's settings at an epsilon."""
  return training.PrivateLagrangianConfig(
    learning_rate=config.learning_rate, dual_rate=config.dual_rate,
    tolerance=config.tolerance, l2_clip=config.l2_clip,
    constraint=common.notion_of(config, people), rounds=config.rounds,
    steps_per_round=config.steps_per_round, batch_size=config.batch_size,
  ).calibrated(size, epsilon=epsilon, delta=config.delta)  # fmt: skip


def _teacher(
  config: common.Config, notion: constraints.Notion
) -> training.LagrangianConfig:
  """As many steps as a plain teacher, on the whole part."""
  rounds = max(1, config.teacher_steps // config.teacher_round)
  return training.LagrangianConfig(
    learning_rate=config.teacher_rate, dual_rate=config.dual_rate,
    rounds=rounds, tolerance=config.tolerance, constraint=notion,
    steps_per_round=config.teacher_round, batch_size=None,
  )  # fmt: skip


def _fair_students(
  config: common.Config,
  people: data.Dataset,
  split: common.Repetition,
  queries: Examples,
  proximity: float,
) -> Params:
  """One fair student for each row of groups, started alike."""
  count = len(queries.group)
  notion = common.notion_of(config, people)
  settings = common.fair(config, notion, queries.x.shape[0])
  return training.fit_many(
    common.model_of(config, people), LOSS, queries,
    dataclasses.replace(settings, proximity=proximity),
    keys=_same(jax.random.fold_in(split.key, 9), count),
    stacked=Examples(False, False, True), trainer=training.lagrangian,
    initial=_repeated(split.plain, count),
    anchor=split.plain if proximity else None,
  ).params  # fmt: skip


def _noisy(counts: np.ndarray, sigmas: Any, key: jax.Array) -> jax.Array:
  """[epsilons, m] noisy answers."""
  return _answers(counts, np.asarray(sigmas, np.float32), key)


@jax.jit
def _answers(counts: Any, sigmas: jax.Array, key: jax.Array) -> jax.Array:
  keys = jax.random.split(key, len(sigmas))

  def one(sigma: Any, key: jax.Array) -> jax.Array:
    return pate.gnmax(counts, sigma=sigma, key=key, continuous=True)

  return jax.vmap(one)(sigmas, keys)


def _same(key: jax.Array, count: int) -> jax.Array:
  """Students that differ by their labels alone."""
  return jnp.broadcast_to(key, (count,))


def _repeated(params: Params, count: int) -> Params:
  return jax.tree.map(
    lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), params
  )
