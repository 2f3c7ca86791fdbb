"""Fine-tuning that holds the mask: what was removed stays removed.

The zeros of a pruned network are its mask, so an optimizer can read the mask
off the parameters that it starts from. It then serves every trainer, and one
compiled program serves every mask.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxfair import training
from jaxfair.pruning._masks import Masks, apply_masks
from jaxfair.training._optimizers import Optimizer
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss


def fine_tune(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: training.FitConfig,
  *,
  params: Params,
  masks: Masks,
  key: jax.Array,
) -> Fit:
  """Trains on from a pruned network, whose removed weights stay zero.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part.
    config: settings; its optimizer is wrapped by `hold_zeros`.
    params: the trained parameters; those that the masks remove are dropped.
    masks: from `magnitude_masks`.
    key: order of the batches.

  Returns:
    `Fit` with plain parameters, zero wherever a mask is False.
  """
  return training.fit(
    model, loss, examples, held(config), key=key, initial=apply_masks(params, masks)
  )


def held(config: Any) -> Any:
  """A trainer's config whose optimizer leaves pruned weights at zero."""
  return dataclasses.replace(config, optimizer=hold_zeros(config.optimizer))


@functools.cache
def hold_zeros(optimizer: Optimizer) -> Optimizer:
  """An optimizer that never moves what `masks_of` its start calls removed.

  Args:
    optimizer: `learning_rate -> optax.GradientTransformation`.

  Returns:
    Another one; the same argument gives the same object, so that programs are
    compiled once.
  """

  def make(learning_rate: Any) -> optax.GradientTransformation:
    inner = optimizer(learning_rate)

    def init(params: Params) -> _Held:
      return _Held(masks_of(params), inner.init(params))

    def update(gradient: Any, state: _Held, params: Params | None = None) -> tuple[Any, _Held]:
      updates, own = inner.update(_kept(gradient, state.masks), state.own, params)
      return _kept(updates, state.masks), _Held(state.masks, own)

    return optax.GradientTransformation(init, update)

  return make


def masks_of(params: Params) -> Masks:
  """Reads the masks off a pruned network.

  A weight of a matrix or a convolution is removed where it is exactly zero. A
  bias or a scale is removed only where it is zero and so is its whole filter;
  elsewhere zero is just its value.

  Args:
    params: parameters that were trained before they were pruned: matrices
      that start at zero would count as removed.
  """
  paths, treedef = jax.tree_util.tree_flatten_with_path(params)
  masks = []
  for path, leaf in paths:
    alive = jnp.asarray(leaf) != 0
    if alive.ndim < 2:
      fed = [
        jnp.any(jnp.asarray(other) != 0, axis=tuple(range(other.ndim - 1)))
        for place, other in paths
        if place[:-1] == path[:-1] and jnp.ndim(other) >= 2 and other.shape[-1:] == alive.shape
      ]
      # Without a matrix beside it there is no filter that could be gone.
      alive = alive | (functools.reduce(jnp.logical_or, fed) if fed else True)
    masks.append(alive)
  return jax.tree.unflatten(treedef, masks)


class _Held(NamedTuple):
  masks: Masks
  own: Any  # the optimizer's state


def _kept(values: Any, masks: Masks) -> Any:
  return jax.tree.map(
    lambda value, keep: jnp.where(keep, value, jnp.zeros_like(value)), values, masks
  )
