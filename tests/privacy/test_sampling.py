"""Poisson sampling: the law the accountant assumes, in one static shape."""

import collections
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
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


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2**24 - 2, 2**24 - 1, _sampling.MOST])
def test_saturating_sum(limit):
  steps = jnp.asarray([3, 1, 0, 7, 2, 2], jnp.int32)
  np.testing.assert_array_equal(_sampling._saturating_sum(steps, 10), [3, 4, 4, 11, 11, 11])
  huge = jnp.full(900, 2**30 + 7, jnp.int32)
  assert np.all(_sampling._saturating_sum(huge, limit) == limit + 1)
  # Right up to the limit, and not one row further.
  steps = jnp.asarray([limit - 5, 2, 2, 1, 1, 1], jnp.int32)
  np.testing.assert_array_equal(
    _sampling._saturating_sum(steps, limit)[1:] - limit, [-3, -1, 0, 1, 1]
  )


@pytest.mark.slow
def test_saturating_sum_beyond_float32():
  """Sums of up to 2^30 are exact, in each of the places that are added up apart."""
  steps = np.random.default_rng(0).integers(0, 2**18, 5000)
  steps[::3] %= 2**11
  expected = np.minimum(np.cumsum(steps), 2**30 + 1)
  assert expected[-1] > 2**28
  found = _sampling._saturating_sum(jnp.asarray(steps, jnp.int32), 2**30)
  np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_the_law_beyond_2_to_the_24_people():
  """Rows of a billion people: uniform, sorted, as many as the binomial law says."""
  size, rate, count = 10**9, 1e-7, 200
  rows, mask = draw_many(PoissonSampler(size, rate, 180), count)
  sizes = mask.sum(1)
  assert abs(sizes.sum() - 100 * count) < 6.5 * np.sqrt(100 * count)
  assert stats.kstest(rows[mask] / size, "uniform").pvalue > 1e-6
  # The last digits count as well: rows of float32 would be multiples of 64.
  last = np.bincount(rows[mask] % 64, minlength=64)
  assert stats.chisquare(last).pvalue > 1e-6
  assert all(np.all(np.diff(r[m].astype(np.int64)) > 0) for r, m in zip(rows, mask, strict=True))


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    ((10, 1.5, 10), "sampling_rate=1.5 must be in (0, 1]"),
    ((10, 0.0, 10), "sampling_rate=0.0"),
    ((10, 0.5, 4), "max_batch=4 must be at least 5"),
    ((10, 0.5, 11), "at most 10"),
    ((0, 0.5, 1), "num_examples=0"),
    ((2**30 + 1, 1e-6, 2000), "num_examples=1073741825"),
  ],
)
def test_refused(arguments, told):
  with pytest.raises(checks.ArgumentError) as caught:
    PoissonSampler(*arguments)
  assert told in str(caught.value)
