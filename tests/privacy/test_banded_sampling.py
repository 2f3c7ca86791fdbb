"""Samples of one part at a time: who may take part, how often, and what the cap does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.privacy._banded_sampling import BandedSampler


def took_part(sampler, steps, seed=0):
  """[steps, n] who is in which batch."""
  key_deal, key_draw = jax.random.split(jax.random.key(seed))

  @jax.jit
  def run():
    parts = sampler.deal(key=key_deal)
    keys = jax.random.split(key_draw, steps)
    draw = jax.vmap(lambda step, key: sampler.draw(parts, step, key=key))
    return parts, draw(jnp.arange(steps), keys)

  parts, (rows, mask) = run()
  assert rows.shape == (steps, sampler.max_batch)
  found = np.zeros((steps, sampler.num_examples), int)
  for step in range(steps):
    np.add.at(found[step], np.asarray(rows[step])[np.asarray(mask[step])], 1)
  return parts, found


def test_nobody_takes_part_twice_within_as_many_steps_as_there_are_bands():
  sampler = BandedSampler(300, 0.1, 300, 7)
  parts, found = took_part(sampler, 70)
  assert found.max() == 1
  assert sorted(np.asarray(parts.rows)) == list(range(300))
  windows = np.lib.stride_tricks.sliding_window_view(found, 7, axis=0)
  assert windows.sum(axis=-1).max() == 1
  # Each person's steps are one class of numbers modulo 7, which is the part.
  starts = np.asarray(parts.starts)
  for part in range(7):
    own = np.asarray(parts.rows)[starts[part] : starts[part + 1]]
    assert not found[np.arange(70) % 7 != part][:, own].any()


def test_members_are_drawn_at_the_rate_times_the_bands_independently():
  sampler = BandedSampler(400, 0.05, 400, 4)
  steps = 2000
  parts, found = took_part(sampler, steps)
  # 500 chances of 0.2 each, for 400 people; then the sizes over steps of one part.
  counts = found.sum(axis=0)
  law = stats.binom(steps // 4, 0.2)
  total = counts.sum()
  assert abs(total - 400 * law.mean()) < 6 * np.sqrt(400 * law.var())
  assert np.all(np.abs(counts - law.mean()) < 6.5 * law.std())
  assert abs(counts.var() / law.var() - 1) < 6 * np.sqrt(2 / 400)
  for part in range(4):
    members = int(parts.starts[part + 1] - parts.starts[part])
    sizes, law_of = found[part::4].sum(axis=1), stats.binom(members, 0.2)
    assert abs(sizes.mean() - law_of.mean()) < 6 * law_of.std() / np.sqrt(500)
    assert abs(sizes.var() / law_of.var() - 1) < 6 * np.sqrt(2.1 / 500)


def test_parts_are_drawn_for_each_person_independently():
  """Sizes are Binomial(n, 1 / b), and not equal: one person more moves nobody else."""
  sampler = BandedSampler(200, 0.02, 200, 5)
  deal = jax.jit(jax.vmap(lambda key: sampler.deal(key=key)))
  parts = deal(jax.random.split(jax.random.key(0), 2000))
  sizes, law = np.diff(parts.starts, axis=1), stats.binom(200, 0.2)
  assert np.all(sizes.sum(axis=1) == 200)
  assert np.all(np.abs(sizes.mean(axis=0) - law.mean()) < 6 * law.std() / np.sqrt(2000))
  assert np.all(np.abs(sizes.var(axis=0) / law.var() - 1) < 6 * np.sqrt(2 / 2000))


def test_a_batch_has_the_size_that_the_cap_is_priced_for():
  """Over parts and coins, Binomial(n, q)."""
  sampler = BandedSampler(100, 0.1, 100, 8)

  def size(key):
    key_deal, key_draw = jax.random.split(key)
    parts = sampler.deal(key=key_deal)
    return jnp.sum(sampler.draw(parts, 3, key=key_draw).mask)

  sizes = np.asarray(jax.jit(jax.vmap(size))(jax.random.split(jax.random.key(0), 4000)))
  law = stats.binom(100, 0.1)
  cuts = [6, 8, 9, 10, 11, 12, 14]
  observed = np.histogram(sizes, [-1, *[c + 0.5 for c in cuts], 101])[0]
  expected = np.diff([0, *law.cdf(cuts), 1]) * 4000
  assert stats.chisquare(observed, expected).pvalue > 1e-6


@pytest.mark.parametrize("bands", [4, 10])
def test_a_cap_keeps_a_uniformly_random_part(bands):
  """Also at rate one, 10 parts of a tenth."""
  sampler = BandedSampler(200, 0.1, 20, bands)
  _, found = took_part(sampler, 1200)
  sizes = found.sum(axis=1)
  assert sizes.max() == 20
  assert np.mean(sizes == 20) > 0.3
  parts, _ = took_part(sampler, 1)
  starts, counts = np.asarray(parts.starts), found.sum(axis=0)
  for part in range(bands):  # first and last rows of a part alike
    own = counts[np.asarray(parts.rows)[starts[part] : starts[part + 1]]]
    half = len(own) // 2
    spread = np.sqrt(own[: 2 * half].sum())
    assert abs(own[:half].sum() - own[half : 2 * half].sum()) < 6 * spread


def test_too_many_bands_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"bands=11 .*at most 10.*smaller batch_size"):
    BandedSampler(200, 0.1, 40, 11)
  assert BandedSampler(60000, 600 / 60000, 700, 100).bands == 100
