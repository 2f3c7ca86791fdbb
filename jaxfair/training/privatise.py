"""Noise and averaging as an optax transformation, for your own loop."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxfair import checks, tree
from jaxfair.privacy import noise


class PrivatiseState(NamedTuple):
  """The key, and the number of the next update."""

  key: jax.Array
  step: jax.Array


def privatise(
  *,
  sensitivity: Any,
  noise_multiplier: Any,
  expected_batch_size: float,
  key: jax.Array,
) -> optax.GradientTransformation:
  """Turns a clipped *sum* into a private mean, before any optimizer.

      gradient = privacy.clipped_grad(model, loss, l2_clip=1.0)
      optimizer = optax.chain(
        training.privatise(
          sensitivity=gradient.sensitivity, noise_multiplier=1.1,
          expected_batch_size=256, key=privacy.os_key(),
        ),
        optax.adam(1e-3),
      )
      updates, state = optimizer.update(gradient(params, batch).total, state)

  Args:
    sensitivity: of the sum; `clipped_grad(...).sensitivity`.
    noise_multiplier: standard deviation of the noise over the sensitivity.
    expected_batch_size: public constant the sum is divided by; never the size
      of the batch at hand.
    key: of all updates; each gets its own by its number.

  Privacy:
    Each update is a Gaussian mechanism of this multiplier. What it costs
    depends on how your loop samples its batches: `accounting.DpSgd` for
    Poisson sampling, `accounting.ShuffledDpSgd` for epochs.
  """
  checks.positive("sensitivity", sensitivity)
  checks.non_negative("noise_multiplier", noise_multiplier)
  checks.positive("expected_batch_size", expected_batch_size)
  checks.key("key", key)

  def init(params: Any) -> PrivatiseState:
    del params
    return PrivatiseState(key, jnp.zeros((), jnp.int32))

  def update(
    total: Any, state: PrivatiseState, params: Any = None
  ) -> tuple[Any, PrivatiseState]:
    del params
    noisy = noise.gaussian(
      total,
      sigma=noise_multiplier * sensitivity,
      key=jax.random.fold_in(state.key, state.step),
    )
    mean = tree.scale(1 / expected_batch_size, noisy)
    return mean, PrivatiseState(state.key, state.step + 1)

  return optax.GradientTransformation(init, update)
