"""Sums of numbers and normal noise whose last bits reveal nothing about the number.

`value + sigma * z` in float32 takes few values, and which ones depends on `value`: z has 2^23
values where it is small, and the sum's rounding hides them only where the value is large. Here
the value is rounded to a public grid of about sigma / 2^29 and the noise is a whole number of its
steps, with 55 random bits behind it. What is returned is the integer sum, in float32.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import _normal, _random_words
from jaxfair.types import Key, Number

# Steps of the grid in the largest power of two that is not above sigma.
STEPS = 2.0**29
# Sigma is raised by this share. It pays for rounding values to the grid, which
# adds sqrt(d) steps to a sensitivity D, while sigma sqrt(d) / D is below 2^11.
RAISED = 2.0**-18
# The largest leaves are drawn one by one and the others together: joining
# leaves costs a third of a draw, and a program for each takes long to compile.
_OWN_DRAWS = 4
_LARGE = 4096


def add_normal(leaves: list[jax.Array], *, sigma: Number, key: Key) -> list[jax.Array]:
  """Float32 sums of each number and N(0, sigma^2) noise, on a grid.

  Args:
    leaves: float32 or shorter arrays.
    sigma: standard deviation; float32 scalar above 0.
    key: used for the counters 0 ... size - 1, leaf by leaf.

  Returns:
    Float32 arrays: multiples of `grid_step(sigma)`.

  Privacy:
    Each result is a function of one integer, round(value / step) + N, and N
    does not depend on the value. So no bit of it shows more than the integer
    does: if N were a rounded N(0, (sigma / step)^2), the release would be a
    function of the Gaussian mechanism. N is the sum of two rounded parts,
    `coarse_steps` and `fine_steps`. It has that law up to a relative 2^-11 per
    integer where |N| < 4 sigma, and next to no difference between neighboring
    integers; tests compute both. That is measured, not proved.
  """
  sizes = [leaf.size for leaf in leaves]
  starts = np.cumsum([0, *sizes])
  checks.integer("size of value", int(starts[-1]), low=0, high=2**32)
  largest = sorted(range(len(sizes)), key=lambda i: -sizes[i])[:_OWN_DRAWS]
  own = [i for i in largest if sizes[i] >= _LARGE]
  parts = [[i] for i in own]
  parts.append([i for i in range(len(sizes)) if i not in own])
  found: list[Any] = [None] * len(sizes)
  for part in filter(None, parts):
    flat = [leaves[i].astype(jnp.float32).ravel() for i in part]
    joined = flat[0] if len(flat) == 1 else jnp.concatenate(flat)
    counters = _offsets([(int(starts[i]), sizes[i]) for i in part])
    words = _random_words.random_words(key, joined.size, start=counters)
    total = _noisy(joined, words, sigma)
    end = 0
    for i in part:
      piece = total[end : end + sizes[i]]
      found[i], end = piece.reshape(leaves[i].shape), end + sizes[i]
  return found


def add_normal_by_leaf(leaves: list[jax.Array], *, sigma: Number, key: Key) -> list[jax.Array]:
  """The numbers of `add_normal`, computed for each leaf in its own shape.

  Every number depends on its own value and on its own counter alone, and no leaf is reshaped or
  joined to another: a leaf that is spread over devices is drawn where it lies.
  """
  starts = np.cumsum([0, *(leaf.size for leaf in leaves)])
  checks.integer("size of value", int(starts[-1]), low=0, high=2**32)
  return [
    _noisy(
      leaf.astype(jnp.float32),
      _random_words.words_at(key, _counters(leaf.shape) + np.uint32(start)),
      sigma,
    )
    for leaf, start in zip(leaves, starts, strict=False)
  ]


def grid_step(sigma: jax.Array) -> jax.Array:
  """A power of two between sigma 2^-30 and sigma 2^-29."""
  pattern = jax.lax.bitcast_convert_type(sigma, jnp.int32)
  power = jax.lax.bitcast_convert_type(pattern & 0x7F800000, jnp.float32)
  return jnp.clip(power, 2.0**-90, 2.0**90) * np.float32(1 / STEPS)


def coarse_steps(words: _random_words.Words, sigma_steps: jax.Array) -> jax.Array:
  """Normal draws in whole steps, as float32: most are multiples of 32."""
  return jnp.round(sigma_steps * _normal.coarse(words))


def fine_steps(words: _random_words.Words) -> jax.Array:
  """Whole numbers between coarse ones: U + V - 2^17 for uniform U and V.

  U has 17 bits and V is 4 times 15 bits, all of `words.low`, which the coarse
  draw rounds away unless |z| > 5. There they are not independent of it, which
  moves no draw by more than 2^-12 sigma. The width is thousands of times the
  distance between neighboring coarse draws and their rounding errors, so any
  step is reached from thousands of them, with weights that change slowly. The
  variance grows by less than one part in 10^8.
  """
  low = words.low
  total = (low & 0x1FFFF) + ((low >> 17) << 2)
  return total.astype(jnp.int32) - 2**17


def _noisy(value: jax.Array, words: _random_words.Words, sigma: Number) -> jax.Array:
  sigma = jnp.asarray(sigma, jnp.float32) * np.float32(1 + RAISED)
  scale = 1 / grid_step(sigma)
  total, error = two_sum(jnp.round(value * scale), coarse_steps(words, sigma * scale))
  # All three are whole numbers, and while |value| < 2^17 sigma the second and
  # third have few digits: the one rounding is that of their sum to float32.
  steps = total + (error + fine_steps(words).astype(jnp.float32))
  # A division, because XLA stores its result where it is read twice, and runs
  # the cipher again for the second reader of a product.
  return steps / scale


def two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
  """a + b in float32, and what that rounds away, exactly (Knuth)."""
  total = a + b
  part = total - a
  return total, (a - (total - part)) + (b - part)


def _offsets(ranges: list[tuple[int, int]]) -> Any:
  """What is added to 0, 1, 2, ... so that it counts through the ranges."""
  if len(ranges) == 1:
    return ranges[0][0]
  place = jax.lax.iota(jnp.uint32, sum(size for _, size in ranges))
  offset = jnp.zeros_like(place)
  begin = jumped = 0
  for start, size in ranges:
    jump = start - begin - jumped
    if jump:
      offset += jnp.where(place >= begin, np.uint32(jump), np.uint32(0))
    begin, jumped = begin + size, jumped + jump
  return offset


def _counters(shape: tuple[int, ...]) -> jax.Array:
  """0, 1, 2, ... in the order of the elements of an array of this shape."""
  strides = np.cumprod([1, *shape[:0:-1]], dtype=np.uint64)[::-1].astype(np.uint32)
  counter = jnp.zeros(shape, jnp.uint32)
  for axis in range(len(shape)):
    counter += jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * strides[axis]
  return counter
