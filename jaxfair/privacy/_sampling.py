"""Poisson sampling in one static shape, exactly as the accountant assumes.

Each example takes part in a batch independently with probability q. Drawing n coins per step would
cost more than the step; instead the gaps between chosen rows are drawn, which are geometric. A gap
is found by comparing 64 random bits with exact integer thresholds, so no floating-point rounding
enters the probabilities.
"""

import dataclasses
import functools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import _random_words
from jaxfair.types import Key


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
  """Draws batches by Poisson sampling, truncated at a public cap.

  Every row is chosen independently with probability `rate`. If more than
  `max_batch` are chosen, a uniformly random `max_batch` of them are kept.

  Attributes:
    num_examples: n.
    rate: q.
    max_batch: the cap, a public constant; `accounting.max_batch_for` gives one
      that is practically never reached.

  Privacy:
    This is the sampler that `accounting.DpSgd` events describe; the effect of the cap is charged to
    delta. Total variation to it: 2^-63 for each gap, and 2^-60 for each batch (a batch so large
    that it does not fit the slots in which gaps are laid out, some ten deviations above the mean).
  """

  num_examples: int
  rate: float
  max_batch: int

  def __post_init__(self) -> None:
    checks.integer(
      "num_examples",
      self.num_examples,
      low=1,
      high=2**24 - 2,
      remedy="the sampler counts rows exactly only up to there",
    )
    checks.number(
      "sampling_rate",
      self.rate,
      low=0.0,
      high=1.0,
      open_low=True,
      remedy="it is expected batch size / number of examples",
    )
    checks.integer(
      "max_batch",
      self.max_batch,
      low=math.ceil(self.expected_batch_size),
      high=self.num_examples,
      remedy="accounting.max_batch_for gives a cap that is rarely reached",
    )

  @property
  def expected_batch_size(self) -> float:
    """q n: the public constant that sums are divided by."""
    return self.rate * self.num_examples

  def draw(self, *, key: Key) -> Batch:
    """One batch. Jit-able, vmappable over keys; costs O(max_batch)."""
    n, cap = self.num_examples, self.max_batch
    if self.rate == 1.0:
      return Batch(jnp.arange(n, dtype=jnp.int32), jnp.ones(n, bool))
    slots = max(cap, slots_for(n, self.rate))
    key_gaps, key_kept = jax.random.split(key)
    # Drawn flat, which gives the same bits and compiles in half the time.
    drawn = jax.random.bits(key_gaps, (2 * slots,), jnp.uint32)
    words = _random_words.Words(*drawn.reshape(2, slots))
    rows = _saturating_sum(_gaps(words, self.rate, n) + 1, n) - 1
    if slots > cap:
      rows = _keep(rows, jnp.sum(rows < n), cap, key_kept)
    mask = rows < n
    return Batch(jnp.where(mask, rows, 0), mask)


def _keep(rows: jax.Array, count: jax.Array, cap: int, key: jax.Array) -> jax.Array:
  """A uniformly random `cap` of the first `count` rows, by reservoir sampling.

  The loop runs once per row beyond the cap: not at all, nearly always.
  """

  def replace_one(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
    kept, i = carry
    place = jax.random.randint(jax.random.fold_in(key, i), (), 0, i + 1)
    # A place outside the reservoir drops the newcomer.
    return kept.at[place].set(rows[i], mode="drop"), i + 1

  kept, _ = jax.lax.while_loop(
    lambda carry: carry[1] < count, replace_one, (rows[:cap], jnp.int32(cap))
  )
  return kept


@functools.lru_cache(maxsize=1024)
def slots_for(num_examples: int, rate: float) -> int:
  """A batch size that is exceeded with probability below 2^-60.

  By Chernoff's bound Pr[Binomial(n, q) >= k] <= exp(-n KL(k/n || q)).
  """
  low, high = math.ceil(num_examples * rate), num_examples
  while low < high:
    middle = (low + high) // 2
    exceeded = (middle + 1) / num_examples
    if num_examples * _divergence(exceeded, rate) >= 60 * math.log(2):
      high = middle
    else:
      low = middle + 1
  return low


def _divergence(p: float, q: float) -> float:
  """KL(p || q) of two coins, for 0 < q < 1 and q <= p."""
  if p > 1:
    return math.inf
  tail = 0.0 if p == 1 else (1 - p) * math.log((1 - p) / (1 - q))
  return p * math.log(p / q) + tail


def _gaps(words: _random_words.Words, rate: float, limit: int) -> jax.Array:
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

  Two levels of short sums, as products with a triangle of ones: on CPU much
  faster than a logarithmic scan. float32 counts exactly up to 2^24 > limit,
  and a sum of positive numbers that has reached 2^24 does not fall again.
  """
  width = math.ceil(math.sqrt(steps.shape[0]))
  capped = jnp.minimum(steps, limit + 1).astype(jnp.float32)
  rows = jnp.pad(capped, (0, width * width - steps.shape[0]))
  rows = rows.reshape(width, width)
  ones = np.triu(np.ones((width, width), np.float32))
  exactly = functools.partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
  inner = exactly(rows, ones)
  before = exactly(inner[:, -1], np.triu(ones, 1))
  total = jnp.minimum(inner + before[:, None], limit + 1)
  return total.reshape(-1)[: steps.shape[0]].astype(jnp.int32)
