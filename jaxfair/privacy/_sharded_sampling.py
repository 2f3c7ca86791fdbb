"""One Poisson sample of everybody, drawn block by block.

People are divided into a fixed number of shards, blocks of consecutive rows, and every shard is
sampled with its own key: drawing a shard does not depend on the others, and gives the same people
on any device or process. People are sampled independently in any case, so the samples of the shards
together are one Poisson sample of everybody.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.privacy._sampling import Batch, PoissonSampler, slots_for
from jaxfair.types import Index, Key, PyTree


@dataclasses.dataclass(frozen=True)
class ShardedSampler:
  """Draws batches by Poisson sampling, each shard of people by itself.

  Shard s holds the rows from floor(s n / shards) to floor((s + 1) n / shards): where the number of
  shards is a multiple of the number of blocks, and n too, blocks of n / blocks rows hold whole
  shards.

  Attributes:
    num_examples: n.
    rate: q.
    max_batch: the cap on the sample of one shard, which is charged.
    shards: number of shards; fixed for a training, whatever the number of devices.

  Privacy:
    This is the sampler that `accounting.DpSgd` events with `shards` describe. Whoever holds several
    shards draws them by `draw_block` with a cap on all of them, whose probability to act the caller
    keeps within what was charged (`accounting._truncation.joint_max_batch`). Total variation to
    the events' law: 2^-60 for each shard and step, as in `PoissonSampler`.
  """

  num_examples: int
  rate: float
  max_batch: int
  shards: int

  def __post_init__(self) -> None:
    checks.integer("shards", self.shards, low=1, high=self.num_examples)
    checks.integer(
      "max_batch",
      self.max_batch,
      low=math.ceil(self.rate * self._width),
      remedy="with shards it is the cap on the sample of one shard",
    )

  @property
  def _width(self) -> int:
    """The number of people in the largest shards."""
    return -(-self.num_examples // self.shards)

  def start(self, shard: Index) -> PyTree:
    """The first row of a shard, floor(shard n / shards), in numbers below n."""
    each, rest = divmod(self.num_examples, self.shards)
    return shard * each + (shard * rest) // self.shards

  def draw_block(self, block: Index, *, blocks: int, cap: int, key: Key) -> Batch:
    """The sample of the people in one of `blocks` equal parts of the shards.

    Args:
      block: which; may be traced.
      blocks: divides the number of shards.
      cap: length of the result; people beyond it are left out.
      key: of the step, the same for all blocks.

    Returns:
      [cap] rows, counted from the first one of the block. The people are those that any other
      division of the shards draws.
    """
    checks.require(self.shards % blocks == 0, f"{blocks=} must divide shards={self.shards}")
    count = self.shards // blocks
    slots = max(math.ceil(self.rate * self._width), slots_for(self._width, self.rate))
    sampler = PoissonSampler(self._width, self.rate, slots)
    shards = block * count + jnp.arange(count)
    starts = self.start(shards)[:, None]
    sizes = self.start(shards + 1)[:, None] - starts
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, shards)
    rows, mask = jax.vmap(lambda own: sampler.draw(key=own))(keys)
    # Shards differ by one in size: the last row of a smaller one is nobody.
    mask = mask & (rows < sizes)
    rows = (rows + starts - self.start(block * count)).reshape(-1)
    # Rows ascend, so those who take part are the first ones of every shard.
    ends = jnp.cumsum(jnp.sum(mask, axis=1))
    place = jnp.arange(cap)
    shard = jnp.minimum(jnp.searchsorted(ends, place, side="right"), count - 1)
    first = jnp.where(shard > 0, ends[shard - 1], 0)
    slot = jnp.clip(place - first, 0, slots - 1)
    drawn = place < ends[-1]
    return Batch(jnp.where(drawn, rows[shard * slots + slot], 0), drawn)
