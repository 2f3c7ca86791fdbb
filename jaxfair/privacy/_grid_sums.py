"""Private sums over people by cell, exact, inside compiled programs.

Float32 sums of millions lose digits, and the bits of float noise reveal information. Here each
person's value is a whole number of steps, the sums are exact integers of 64 bits, and the noise is
discrete Gaussian. JAX has no 64-bit integers by default: they are pairs of 32-bit words.
"""

from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import _thresholds
from jaxfair.types import ArrayLike, Key, Number

# Sigma in steps: noise = 2^16 A + 2^8 B + C, each with the parameter 2^10.
STEPS = 2.0**26
_PART = Fraction(2**10)
_LARGEST = 2**30 - 1  # steps of one person's value


class Wide(NamedTuple):
  """64-bit integers in two's complement."""

  high: jax.Array  # int32
  low: jax.Array  # uint32


def noisy_sums(
  values: ArrayLike,
  cell: ArrayLike,
  num_cells: int,
  *,
  bound: float,
  noise_multiplier: Number,
  sensitivity: float,
  key: Key,
) -> jax.Array:
  """Sums of bounded values in every cell, with Gaussian noise on a grid.

  sum_i round(M v_i / bound) + N steps of bound / M,  M = floor(STEPS / (z D))

  Args:
    values: [n, d] of size `bound` at most; what is larger is cut off.
    cell: [n] ids; one outside 0..num_cells-1 is in no sum.
    num_cells: static.
    bound: B, on the size of a value.
    noise_multiplier: z, sigma over what neighbors move; may be traced. 0 adds
      no noise; below 1 / (16 D) there is as much noise as there.
    sensitivity: D, how far neighbors move the sums, in L2, in units of the
      bound: sqrt(2 d) if one person changes cells.
    key: used once.

  Returns:
    [num_cells, d] float32.

  Privacy:
    Values are whole numbers of at most M steps, whatever they were, and their
    sums are exact. So neighbors move the integers by at most D M <=
    STEPS / z in L2, and N has a parameter of at least STEPS: 1 / (2 z^2)-zCDP
    (Canonne, Kamath & Steinke 2020, Theorem 4), and near the Gaussian of
    multiplier z up to `distance` (`accounting.grid_delta`). The float32 result
    is a function of the integers.
  """
  checks.one_key("key", key)
  multiplier = jnp.asarray(noise_multiplier, jnp.float32)
  whole = jnp.where(multiplier > 0, whole_steps(multiplier, sensitivity), 2**20)
  values = jnp.clip(jnp.asarray(values, jnp.float32), -bound, bound)
  steps = jnp.round(values * (whole / jnp.float32(bound))).astype(jnp.int32)
  total = _sums(jnp.clip(steps, -whole, whole), jnp.asarray(cell), num_cells)
  drawn = _discrete_gaussian(key, total.low.shape)
  noisy = _plus(total, _shifted(jnp.where(multiplier > 0, drawn, 0), 0))
  return _as_float(noisy) * (jnp.float32(bound) / jnp.maximum(whole, 1))


def whole_steps(noise_multiplier: Number, sensitivity: float) -> jax.Array:
  """M, the steps in the bound: STEPS / (z D) rounded down, float32 and all."""
  most = jnp.float32(STEPS * (1 - 2.0**-20) / sensitivity) / noise_multiplier
  return jnp.minimum(jnp.floor(most), _LARGEST).astype(jnp.int32)


def distance(count: int) -> float:
  """Total variation between `count` draws and those of a rounded Gaussian.

  Args:
    count: how many sums neighbors can differ in.

  Proof:
    n / (10 STEPS^2) to the discrete Gaussian (see `grid.distance`), and what
    is drawn is near that. For X discrete Gaussian of parameter s' and C of
    parameter s, Pr[K X + C = n] is the sum over x of
    exp(-x^2 / (2 s'^2) - (n - K x)^2 / (2 s^2)), up to a constant. Completing
    the square, that is exp(-n^2 / (2 (s^2 + K^2 s'^2))) times a sum of
    exp(-(x - c)^2 / (2 w^2)) over the integers x, w = s s' / sqrt(s^2 +
    K^2 s'^2). For s = 2^10, K = 2^8 and s' >= s the width w is above 3.99, and
    by Poisson's formula the sum varies with c by a relative
    4 exp(-2 pi^2 w^2) < 1e-135. Each of the three tables is within its own
    distance of a discrete Gaussian.
  """
  checks.integer("count", count, low=0)
  table = _thresholds.discrete_gaussian(_PART)
  return count * (1 / (10 * STEPS**2) + 3 * table.distance + 1e-130)


def _sums(values: jax.Array, cell: jax.Array, num_cells: int) -> Wide:
  """Exact sums of int32 values: of their digits, each of which fits int32."""
  width = 31 - max(1, values.shape[0].bit_length())
  checks.require(width >= 1, f"{values.shape[0]} people are too many to be summed exactly")
  total = Wide(
    jnp.zeros((num_cells, *values.shape[1:]), jnp.int32),
    jnp.zeros((num_cells, *values.shape[1:]), jnp.uint32),
  )
  for shift in range(0, 31, width):
    digit = values >> shift  # keeps the sign: the last digit has it
    if shift + width < 31:
      digit = digit & ((1 << width) - 1)
    part = jax.ops.segment_sum(digit, cell, num_cells)
    total = _plus(total, _shifted(part, shift))
  return total


def _discrete_gaussian(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """int32 draws of parameter 2^10 sqrt(1 + 2^16 + 2^32), above STEPS."""
  table = _thresholds.discrete_gaussian(_PART)
  count = int(np.prod(shape))
  drawn = _thresholds.draw(key, table.words, count=3 * count)
  a, b, c = (drawn - table.length // 2).reshape(3, count)
  return ((a << 16) + (b << 8) + c).reshape(shape)


def _shifted(value: jax.Array, shift: int) -> Wide:
  """value 2^shift, for shift below 32."""
  low = value.astype(jnp.uint32) << shift
  return Wide((value >> (32 - shift)) if shift else (value >> 31), low)


def _plus(a: Wide, b: Wide) -> Wide:
  low = a.low + b.low
  return Wide(a.high + b.high + (low < a.low), low)


def _as_float(value: Wide) -> jax.Array:
  negative = value.high < 0
  low = jnp.where(negative, ~value.low + 1, value.low)
  high = jnp.where(negative, ~value.high + (value.low == 0), value.high)
  size = high.astype(jnp.float32) * 2.0**32 + low.astype(jnp.float32)
  return jnp.where(negative, -size, size)
