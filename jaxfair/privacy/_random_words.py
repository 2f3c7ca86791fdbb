"""Random words by Threefry-2x32, as one fused kernel.

The same cipher, key and counters as `jax.random.bits`, and the same bits, but
unrolled: on CPU, JAX rolls the rounds into a loop over arrays, which costs
four times as much. Each counter yields 64 bits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Key

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


class Words(NamedTuple):
  """64 random bits per element, as two uint32 arrays."""

  high: jax.Array
  low: jax.Array


def random_words(key: Key, count: int, *, start: int | jax.Array = 0) -> Words:
  """64 bits for each of the counters start, ..., start + count - 1.

  Args:
    key: a Threefry key. Distinct counters are independent; the same key and counter give the same
      words again, so a caller that draws twice from one key must not overlap. Nor may a key be both
      split and drawn from: `jax.random.split` and `fold_in` hand out these very words as keys.
    count: number of words; static.
    start: first counter; a number, or a traced one that the caller knows to fit.

  Returns:
    [count] words. `high ^ low` is what `jax.random.bits` returns.
  """
  if checks.concrete(start):
    checks.integer("start + count", start + count, low=0, high=2**32)
  counter = jax.lax.iota(jnp.uint32, count) + jnp.asarray(start, jnp.uint32)
  return words_at(key, counter)


def words_at(key: Key, counter: jax.Array) -> Words:
  """64 bits for each of the uint32 counters, in the shape of their array; see `random_words`."""
  checks.one_key("key", key)
  data = jax.random.key_data(key)
  if data.shape[-1] != 2:
    raise checks.ArgumentError(
      'key must be a Threefry key; make it with jax.random.key(seed, impl="threefry2x32")'
    )
  return threefry(data[0], data[1], jnp.zeros_like(counter), counter)


def threefry(k0: jax.Array, k1: jax.Array, x0: jax.Array, x1: jax.Array) -> Words:
  """The Threefry-2x32 block cipher with 20 rounds (Salmon et al. 2011)."""
  schedule = (k0, k1, k0 ^ k1 ^ _PARITY)
  x0, x1 = x0 + k0, x1 + k1
  for group in range(5):
    for rotation in _ROTATIONS[group % 2]:
      x0 = x0 + x1
      x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
      x1 = x1 ^ x0
    x0 = x0 + schedule[(group + 1) % 3]
    x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
  return Words(x0, x1)


def unit_interval(words: Words) -> jax.Array:
  """float32 numbers in (0, 1), with full relative precision down to 2^-63.

  The smallest of n draws is about 1/n however large n is: there is no floor at
  2^-24 as for a fixed grid.
  """
  # Through int32: the unsigned conversion has no vector instruction on CPU.
  high = (words.high >> 1).astype(jnp.int32).astype(jnp.float32)
  low = (words.low >> 1).astype(jnp.int32).astype(jnp.float32)
  value = (high + (low + 0.5) * np.float32(2**-31)) * np.float32(2**-31)
  return jnp.minimum(value, np.float32(1 - 2**-24))
