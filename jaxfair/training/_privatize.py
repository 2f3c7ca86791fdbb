"""Noise and averaging as an optax transformation, for your own loop."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxfair import checks, tree
from jaxfair.privacy import noise
from jaxfair.types import Key, Number, Params, PyTree


class PrivatizeState(NamedTuple):
  """The key of this state alone, and the number of the next update."""

  key: jax.Array
  step: jax.Array


def privatize(
  *, sensitivity: Number, noise_multiplier: Number, expected_batch_size: float, key: Key
) -> optax.GradientTransformation:
  """Turns a clipped *sum* into a private mean, before any optimizer.

      gradient = privacy.clipped_grad(model, loss, l2_clip=1.0)
      optimizer = optax.chain(
        training.privatize(
          sensitivity=gradient.sensitivity, noise_multiplier=1.1,
          expected_batch_size=256, key=privacy.os_key(),
        ),
        optax.adam(1e-3),
      )
      updates, state = optimizer.update(gradient(params, batch).total, state)

  It must be first in a chain and see all parameters. The declared sensitivity is that of the
  clipped sum; after momentum (`optax.trace`), a scaling or a `MultiSteps` that sums, the input is
  something else, and the noise does not cover it. `optax.masked` and `multi_transform` would leave
  some parameters without noise; put them after it. `MultiSteps` around the whole chain accumulates
  before the noise: use it with `use_grad_mean=False`, on micro-batches of one batch, with each
  person in only one of them. Weight decay, schedules, momentum and `MultiSteps` after it are free.

  Args:
    sensitivity: sensitivity of the sum; `clipped_grad(...).sensitivity`.
    noise_multiplier: standard deviation of the noise over the sensitivity.
    expected_batch_size: public constant the sum is divided by; never the size of the batch at hand.
    key: for all updates of one state; each gets its own by its number.

  Returns:
    A transformation for one training: its `init` can be called once. To train
    many members, build one transformation for each, in the mapped function:
    `jax.vmap(lambda key: privatize(..., key=key).init(params))(keys)`.

  Raises:
    ArgumentError: by `init`, if it is called again, or traced although the key is not; by `update`,
      if it is mapped over sums that share one state. In each case two releases would have the same
      noise, and their difference none. By both, if some parameters are masked out.

  Privacy:
    Each update is a Gaussian mechanism of this multiplier. What it costs depends on how your loop
    samples its batches: `accounting.DpSgd` for Poisson sampling, `accounting.ShuffledDpSgd` for
    epochs. A state is used once: two updates of one state with different sums share their noise,
    which cannot be seen from here.
  """
  checks.positive("sensitivity", sensitivity)
  checks.non_negative("noise_multiplier", noise_multiplier)
  checks.positive("expected_batch_size", expected_batch_size)
  checks.one_key("key", key)
  calls = itertools.count()

  def init(params: Params) -> PrivatizeState:
    _check_whole(params)
    checks.require(
      checks.concrete(params) or not checks.concrete(key),
      "init of privatize is traced (jit, vmap, eval_shape), but its key is "
      "not: every call and member would draw the same noise; call init outside, or build the "
      "transformation inside with its own key",
    )
    checks.require(
      next(calls) == 0,
      "init of privatize was called before, and both states would draw the "
      "same noise; build another transformation with another key",
    )
    return PrivatizeState(key, jnp.zeros((), jnp.int32))

  def update(
    total: PyTree, state: PrivatizeState, params: Params | None = None
  ) -> tuple[Any, PrivatizeState]:
    del params
    _check_whole(total)
    noisy = noise.gaussian(
      total,
      sigma=noise_multiplier * sensitivity,
      key=_own_key(total, jax.random.fold_in(state.key, state.step)),
    )
    mean = tree.scale(1 / expected_batch_size, noisy)
    return mean, PrivatizeState(state.key, state.step + 1)

  return optax.GradientTransformation(init, update)


@jax.custom_batching.custom_vmap
def _own_key(total: PyTree, key: jax.Array) -> jax.Array:
  """The key; refuses to be mapped over sums that share it."""
  del total
  return key


@_own_key.def_vmap
def _own_key_of_each(
  size: int, mapped: PyTree, total: PyTree, key: jax.Array
) -> tuple[jax.Array, bool]:
  del size
  of_total, of_key = mapped
  checks.require(
    of_key or not any(jax.tree.leaves(of_total)),
    "update of privatize is mapped over several sums with one state, so they would share their "
    "noise; map over states with separate keys",
  )
  if not of_key:
    return _own_key(total, key), False
  return key, True


def _check_whole(values: PyTree) -> None:
  """Raises if optax has masked some parameters out."""
  leaves = jax.tree.leaves(values, is_leaf=lambda leaf: isinstance(leaf, optax.MaskedNode))
  checks.require(
    not any(isinstance(leaf, optax.MaskedNode) for leaf in leaves),
    "privatize is inside optax.masked or multi_transform, so some parameters "
    "would get no noise; chain it before them",
  )
