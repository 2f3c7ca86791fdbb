"""The samples and keys of DP-SGD's steps."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.privacy._banded_sampling import BandedSampler, Parts
from jaxfair.privacy._sampling import Batch
from jaxfair.privacy._sharded_sampling import ShardedSampler
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._mesh import OnMesh, draw_blocks
from jaxfair.types import Index, Key


class Feed(NamedTuple):
  """The feed of one step: its batch, keys of its noises, the penalties and the views."""

  batch: Batch
  key_sum: jax.Array
  key_count: jax.Array
  key_penalty: jax.Array
  key_views: jax.Array
  key_groups: Any = None  # of the counts of a group rule


@functools.partial(jax.jit, static_argnames=("num_examples", "count", "on_mesh"))
def make_feeds(
  config: DpSgdConfig,
  num_examples: int,
  count: int,
  *,
  key: Key,
  start: Index = 0,
  on_mesh: OnMesh | None = None,
  parts: Parts | None = None,
) -> Feed:
  """Samples and keys of `count` steps from `start` on.

  Keys are named by the step's index, so a training cut into segments draws
  the same samples and noise as one in a piece. `parts` are those of `deal`.
  """
  sampler = config.sampler(num_examples)
  key_batch, *others = (jax.random.fold_in(key, purpose) for purpose in (1, 2, 3, 4, 5, 6))
  steps, named = start + jnp.arange(count), jax.vmap(jax.random.fold_in, (None, 0))
  keys_batch, *keys = named(key_batch, steps), *(named(own, steps) for own in others)
  if isinstance(sampler, BandedSampler):
    assert parts is not None
    batches = jax.vmap(lambda step, own: sampler.draw(parts, step, key=own))(steps, keys_batch)
  elif not isinstance(sampler, ShardedSampler):
    batches = jax.vmap(lambda own: sampler.draw(key=own))(keys_batch)
  elif on_mesh is None:
    batches = draw_blocks(sampler, 1, 0, keys_batch)
  else:
    batches = on_mesh.draw(sampler, keys_batch)
  return Feed(batches, *keys)


def deal(config: DpSgdConfig, num_examples: int, *, key: Key) -> Parts | None:
  """The parts of people that steps draw from, if they share their noise."""
  sampler = config.sampler(num_examples)
  if not isinstance(sampler, BandedSampler):
    return None
  return sampler.deal(key=jax.random.fold_in(key, 7))
