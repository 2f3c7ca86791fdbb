"""Poisson samples of one part of the people at a time, for steps that share their noise."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.privacy._sampling import Batch, PoissonSampler, keep, slots_for
from jaxfair.types import Index, Key


class Parts(NamedTuple):
  """Who is in which part.

  Attributes:
    rows: [n] row numbers, part by part.
    starts: [b + 1] where the parts begin in them.
  """

  rows: jax.Array
  starts: jax.Array


@dataclasses.dataclass(frozen=True)
class BandedSampler:
  """Deals people to b parts, and draws step t from part t mod b.

  Attributes:
    num_examples: n.
    rate: q, the chance of a person to be in a batch, before the parts are known.
    max_batch: the cap on a batch; of a larger sample a uniformly random subset is kept.
    bands: number of parts, b.

  Privacy:
    This is the sampler that `accounting.DpSgd` events with `bands` describe: parts are drawn for
    each person independently, so one person more or less moves nobody else, and no size of a part
    is used for anything but to draw from it. Total variation to it: that of `PoissonSampler` for
    each batch, and b 2^-60 for parts that are some ten deviations larger than n / b.
  """

  num_examples: int
  rate: float
  max_batch: int
  bands: int

  def __post_init__(self) -> None:
    PoissonSampler(self.num_examples, self.rate, self.max_batch)  # for its checks
    most = int(1 / self.rate * (1 + 1e-12))
    checks.integer(
      "bands",
      self.bands,
      low=2,
      high=most,
      remedy="each step draws from one of that many parts of the people; use fewer, or a smaller "
      "batch_size",
    )

  @property
  def _within(self) -> PoissonSampler:
    """Draws from the largest part there may be, without a cap."""
    width, rate = slots_for(self.num_examples, 1 / self.bands), min(1.0, self.rate * self.bands)
    return PoissonSampler(width, rate, width if rate == 1 else slots_for(width, rate))

  def deal(self, *, key: Key) -> Parts:
    """Draws the part of every person."""
    parts = jax.random.randint(key, (self.num_examples,), 0, self.bands)
    sizes = jnp.zeros(self.bands + 1, jnp.int32).at[parts + 1].add(1)
    return Parts(jnp.argsort(parts).astype(jnp.int32), jnp.cumsum(sizes))

  def draw(self, parts: Parts, step: Index, *, key: Key) -> Batch:
    """The batch of one step. Jit-able, vmappable over steps and keys."""
    part, cap = step % self.bands, self.max_batch
    start, end = parts.starts[part], parts.starts[part + 1]
    key_places, key_kept = jax.random.split(key)
    drawn, mask = self._within.draw(key=key_places)
    places = jnp.asarray(drawn)
    # Places ascend: those within the part are the first ones.
    count = jnp.sum(mask & (places < end - start))
    if len(places) > cap:
      places = keep(places, count, cap, key_kept)
    places = jnp.pad(places, (0, cap - len(places)))
    mask = jnp.arange(cap) < count
    return Batch(jnp.where(mask, parts.rows[start + places], 0), mask)
