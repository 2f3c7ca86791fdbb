"""Students of noisy votes beside those of clean ones.

Students of one repetition share their start and batches, so that they differ
by their labels alone; a mean over draws of noise estimates the papers'
expectations. All students of a repetition are one program.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import experiments as ex
from jaxfair import models, pate, tree
from jaxfair.analysis._by_group import mean_by_group
from jaxfair.experiments import _study
from jaxfair.experiments._measures import EVERYONE, beside_constant
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate.ensembles import Ensemble
from jaxfair.types import Examples, Model, Params

# The settings of some students, the students, and who measures them.
Compared = tuple[Sequence[Mapping[str, Any]], Params, Examples]
CLEAN, NOISY = "clean", "noisy"  # votes that students learn from


def majority_weights(ensemble: Ensemble) -> jax.Array:
  """[m, C] one-hot plurality labels."""
  return jax.nn.one_hot(ensemble.majority, ensemble.counts.shape[1])


def hard_labels(ensemble: Ensemble, sigmas: Any, draws: int, *, key: jax.Array) -> jax.Array:
  """[S, draws, m, C] one-hot noisy labels, for [S] sigmas."""
  ids = _drawn(pate.gnmax, ensemble, sigmas, draws, key)
  return jax.nn.one_hot(ids, ensemble.counts.shape[1])


def soft_labels(ensemble: Ensemble, sigmas: Any, draws: int, *, key: jax.Array) -> jax.Array:
  """[S, draws, m, C] noisy shares of the votes, raw, for [S] sigmas."""
  return _drawn(pate.soft_labels, ensemble, sigmas, draws, key)


def students(
  config: es.EnsembleConfig,
  model: Model,
  ensemble: Ensemble,
  clean: Any,
  noisy: Any,
  penalties: Sequence[float],
) -> Params:
  """Trains all students of a repetition, settings and draws, as one program.

  sum_x sum_c a_c(x) l(f(x), c) + penalty ||theta||^2, over the queries

  Args:
    config: settings.
    model: model of the students.
    ensemble: the repetition.
    clean: [S, m, C] weights a of the classes without noise; S is 1 if all
      settings have the same labels.
    noisy: [S, D, m, C] weights with noise.
    penalties: lambda of each setting. The objective is the sum of equation
      (1) of the paper; its Theorem 1 is about the mean instead.

  Returns:
    Parameters with leading axes [settings, 1 + D], without noise first.
  """
  labels = jnp.concatenate([clean[:, None], noisy], axis=1)
  shape, size = (len(penalties), labels.shape[1]), labels.shape[2]
  labels = jnp.broadcast_to(labels, (*shape, *labels.shape[2:]))
  decay = jnp.repeat(2 * jnp.asarray(penalties) / size, shape[1])
  fitted = pate.train_student(
    model,
    models.cross_entropy,
    ensemble.public.x,
    labels.reshape(-1, *labels.shape[2:]),
    config.fit(config.student_steps, size, weight_decay=decay),
    keys=jnp.broadcast_to(ensemble.key, decay.shape),
  )
  return jax.tree.map(lambda a: a.reshape(*shape, *a.shape[1:]), fitted.params)


def penalty_students(
  config: es.PenaltyConfig, model: Model, ensemble: Ensemble, *others: Any
) -> Params:
  """[penalties, 1 + D + others] students of the same labels.

  Each of `others` is the [m, C] weights of a further student.
  """
  noisy = hard_labels(ensemble, [config.sigma], config.draws, key=ensemble.key_noise)
  labels = jnp.concatenate([noisy, *(one[None, None] for one in others)], 1)
  clean = majority_weights(ensemble)[None]
  return students(config, model, ensemble, clean, labels, config.penalties)


def compare_on_splits(
  config: es.EnsembleConfig,
  cell: _study.Cell,
  context: _study.Context,
  train: Callable[[Model, Ensemble], Iterable[Compared]],
) -> ex.Table:
  """What noise does to the students that `train` yields, on every split."""
  people, made = es.repetitions(config, cell, context)
  model = config.network(people)
  tables: list[ex.Table] = []
  for seed, ensemble in enumerate(made):
    for settings, trained, test in train(model, ensemble):
      told = [{**cell, **setting, "seed": seed} for setting in settings]
      errors, learnt = measured(model, trained, test, people.num_groups)
      moved = distances(trained)
      tables += comparison_rows(told, errors, learnt, moved, people.group_names)
  return ex.Table.concat(tables)


def comparison_rows(
  settings: Sequence[Mapping[str, Any]],
  errors: Any,
  learnt: Mapping[str, Any],
  deviations: Any,
  group_names: Sequence[str],
) -> Iterator[ex.Table]:
  """Rows of the student of clean votes and of those of noisy votes, in 0/1 loss.

  One row per setting and group, and one for everyone with the gap.

  Args:
    settings: S of them, columns of the rows.
    errors: [S, 1 + D, G + 1] shares of wrong predictions by group, and of
      everyone; the student without noise first, then D with noise.
    learnt: [S, 1 + D] of each measure that tells a model from a constant.
    deviations: [S, D] distances of the noisy students from the first.
    group_names: G of them.
  """
  errors = np.asarray(errors, np.float64)
  excess, nobody = errors[:, 1:] - errors[:, :1], [np.nan] * len(group_names)
  for i, setting in enumerate(settings):
    moved = {
      "gap": cross_fitted_gap(excess[i, :, :-1]),
      "deviation": np.asarray(deviations[i], np.float64).mean(),
    }
    for votes, own in ((CLEAN, slice(0, 1)), (NOISY, slice(1, None))):
      of_all = {
        name: np.asarray(value, np.float64)[i, own].mean() for name, value in learnt.items()
      }
      values = {"accuracy": 1 - errors[i, own].mean(0)}
      if votes == NOISY:
        of_all, values = of_all | moved, values | {"excess_errors": excess[i].mean(0)}
      values |= {name: [*nobody, value] for name, value in of_all.items()}
      yield ex.Table.from_arrays(
        {**setting, "votes": votes}, {"group": [*group_names, EVERYONE]}, values
      )


def cross_fitted_gap(excess: np.ndarray) -> float:
  """The largest difference between groups' mean excess risks.

  xi = max_{a, a'} R(a) - R(a')

  Which groups are furthest apart is decided on every other draw and measured
  on the rest, both ways round. The plain maximum would be above 0 by noise
  alone, and more so where the noise is larger.

  Args:
    excess: [draws, G] excess risks, at least two draws; NaN for empty groups.

  Returns:
    An estimate that is xi on average where the groups are told apart, and 0
    where they are equal; it may fall below 0.
  """
  halves = excess[::2].mean(0), excess[1::2].mean(0)
  if np.isfinite(halves[0]).sum() < 2:
    return float("nan")
  gaps = [
    measured[np.nanargmax(chosen)] - measured[np.nanargmin(chosen)]
    for chosen, measured in (halves, halves[::-1])
  ]
  return float(np.mean(gaps))


def _drawn(
  rule: Callable[..., jax.Array], ensemble: Ensemble, sigmas: Any, draws: int, key: jax.Array
) -> jax.Array:
  def one(sigma: Any, key: jax.Array) -> jax.Array:
    return rule(ensemble.counts, sigma=sigma, key=key, continuous=True)

  sigmas = jnp.asarray(sigmas, jnp.float32)
  keys = jax.random.split(key, (len(sigmas), draws))
  return jax.vmap(jax.vmap(one, (None, 0)))(sigmas, keys)


@functools.partial(jax.jit, static_argnames=("model", "num_groups"))
def measured(
  model: Model, trained: Params, test: Examples, num_groups: int
) -> tuple[jax.Array, dict[str, jax.Array]]:
  """Errors [S, 1 + D, G + 1] of [S, 1 + D] students, and how far each is from a constant."""

  def one(params: Params) -> tuple[jax.Array, dict[str, jax.Array]]:
    logits = model.apply(params, test.x)
    wrong = mean_by_group(models.zero_one(logits, test.y), test.group, num_groups)
    constant = beside_constant(test.y, jnp.argmax(logits, -1), logits.shape[-1])
    return jnp.append(wrong.group, wrong.population), constant

  return jax.lax.map(lambda own: jax.lax.map(one, own, batch_size=8), trained)


@jax.jit
def distances(trained: Params) -> jax.Array:
  """[S, D] distances of [S, 1 + D] models from the first of their row."""
  first = jax.tree.map(lambda a: a[:, :1], trained)
  rest = jax.tree.map(lambda a: a[:, 1:], trained)
  return jax.vmap(jax.vmap(tree.norm))(tree.subtract(rest, first))
