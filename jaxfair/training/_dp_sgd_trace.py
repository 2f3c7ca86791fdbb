"""What a private training shows about itself, for those who hold the data."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class NonPrivateDpTrace(NamedTuple):
  """The trace of a private training, computed without noise; not for release.

  Not for release: the accountant covers the parameters, not these numbers.
  Reports of private runs leave them out.

  Attributes:
    loss: [steps] mean loss of the batch before the step.
    mean_norm: [steps] mean gradient norm before clipping.
    clipped: [steps] share of the batch whose gradient was clipped.
    batch: [steps] realized batch sizes.
    num_nonfinite: [steps] examples left out for a non-finite gradient.
    l2_clip: [steps] the bound in use. This one is private when `adaptive`
      moved it, and a constant otherwise.
  """

  loss: jax.Array
  mean_norm: jax.Array
  clipped: jax.Array
  batch: jax.Array
  num_nonfinite: jax.Array
  l2_clip: jax.Array


class Seen(NamedTuple):
  """Sums for the trace."""

  loss: jax.Array
  norm: jax.Array
  clipped: jax.Array
  batch: jax.Array
  num_nonfinite: jax.Array


def trace_of(seen: Seen, clip: jax.Array) -> NonPrivateDpTrace:
  """The trace of one step from sums over its batch and the bound in use."""
  share = 1 / jnp.maximum(seen.batch, 1)
  return NonPrivateDpTrace(
    loss=seen.loss * share,
    mean_norm=seen.norm * share,
    clipped=seen.clipped * share,
    batch=seen.batch,
    num_nonfinite=seen.num_nonfinite,
    l2_clip=clip,
  )
