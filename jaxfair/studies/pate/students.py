"""Students of noisy votes beside those of clean ones, for the PATE figures.

Students of one repetition share start and batches, so that they differ by
their labels alone; a mean over draws of noise estimates the papers'
expectations. All students of a repetition are one program.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import models, pate, tree
from jaxfair.analysis import ByGroup, mean_by_group
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies.pate.ensembles import (
  Ensemble,
  EnsembleConfig,
  PenaltyConfig,
  fit_config,
)
from jaxfair.types import Examples, Model, Params


class Comparison(NamedTuple):
  """Students of S settings: the one without noise first, then D with noise.

  Attributes:
    errors: [S, 1 + D] and [S, 1 + D, G] shares of wrong predictions.
    losses: likewise, mean cross-entropy.
    deviation: [S, D] distance of each noisy student from the first.
  """

  errors: ByGroup
  losses: ByGroup
  deviation: Any


def majority_weights(ensemble: Ensemble) -> jax.Array:
  """[m, C] one-hot plurality labels."""
  return jax.nn.one_hot(ensemble.majority, ensemble.counts.shape[1])


def hard_labels(
  ensemble: Ensemble, sigmas: Any, draws: int, *, key: jax.Array
) -> jax.Array:
  """[S, draws, m, C] one-hot noisy labels, for [S] sigmas."""
  num_classes = ensemble.counts.shape[1]

  def one(sigma: Any, key: jax.Array) -> jax.Array:
    labels = pate.gnmax(ensemble.counts, sigma=sigma, key=key, continuous=True)
    return jax.nn.one_hot(labels, num_classes)

  return _drawn(one, sigmas, draws, key)


def soft_labels(
  ensemble: Ensemble, sigmas: Any, draws: int, *, key: jax.Array
) -> jax.Array:
  """[S, draws, m, C] noisy shares of the votes, raw, for [S] sigmas."""

  def one(sigma: Any, key: jax.Array) -> jax.Array:
    return pate.soft_labels(
      ensemble.counts, sigma=sigma, key=key, continuous=True
    )

  return _drawn(one, sigmas, draws, key)


def students(
  config: EnsembleConfig,
  model: Model,
  ensemble: Ensemble,
  clean: Any,
  noisy: Any,
  penalties: Any,
) -> Params:
  """Trains all students of a repetition, settings and draws, as one program.

  sum_x sum_c a_c(x) l(f(x), c) + penalty ||theta||^2, over the queries

  Args:
    config: settings.
    model: of the students.
    ensemble: the repetition.
    clean: [S, m, C] weights a of the classes without noise.
    noisy: [S, D, m, C] weights with noise.
    penalties: [S] lambdas. The objective is the sum of equation (1) of the
      paper; its Theorem 1 is about the mean instead.

  Returns:
    Parameters with leading axes [S, 1 + D]; the first of each row learnt
    without noise.
  """
  labels = jnp.concatenate([clean[:, None], noisy], axis=1)
  shape, size = labels.shape[:2], labels.shape[2]
  decay = jnp.repeat(2 * jnp.asarray(penalties) / size, shape[1])
  settings = fit_config(config, config.student_steps, size)
  fitted = pate.train_student(
    model,
    models.cross_entropy,
    ensemble.public.x,
    labels.reshape(-1, *labels.shape[2:]),
    dataclasses.replace(settings, weight_decay=decay),
    keys=jnp.broadcast_to(ensemble.key, decay.shape),
  )
  return jax.tree.map(lambda a: a.reshape(*shape, *a.shape[1:]), fitted.params)


def penalty_students(
  config: PenaltyConfig, model: Model, ensemble: Ensemble, noisy: Any
) -> Params:
  """`students` of the same labels at every penalty.

  Args:
    config: settings.
    model: of the students.
    ensemble: the repetition.
    noisy: [1, D, m, C] weights with noise, the same for all penalties: they
      differ by the penalty alone.

  Returns:
    Parameters with leading axes [penalties, 1 + D].
  """
  count = len(config.penalties)
  return students(
    config,
    model,
    ensemble,
    jnp.stack([majority_weights(ensemble)] * count),
    jnp.repeat(noisy, count, axis=0),
    config.penalties,
  )


def compare(
  model: Model, trained: Params, test: Examples, num_groups: int
) -> Comparison:
  """What noise does to the students of `students`, on held-out people."""
  found = _compared(model, trained, test, num_groups)
  return jax.tree.map(lambda a: np.asarray(a, np.float64), found)


def comparison_rows(
  settings: Sequence[Mapping[str, Any]],
  found: Comparison,
  *,
  seed: int,
  group_names: Sequence[str],
) -> Table:
  """One row per setting and group, and one for everyone with the gaps."""
  names = [*group_names, EVERYONE]
  errors, losses = (
    np.concatenate([risk.group, risk.population[..., None]], -1)
    for risk in (found.errors, found.losses)
  )
  tables = []
  for i, setting in enumerate(settings):
    nobody = np.full(len(group_names), np.nan)
    added = {
      "excess_errors": errors[i, 1:] - errors[i, 0],
      "excess_loss": losses[i, 1:] - losses[i, 0],
    }
    of_all = {
      "gap": cross_fitted_gap(added["excess_errors"][:, :-1]),
      "loss_gap": cross_fitted_gap(added["excess_loss"][:, :-1]),
      "deviation": found.deviation[i].mean(),
    }
    values = {
      "accuracy": 1 - errors[i, 1:].mean(0),
      "clean_accuracy": 1 - errors[i, 0],
      **{name: value.mean(0) for name, value in added.items()},
      **{name: np.append(nobody, value) for name, value in of_all.items()},
    }
    axes: dict[str, Sequence[Any]] = {"seed": [seed], "group": names}
    rows = {name: value[None] for name, value in values.items()}
    tables.append(Table.from_arrays(setting, axes, rows))
  return Table.concat(tables)


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


def _drawn(one: Any, sigmas: Any, draws: int, key: jax.Array) -> jax.Array:
  sigmas = jnp.asarray(sigmas, jnp.float32)
  keys = jax.random.split(key, (len(sigmas), draws))
  return jax.vmap(jax.vmap(one, (None, 0)))(sigmas, keys)


@functools.partial(jax.jit, static_argnames=("model", "num_groups"))
def _compared(
  model: Model, trained: Params, test: Examples, num_groups: int
) -> Comparison:
  def risks(params: Params) -> tuple[ByGroup, ByGroup]:
    logits = model.apply(params, test.x)
    errors, losses = (
      mean_by_group(loss(logits, test.y), test.group, num_groups)
      for loss in (models.zero_one, models.cross_entropy)
    )
    return errors, losses

  def row(own: Params) -> tuple[ByGroup, ByGroup]:
    return jax.lax.map(risks, own, batch_size=8)

  errors, losses = jax.lax.map(row, trained)
  first = jax.tree.map(lambda a: a[:, :1], trained)
  noisy = jax.tree.map(lambda a: a[:, 1:], trained)
  moved = tree.subtract(noisy, first)
  return Comparison(errors, losses, jax.vmap(jax.vmap(tree.norm))(moved))
