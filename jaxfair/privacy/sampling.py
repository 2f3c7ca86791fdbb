"""Poisson sampling in one static shape, exactly as the accountant assumes.

Each example takes part in a batch independently with probability q. Drawing n
coins per step would cost more than the step; instead the gaps between chosen
rows are drawn, which are geometric. A gap is found by comparing 64 random bits
with exact integer thresholds, so no floating-point rounding enters the
probabilities.
"""

import dataclasses
import functools
import math
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import bits


class Batch(NamedTuple):
  """A sampled batch in a static shape.

  Attributes:
    rows: [max_batch] row numbers; 0 where `mask` is False.
    mask: [max_batch] which of them are in the batch.
  """

  rows: jax.Array
  mask: jax.Array


@dataclasses.dataclass(frozen=True)
class PoissonSampler:
  """Draws batches by Poisson sampling, cut at a public cap.

  Every row is chosen independently with probability `rate`. If more than
  `max_batch` are chosen, those beyond the first `max_batch` are dropped,
  counting from a uniformly random row onwards (so that no row is dropped more
  often than another).

  Attributes:
    num_examples: n.
    rate: q.
    max_batch: the cap, a public constant; `accounting.max_batch_for` gives one
      that is practically never reached.

  Privacy:
    This is the sampler that `accounting.DpSgd` events speak of: the chance of
    reaching the cap is charged to delta. The law of the gaps differs from the
    geometric law by less than 2^-63 each in total variation.
  """

  num_examples: int
  rate: float
  max_batch: int

  def __post_init__(self) -> None:
    width = math.isqrt(max(self.max_batch, 1)) + 1
    checks.integer(
      "num_examples", self.num_examples, low=1, high=2**31 // width - 2,
      remedy="positions are counted in int32",
    )  # fmt: skip
    checks.number(
      "sampling_rate", self.rate, low=0.0, high=1.0, open_low=True,
      remedy="it is expected batch size / number of examples",
    )  # fmt: skip
    checks.integer(
      "max_batch", self.max_batch,
      low=math.ceil(self.expected_batch_size), high=self.num_examples,
      remedy="accounting.max_batch_for gives a cap that is rarely reached",
    )  # fmt: skip

  @property
  def expected_batch_size(self) -> float:
    """q n: the public constant that sums are divided by."""
    return self.rate * self.num_examples

  def draw(self, *, key: jax.Array) -> Batch:
    """One batch. Jit-able, vmappable over keys; costs O(max_batch)."""
    n = self.num_examples
    if self.rate == 1.0:
      return Batch(jnp.arange(n, dtype=jnp.int32), jnp.ones(n, bool))
    words = bits.Words(
      *jax.random.bits(key, (2, self.max_batch + 1), jnp.uint32)
    )
    gaps = _gaps(bits.Words(words.high[:-1], words.low[:-1]), self.rate, n)
    positions = _saturating_sum(gaps + 1, n) - 1
    mask = positions < n
    # Any turn that is independent of the gaps leaves their law as it is.
    turn = (words.high[-1].astype(jnp.float32) * (n * 2.0**-32)).astype(
      jnp.int32
    )
    rows = positions + jnp.clip(turn, 0, n - 1)
    rows = jnp.where(rows >= n, rows - n, rows)
    return Batch(jnp.where(mask, rows, 0), mask)


def _gaps(words: bits.Words, rate: float, limit: int) -> jax.Array:
  """[slots] gaps g with Pr[gap >= g] = threshold_g / 2^64, at most `limit`."""
  thresholds = _thresholds(rate, limit)
  table_high = jnp.asarray((thresholds >> np.uint64(32)).astype(np.uint32))
  table_low = jnp.asarray(thresholds.astype(np.uint32))
  count = len(thresholds)
  # log(u) / log(1 - q) in float32 is within `error` of the truth on any
  # backend; the exact gap is found by walking up from below it.
  uniform = words.high.astype(jnp.float32) * np.float32(2**-32)
  uniform += (words.low.astype(jnp.float32) + 0.5) * np.float32(2**-64)
  error = 1e-4 / rate
  guess = jnp.log(uniform) / np.float32(math.log1p(-rate)) - error
  gap = jnp.clip(guess.astype(jnp.int32), 0, count)

  def walk(_: int, gap: jax.Array) -> jax.Array:
    at = jnp.minimum(gap, count - 1)
    high, low = table_high[at], table_low[at]
    below = (words.high < high) | ((words.high == high) & (words.low < low))
    return gap + (below & (gap < count))

  return jax.lax.fori_loop(0, 2 + math.ceil(2 * error), walk, gap, unroll=4)


@functools.lru_cache(maxsize=64)
def _thresholds(rate: float, limit: int) -> np.ndarray:
  """[g] floor(2^64 (1 - q)^(g + 1)) for g = 0, 1, ... until 0 or `limit`.

  Computed in 128-bit integer arithmetic from the float's exact value.
  """
  keep = 1 - Fraction(rate)
  scale = 1 << 128
  factor = (keep.numerator << 128) // keep.denominator
  found: list[int] = []
  value = scale
  while len(found) < limit:
    value = (value * factor) >> 128
    if value >> 64 == 0:
      break
    found.append(value >> 64)
  return np.array(found or [0], dtype=np.uint64)


def _saturating_sum(steps: jax.Array, limit: int) -> jax.Array:
  """Cumulative sum of integers that stays at limit + 1 once it is there.

  Two levels of short sums: on CPU much faster than a logarithmic scan.
  """
  width = math.ceil(math.sqrt(steps.shape[0]))
  padded = jnp.pad(steps, (0, width * width - steps.shape[0]))
  rows = padded.reshape(width, width)
  lower = np.tril(np.ones((width, width), bool))
  inner = jnp.sum(jnp.where(lower, rows[:, None, :], 0), axis=-1)
  inner = jnp.minimum(inner, limit + 1)
  strictly = np.tril(lower, -1)
  before = jnp.sum(jnp.where(strictly, inner[None, :, -1], 0), axis=-1)
  total = inner + jnp.minimum(before, limit + 1)[:, None]
  return jnp.minimum(total, limit + 1).reshape(-1)[: steps.shape[0]]
