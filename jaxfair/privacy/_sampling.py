"""Poisson sampling in one static shape, exactly as the accountant assumes.

Each example takes part in a batch independently with probability q. Drawing n coins per step would
cost more than the step; instead the gaps between chosen rows are drawn, which are geometric, by
exact integer arithmetic (`privacy._geometric_gaps`).
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import _geometric_gaps
from jaxfair.types import Array, Key

MOST = 2**30  # rows: two row numbers add up in 32 bits
MOST_SLOTS = 2**26  # rows of a batch: a sum of them adds 2^13 numbers at a time
_PLACE = 11  # bits of a digit: 2^13 digits add up exactly in float32


class Batch(NamedTuple):
  """A sampled batch in a static shape.

  Attributes:
    rows: [max_batch] row numbers; 0 where `mask` is False.
    mask: [max_batch] whether each of these rows is in the batch.
  """

  rows: Array
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
    delta. Total variation to it: 2^-79 for each gap, and 2^-60 for each batch (a batch so large
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
      high=MOST,
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
    checks.require(
      slots <= MOST_SLOTS, f"batches of {slots} rows are beyond 2^26; use a smaller batch_size"
    )
    key_gaps, key_kept = jax.random.split(key)
    # Drawn flat, which gives the same bits and compiles in half the time.
    count = _geometric_gaps.words_for(self.rate, n)
    drawn = jax.random.bits(key_gaps, (count * slots,), jnp.uint32)
    gaps = _geometric_gaps.geometric_gaps(drawn.reshape(count, slots), self.rate, n)
    rows = _saturating_sum(gaps + 1, n) - 1
    if slots > cap:
      rows = keep(rows, jnp.sum(rows < n), cap, key_kept)
    mask = rows < n
    return Batch(jnp.where(mask, rows, 0), mask)


def keep(rows: jax.Array, count: jax.Array, cap: int, key: jax.Array) -> jax.Array:
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


def _saturating_sum(steps: jax.Array, limit: int) -> jax.Array:
  """Cumulative sum of integers that stays at limit + 1 once it is there.

  Two levels of short sums, as products with a triangle of ones: on CPU much faster than a
  logarithmic scan.
  """
  width = math.ceil(math.sqrt(steps.shape[0]))
  capped = jnp.minimum(steps, limit + 1).astype(jnp.uint32)
  rows = jnp.pad(capped, (0, width * width - steps.shape[0]))
  ones = np.triu(np.ones((width, width), np.float32))
  inner = _short_sums(rows.reshape(width, width), ones, limit)
  before = _short_sums(inner[:, -1], np.triu(ones, 1), limit)
  total = jnp.minimum(inner + before[:, None], limit + 1)
  return total.reshape(-1)[: steps.shape[0]].astype(jnp.int32)


def _short_sums(numbers: jax.Array, ones: np.ndarray, limit: int) -> jax.Array:
  """min(numbers @ ones, limit + 1), in integers of at most limit + 1.

  float32 counts exactly up to 2^24, and a sum of positive numbers that has reached 2^24 does not
  fall again. Where that is not far enough, digits of 11 bits are added up, each by itself.
  """
  places = (0,) if limit < 2**24 - 1 else (2 * _PLACE, _PLACE, 0)
  total = jnp.zeros((), jnp.uint32)
  for place in places:
    digits = numbers if len(places) == 1 else (numbers >> place) & (2**_PLACE - 1)
    sums = jnp.matmul(digits.astype(jnp.float32), ones, precision=jax.lax.Precision.HIGHEST)
    # Above the limit any number is as good as another that fits 31 bits.
    fitting = jnp.minimum(sums, 2.0 ** (31 - place)).astype(jnp.uint32)
    total = jnp.minimum(total + (fitting << place), limit + 1)
  return total
