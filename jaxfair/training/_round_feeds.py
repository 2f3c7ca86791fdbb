"""Batches, samples and keys of the rounds of both Lagrangian trainers."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.privacy._sampling import Batch, PoissonSampler
from jaxfair.training import _batches
from jaxfair.training._lagrangian_config import LagrangianConfig


class RoundFeed(NamedTuple):
  """What one round of `lagrangian` is given; of several rounds, stacked."""

  rows: Any  # [rounds, steps, batch]; None: all examples
  dual_rows: Any  # [rounds, people]; None: all examples
  step: Any  # [rounds, steps]


class RoundSource(NamedTuple):
  """What the batches of a Lagrangian training are made of."""

  primal: Any  # shuffles; None: all examples
  dual: Any


def round_source(config: LagrangianConfig, size: int, key: jax.Array) -> RoundSource:
  """Shuffles of the primal steps' batches and of the dual steps'."""
  rounds, steps = config.rounds, config.steps_per_round
  primal = dual = None
  if config.batch_size is not None:
    primal = _batches.shuffles_for(
      size, config.batch_size, rounds * steps, key=jax.random.fold_in(key, 1)
    )
  if config.dual_size is not None:
    dual = _batches.shuffles_for(size, config.dual_size, rounds, key=jax.random.fold_in(key, 2))
  return RoundSource(primal, dual)


@dataclasses.dataclass(frozen=True)
class RoundFeeds:
  """Batches of some rounds."""

  num_rows: int
  batch_size: int | None
  dual_size: int | None
  steps: int

  @classmethod
  def of(cls, config: LagrangianConfig, size: int) -> "RoundFeeds":
    """The feeds of this config on n people."""
    return cls(size, config.batch_size, config.dual_size, config.steps_per_round)

  @property
  def rows(self) -> int:
    """Rows that one round's feed names."""
    return (self.batch_size or 1) * self.steps + (self.dual_size or 0)

  def __call__(self, source: RoundSource, start: Any, count: int) -> RoundFeed:
    """Feeds of `count` rounds from `start` on."""
    shape, first = (count, self.steps), start * self.steps
    rows = dual_rows = None
    if self.batch_size is not None:
      rows = _batches.batch_rows(
        source.primal, self.num_rows, self.batch_size, math.prod(shape), start=first
      ).reshape(*shape, -1)
    if self.dual_size is not None:
      dual_rows = _batches.batch_rows(
        source.dual, self.num_rows, self.dual_size, count, start=start
      )
    step = (first + jnp.arange(math.prod(shape))).reshape(shape)
    return RoundFeed(rows, dual_rows, step)


class PrimalFeed(NamedTuple):
  """What one primal step of `private_lagrangian` is given."""

  public: Batch
  secret: Batch
  key: jax.Array


@dataclasses.dataclass(frozen=True)
class PrivateRoundFeeds:
  """Samples and keys of some rounds, from keys by name."""

  sampler: PoissonSampler
  steps: int

  def __call__(
    self, keys: dict[str, jax.Array], start: Any, count: int
  ) -> tuple[PrimalFeed, jax.Array]:
    """Primal feeds [count, steps] and keys [count] of the dual steps."""
    shape = (count, self.steps)
    numbers = start * self.steps + jnp.arange(math.prod(shape))

    def numbered(key: jax.Array) -> jax.Array:
      return jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)

    # Both samples through one program: the sampler takes long to compile.
    pair = jnp.concatenate([numbered(keys["public"]), numbered(keys["secret"])])
    drawn = jax.vmap(lambda key: self.sampler.draw(key=key))(pair)
    public, secret = (
      jax.tree.map(lambda leaf, i=i: leaf.reshape(2, *shape, -1)[i], drawn) for i in range(2)
    )
    noises = numbered(keys["primal"]).reshape(shape)
    duals = jax.vmap(lambda r: jax.random.fold_in(keys["dual"], r))
    return (PrimalFeed(public, secret, noises), duals(start + jnp.arange(count)))
