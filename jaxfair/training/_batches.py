"""Shuffled mini-batches without a sort: a keyed bijection of the row numbers.

Shuffling n rows by sorting costs n log n per epoch. Here the row numbers that are needed are
computed each by itself, by a swap-or-not shuffle (Hoang, Morris and Rogaway 2012): each round pairs
row i with row `offset - i` and swaps the pair if a hash bit says so, which is a bijection whatever
the hash. It is meant for plain training; private sampling, which must be exactly what the
accountant assumes, is in `privacy._sampling`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.accounting import _truncation
from jaxfair.privacy._sampling import PoissonSampler
from jaxfair.privacy._sharded_sampling import ShardedSampler
from jaxfair.types import Index, Key, PyTree

ROUNDS = 16
# What truncating batches may add to delta if the caller sets no cap: far below
# any delta in use, and a cap some seven deviations above the mean.
DEFAULT_DELTA_SHARE = 1e-10


class Shuffles(NamedTuple):
  """One keyed bijection of range(n) per epoch.

  Attributes:
    offsets: [epochs, rounds] int32 in [0, n): which rows are paired.
    salts: [epochs, rounds] uint32: which pairs are swapped.
  """

  offsets: jax.Array
  salts: jax.Array


def make_shuffles(num_rows: int, num_epochs: int, *, key: Key) -> Shuffles:
  """Draws the bijections of all epochs at once."""
  # Drawn flat, which gives the same numbers: of short rows under a vmap the
  # compiler unrolls the generator, and takes five times as long. And by one
  # generator for three keys: it compiles each one that it meets.
  flat, shape = (num_epochs * ROUNDS,), (num_epochs, ROUNDS)
  key_offsets, key_salts = jax.random.split(key)
  keys = [*jax.random.split(key_offsets), key_salts]
  high, low, salts = jax.vmap(lambda own: jax.random.bits(own, flat, jnp.uint32))(jnp.stack(keys))
  offsets = _remainder(high, low, num_rows).astype(jnp.int32)
  return Shuffles(offsets.reshape(shape), salts.reshape(shape))


def shuffles_for(num_rows: int, batch_size: int, steps: int, *, key: Key) -> Shuffles:
  """The bijections that the batches of `steps` steps need."""
  return make_shuffles(num_rows, -(-steps // (num_rows // batch_size)), key=key)


def batch_rows(
  shuffles: Shuffles, num_rows: int, batch_size: int, count: int, *, start: Index = 0
) -> jax.Array:
  """The rows of some steps' batches.

  Each epoch visits `num_rows // batch_size` batches of distinct rows; the
  remainder, a different one each epoch, sits out.

  Returns:
    [count, batch_size] int32 row numbers.
  """
  per_epoch = num_rows // batch_size
  # Where the start is known, the compiler is given numbers and no divisions.
  steps = start + np.arange(count, dtype=np.int32)[:, None]
  epoch, turn = divmod(steps, per_epoch)
  rows = jnp.arange(batch_size, dtype=jnp.int32) + turn * batch_size
  offsets = shuffles.offsets[epoch]  # [count, 1, rounds]
  salts = shuffles.salts[epoch]
  return shuffle(rows, offsets, salts, num_rows=num_rows)


def look_up(people: PyTree, rows: jax.Array | np.ndarray) -> PyTree:
  """Rows of every leaf that are known to be there, within a program.

  Indexing by brackets makes sure of that for every number it reads. Everybody in order (a NumPy
  range, as a batch from a source has it) costs nothing.
  """
  size = jax.tree.leaves(people)[0].shape[0]
  if isinstance(rows, np.ndarray) and np.array_equal(rows, np.arange(size)):
    return people
  return jax.tree.map(
    lambda leaf: (
      jnp.asarray(leaf).at[rows].get(mode="promise_in_bounds", wrap_negative_indices=False)
    ),
    people,
  )


def poisson_sampler(
  num_rows: int,
  batch_size: int,
  steps: int,
  *,
  max_batch: int | None = None,
  delta_share: float = DEFAULT_DELTA_SHARE,
) -> PoissonSampler:
  """Poisson batches: each row takes part with probability `batch_size / num_rows`.

  Args:
    num_rows: n.
    batch_size: the expected size of a batch.
    steps: of the training.
    max_batch: public cap on a batch; None chooses one by `delta_share`.
    delta_share: the probability that any batch of the training reaches the
      chosen cap, at most; it is charged to delta.
  """
  _check_batch_size(batch_size, num_rows)
  rate = batch_size / num_rows
  if max_batch is None:
    cap = _truncation.max_batch_for(
      dataset_size=num_rows, sampling_rate=rate, steps=steps, delta_share=delta_share
    )
    max_batch = max(batch_size, min(cap, num_rows))
  return PoissonSampler(num_rows, rate, max_batch)


def sharded_sampler(
  num_rows: int,
  batch_size: int,
  steps: int,
  *,
  shards: int,
  max_batch: int | None = None,
  delta_share: float = DEFAULT_DELTA_SHARE,
) -> ShardedSampler:
  """Poisson batches of people who are dealt to shards.

  Args:
    num_rows: n.
    batch_size: the expected size of a batch of everybody.
    steps: of the training.
    shards: number of shards, at most n.
    max_batch: public cap on the sample of one shard; None chooses one by `delta_share`.
    delta_share: the probability that any shard reaches the chosen cap, at most.
  """
  _check_batch_size(batch_size, num_rows)
  checks.integer("shards", shards, low=1, high=num_rows, remedy="a shard holds a person at least")
  rate = batch_size / num_rows
  if max_batch is None:
    max_batch = _truncation.max_batch_for(
      dataset_size=num_rows, sampling_rate=rate, steps=steps, delta_share=delta_share, shards=shards
    )
    max_batch = max(max_batch, -(-batch_size // shards) + 1)
  return ShardedSampler(num_rows, rate, max_batch, shards)


def _check_batch_size(batch_size: int, num_rows: int) -> None:
  checks.integer(
    "batch_size", batch_size, low=1, high=num_rows, remedy="it is the expected size of a batch"
  )


def shuffle(rows: jax.Array, offsets: jax.Array, salts: jax.Array, *, num_rows: int) -> jax.Array:
  """Maps row numbers by a bijection of range(num_rows).

  Args:
    rows: row numbers.
    offsets: [..., rounds], broadcast against the rows.
    salts: [..., rounds], broadcast against the rows.
    num_rows: n.
  """

  def swap(rows: jax.Array, numbers: Any) -> tuple[jax.Array, None]:
    offset, salt = numbers
    partner = offset - rows
    partner = jnp.where(partner < 0, partner + num_rows, partner)
    # Both members of a pair hash the same number, so they agree on the swap.
    pair = jnp.maximum(rows, partner).astype(jnp.uint32)
    return jnp.where(_hash(pair ^ salt) >> 31 == 1, partner, rows), None

  shape = jnp.broadcast_shapes(rows.shape, offsets.shape[:-1])
  numbers = (jnp.moveaxis(offsets, -1, 0), jnp.moveaxis(salts, -1, 0))
  # Adding zeros: inside shard_map a loop's start must vary as its steps do.
  start = jnp.broadcast_to(rows, shape) + jnp.zeros_like(offsets[..., 0])
  return jax.lax.scan(swap, start, numbers)[0]


def _remainder(high: jax.Array, low: jax.Array, divisor: int) -> jax.Array:
  """(2^32 high + low) mod divisor, but for what wraps around in 32 bits.

  The numbers are those of `jax.random.randint`, which wraps around in the same way; they are
  uniform enough to shuffle the batches of non-private training.
  """
  span = jnp.uint32(divisor)
  carried = jnp.uint32((2**16 % divisor) ** 2 % 2**32 % divisor)
  return ((high % span) * carried + low % span) % span


def _hash(x: jax.Array) -> jax.Array:
  """Mixes 32 bits (a multiply-xorshift finalizer, two rounds)."""
  x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
  x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
  return x ^ (x >> 16)
