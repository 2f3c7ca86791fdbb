"""Poisson sampling: the law the accountant assumes, in one static shape."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxfair import checks
from jaxfair.privacy import _sampling
from jaxfair.privacy._sampling import PoissonSampler


def draw_many(sampler, count, seed=0):
  keys = jax.random.split(jax.random.key(seed), count)
  batch = jax.jit(jax.vmap(lambda k: sampler.draw(key=k)))(keys)
  return np.asarray(batch.rows), np.asarray(batch.mask)


def indicators(rows, mask, size):
  """[draws, n] who took part."""
  chosen = np.zeros((len(rows), size), bool)
  for i in range(len(rows)):
    chosen[i, rows[i][mask[i]]] = True
  return chosen


@pytest.mark.slow
@pytest.mark.parametrize(("size", "rate"), [(40, 0.1), (40, 0.5), (12, 0.95), (500, 0.01)])
def test_every_example_takes_part_independently_with_the_rate(size, rate):
  count = 20_000
  rows, mask = draw_many(PoissonSampler(size, rate, size), count)
  chosen = indicators(rows, mask, size)
  # Inclusion: a chi-square over examples; sizes: against the binomial law;
  # pairs: neighbors in row order must not attract or repel each other.
  variance = rate * (1 - rate) / count
  statistic = np.sum((chosen.mean(0) - rate) ** 2) / variance
  assert stats.chi2.sf(statistic, size) > 1e-6
  sizes = np.bincount(chosen.sum(1), minlength=size + 1)
  expected = stats.binom.pmf(np.arange(size + 1), size, rate) * count
  common = expected > 5
  statistic = np.sum((sizes - expected)[common] ** 2 / expected[common])
  assert stats.chi2.sf(statistic, common.sum()) > 1e-6
  both = (chosen & np.roll(chosen, 1, axis=1)).mean(0)
  spread = np.sqrt(rate**2 * (1 - rate**2) / count)
  assert np.all(np.abs(both - rate**2) < 6.5 * spread)


@pytest.mark.slow
def test_rows_are_distinct_and_mask_counts_them():
  rows, mask = draw_many(PoissonSampler(1000, 0.05, 90), 500)
  assert rows.shape == mask.shape == (500, 90)
  for r, m in zip(rows, mask, strict=True):
    assert len(set(r[m])) == m.sum()
    assert np.all(r[~m] == 0)
    assert np.all((r >= 0) & (r < 1000))


@pytest.mark.slow
def test_cap_cuts_without_preferring_anybody():
  count, size, rate, cap = 20_000, 30, 0.5, 15
  rows, mask = draw_many(PoissonSampler(size, rate, cap), count)
  assert mask.sum(1).max() == cap
  kept = indicators(rows, mask, size).mean(0)
  mean = np.minimum(np.arange(size + 1), cap) @ stats.binom.pmf(np.arange(size + 1), size, rate)
  expected = mean / size
  spread = np.sqrt(expected * (1 - expected) / count)
  assert np.all(np.abs(kept - expected) < 6.5 * spread)


@pytest.mark.slow
def test_cap_keeps_every_subset_equally_often():
  """All pairs of those who came, for a cap of two, against brute force."""
  count, size, rate = 60_000, 4, 0.6
  sampler = PoissonSampler(size, rate, 3)
  object.__setattr__(sampler, "max_batch", 2)  # below the mean, on purpose
  rows, mask = draw_many(sampler, count)
  seen = collections.Counter(tuple(sorted(r[m].tolist())) for r, m in zip(rows, mask, strict=True))
  law = collections.defaultdict(float)
  for come in itertools.product((False, True), repeat=size):
    who = [i for i in range(size) if come[i]]
    chance = rate ** len(who) * (1 - rate) ** (size - len(who))
    subsets = list(itertools.combinations(who, min(2, len(who))))
    for subset in subsets:
      law[subset] += chance / len(subsets)
  statistic = sum((seen[subset] - count * p) ** 2 / (count * p) for subset, p in law.items())
  assert stats.chi2.sf(statistic, len(law) - 1) > 1e-6
  assert set(seen) <= set(law)


def test_slots_are_hardly_ever_exceeded():
  for size, rate in ((35_000, 256 / 35_000), (50, 0.3), (10**7, 1e-6), (9, 0.9)):
    slots = _sampling.slots_for(size, rate)
    assert stats.binom.sf(slots, size, rate) < 2.0**-60
    assert slots <= size


def test_full_rate_takes_everybody():
  rows, mask = draw_many(PoissonSampler(9, 1.0, 9), 3)
  np.testing.assert_array_equal(rows, [np.arange(9)] * 3)
  assert mask.all()


def test_expected_size_is_a_public_constant():
  assert PoissonSampler(1000, 0.064, 200).expected_batch_size == 64.0


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_gaps_are_decided_by_all_64_bits(rate):
  """One below a threshold is a longer gap, and the threshold itself is not."""
  table = _sampling._thresholds(rate, 40)
  words = np.stack([table, table - np.uint64(1)])
  high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
  split = (jnp.asarray(w.astype(np.uint32).ravel()) for w in (high, low))
  gaps = _sampling._gaps(_sampling._random_words.Words(*split), rate, 40)
  number = np.arange(40)
  np.testing.assert_array_equal(gaps, np.concatenate([number, number + 1]))


@pytest.mark.slow
@given(
  rate=st.floats(1e-5, 0.999), words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=30)
)
@settings(max_examples=60, deadline=None)
def test_gaps_are_exact(rate, words):
  """Against Python's integers: gap = #{g >= 1: u < floor(2^64 (1-q)^g)}."""
  from fractions import Fraction

  limit = 400
  high = jnp.asarray([w >> 32 for w in words], jnp.uint32)
  low = jnp.asarray([w & 0xFFFFFFFF for w in words], jnp.uint32)
  gaps = _sampling._gaps(_sampling._random_words.Words(high, low), rate, limit)
  keep = 1 - Fraction(rate)
  powers, value = [], Fraction(1)
  for _ in range(limit):
    value *= keep
    powers.append(value * 2**64)
  # The table is floored at 128 bits; compare away from the last unit.
  for word, gap in zip(words, np.asarray(gaps), strict=True):
    exact = sum(word < power for power in powers)
    if all(abs(word - power) > 2 for power in powers):
      assert gap == exact


@pytest.mark.slow
def test_saturating_sum():
  steps = jnp.asarray([3, 1, 0, 7, 2, 2], jnp.int32)
  np.testing.assert_array_equal(_sampling._saturating_sum(steps, 10), [3, 4, 4, 11, 11, 11])
  huge = jnp.full(900, 2**30, jnp.int32)
  limit = 2**24 - 2
  assert np.all(_sampling._saturating_sum(huge, limit) == limit + 1)
  # Right up to the limit, and not one row further.
  steps = jnp.asarray([limit - 5, 2, 2, 1, 1, 1], jnp.int32)
  np.testing.assert_array_equal(
    _sampling._saturating_sum(steps, limit)[1:] - limit, [-3, -1, 0, 1, 1]
  )


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    ((10, 1.5, 10), "sampling_rate=1.5 must be in (0, 1]"),
    ((10, 0.0, 10), "sampling_rate=0.0"),
    ((10, 0.5, 4), "max_batch=4 must be at least 5"),
    ((10, 0.5, 11), "at most 10"),
    ((0, 0.5, 1), "num_examples=0"),
    ((2**28, 1e-6, 1000), "num_examples=268435456"),
  ],
)
def test_refused(arguments, told):
  with pytest.raises(checks.ArgumentError) as caught:
    PoissonSampler(*arguments)
  assert told in str(caught.value)
