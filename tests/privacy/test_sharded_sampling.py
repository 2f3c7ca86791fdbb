import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair.checks import ArgumentError
from jaxfair.privacy._sharded_sampling import ShardedSampler

SIZE, RATE, SHARDS, DRAWS = 37, 0.2, 8, 4000
SAMPLER = ShardedSampler(SIZE, RATE, 5, SHARDS)


def taken(blocks, cap, draws=DRAWS, sampler=SAMPLER):
  """[draws, n] who takes part, drawn in so many blocks."""
  n = sampler.num_examples
  keys = jax.random.split(jax.random.key(0), draws)
  found = np.zeros((draws, n), int)
  each = jax.vmap(
    lambda block, key: sampler.draw_block(block, blocks=blocks, cap=cap, key=key), (0, None)
  )
  rows, mask = jax.jit(jax.vmap(each, (None, 0)))(jnp.arange(blocks), keys)
  step, block, _ = np.nonzero(mask)
  start, end = (np.arange(blocks) + np.array([[0], [1]])) * n // blocks
  row = np.asarray(rows)[np.nonzero(mask)] + start[block]
  assert np.all(row < end[block])  # neither padding nor people of another block
  np.add.at(found, (step, row), 1)
  assert found.max() <= 1
  return found


@pytest.fixture(scope="module")
def drawn():
  return taken(1, SIZE)


@pytest.mark.slow
def test_everybody_comes_with_the_same_probability(drawn):
  for count in drawn.sum(0):
    assert stats.binomtest(int(count), DRAWS, RATE).pvalue > 1e-8


def test_people_come_independently_within_and_across_shards(drawn):
  """Of any two people, both come with probability q^2."""
  both = drawn.T @ drawn
  pairs = both[np.triu_indices(SIZE, 1)]
  tail = stats.binom(DRAWS, RATE**2)
  assert np.all((tail.cdf(pairs) > 1e-10) & (tail.sf(pairs - 1) > 1e-10))


def test_shards_and_batches_have_binomial_sizes(drawn):
  starts = [shard * SIZE // SHARDS for shard in range(SHARDS)]
  sizes = np.add.reduceat(drawn, starts, axis=1)
  for shard, people in zip(sizes.T, np.diff([*starts, SIZE]), strict=True):
    expected = DRAWS * stats.binom(people, RATE).pmf(np.arange(people + 1))
    assert stats.chisquare(np.bincount(shard, minlength=people + 1), expected).pvalue > 1e-8
  assert abs(drawn.sum(1).var() / (SIZE * RATE * (1 - RATE)) - 1) < 6 * np.sqrt(2 / DRAWS)


@pytest.mark.slow
def test_the_people_do_not_depend_on_the_number_of_blocks(drawn):
  np.testing.assert_array_equal(taken(8, 5), drawn)


@pytest.mark.slow
def test_a_cap_leaves_people_out_and_invents_none(drawn):
  capped = taken(1, 8)
  assert np.all(capped <= drawn)
  np.testing.assert_array_equal(capped.sum(1), np.minimum(drawn.sum(1), 8))


def test_all_people_at_rate_one():
  everybody = dataclasses.replace(SAMPLER, rate=1.0)
  assert np.all(taken(4, 10, draws=2, sampler=everybody) == 1)


def test_starts_do_not_overflow():
  large = ShardedSampler(2**24 - 3, 1e-3, 2000, 64)
  shards = jnp.arange(65)
  assert np.asarray(large.start(shards)).tolist() == [s * (2**24 - 3) // 64 for s in range(65)]


def test_impossible_shards_are_refused():
  with pytest.raises(ArgumentError, match="shards=38 must be at least 1 and at most 37"):
    ShardedSampler(SIZE, RATE, 5, 38)
  with pytest.raises(ArgumentError, match="max_batch=0 must be at least 1; with shards it is"):
    ShardedSampler(SIZE, RATE, 0, SHARDS)
  with pytest.raises(ArgumentError, match="blocks=3 must divide shards=8"):
    SAMPLER.draw_block(0, blocks=3, cap=5, key=jax.random.key(0))
