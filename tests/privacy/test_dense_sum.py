"""Sums with dense noise: no bit of the value is left in the result's last."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import bit_attack
from helpers.quick_compile import as_users
from jaxfair.privacy import _dense_sum, _random_words, noise

FALSE_ALARM = 1e-6


def parts(key, count, sigma=1.0):
  """Coarse and fine noise in steps, and the step, in float64."""
  words = _random_words.random_words(key, count)
  raised = jnp.float32(sigma) * np.float32(1 + _dense_sum.RAISED)
  step = _dense_sum.grid_step(raised)
  coarse, fine = as_users(lambda w, s: (_dense_sum.coarse_steps(w, s), _dense_sum.fine_steps(w)))(
    words, raised / step
  )
  return np.float64(coarse), np.float64(fine), np.float64(step)


@pytest.mark.parametrize("sigma", [1.0, 0.3, 5e-7, 2e6])
def test_the_compiled_sum_is_that_of_integers(sigma):
  """A compiler that reorders sums, or fuses them, would lose the fine part."""
  rng, key = np.random.default_rng(0), jax.random.key(3)
  spread = sigma * 10.0 ** rng.uniform(-6, 4, size=20_000)
  value = np.float32(rng.normal(size=20_000) * spread)
  add_noise = functools.partial(noise.gaussian, sigma=float(np.float32(sigma)))
  noisy = as_users(lambda v, k: add_noise(v, key=k))(value, key)
  coarse, fine, step = parts(key, 20_000, sigma)
  integers = np.round(value.astype(np.float64) / step) + coarse + fine
  np.testing.assert_array_equal(noisy, np.float32(integers * step))
  assert sigma * 2.0**-30 <= step <= sigma * 2.0**-29


def test_the_fine_part_is_a_triangle_of_its_own():
  coarse, fine, _ = parts(jax.random.key(8), 500_000)
  law = stats.triang(0.5, loc=-(2**17), scale=2**18)
  assert stats.kstest(fine, law.cdf).pvalue > FALSE_ALARM
  bound = 5 / np.sqrt(len(fine))
  for other in (coarse, np.abs(coarse), coarse**2, np.roll(fine, 1)):
    assert abs(np.corrcoef(fine, other)[0, 1]) < bound


@pytest.mark.slow
def test_small_draws_are_not_from_few_values():
  """Of 2^20 draws with |z| < 0.67 next to none have the same bits.

  Coarse ones come from 2^23 uniforms and a sign: 3% are repetitions.
  """
  coarse, fine, step = parts(jax.random.key(9), 2**21)
  small = np.abs(coarse * step) < 0.67
  assert small.sum() > 2**19.9
  assert len(np.unique(coarse[small])) < 0.98 * small.sum()
  pairs = coarse[small].astype(np.int64) * 2**20 + fine[small].astype(np.int64)
  # A triangle of 2^18 integers at each of 2^24: 2^41 pairs, of which two draws
  # share one with probability 2^-41; about 0.25 such among 2^39 pairs.
  assert len(np.unique(pairs)) >= small.sum() - 8


@pytest.mark.slow
@pytest.mark.parametrize("place", [0.0, 0.3, 0.674, 1.5, 3.0, 4.0])
def test_every_step_is_as_probable_as_the_normal_law_says(place):
  """All uniforms around a place, not a sample.

  The map of uniforms to draws is off by a relative 2^-11 in its slope, and
  smoothly: neighboring grid steps differ by much less.
  """
  width = 2.0**-12
  low, high = (2 * stats.norm.sf(max(0.0, place + side * 1.2 * width)) for side in (1, -1))
  low, high = (np.float32(u).view(np.int32) for u in (low, min(high, 1.0)))
  uniform = np.arange(low, high + 1, dtype=np.int32).view(np.float32)
  # Each float stands for what is rounded to it; the last also for 1.
  middle = (uniform[1:].astype(np.float64) + uniform[:-1]) / 2
  ends = (uniform[0], 1.0 if place == 0 else uniform[-1])
  weight = np.diff(np.concatenate([ends[:1], middle, ends[1:]]))
  uniform = np.minimum(uniform, np.float32(1 - 2.0**-24))
  atoms = np.round(np.float64(bit_attack.magnitudes(uniform)) * 2.0**29)
  if place == 0.0:
    atoms, weight = np.append(atoms, -atoms), np.append(weight, weight)
  # Pr[U + V = n]: boxes of 2^17 integers from 0, 4, 8, ... on.
  starts = np.arange(2**18) // 4 + 1
  law = np.minimum(starts, 2**15) - np.maximum(0, starts - 2**15)
  law = law / 2.0**32
  center = round(place * 2**29)
  steps = center + np.arange(-64, 65)
  index = (steps[:, None] - atoms + 2**17).astype(np.int64)
  inside = (index >= 0) & (index < len(law))
  found = np.where(inside, law[np.where(inside, index, 0)], 0) @ (weight / 2)
  expected = stats.norm.pdf(steps / 2**29) / 2**29
  np.testing.assert_allclose(found, expected, rtol=2.0**-11)
  assert np.abs(np.diff(found / expected)).max() < 2.0**-16


@pytest.mark.slow
@pytest.mark.parametrize(("value", "least"), [(0.0, 950), (1e-3, 950), (0.37, 950), (3.0, 650)])
def test_bits_of_dense_sums_do_not_tell_the_value(value, least):
  """1,000 releases of 20 numbers, and an observer with two candidates."""
  values = np.float32([[value] * 20, [value + 2e-3] * 20])
  sparse = bit_attack.of_sparse_noise(values, 1.0, 500)
  assert bit_attack.wins(sparse, values, 1.0) > least
  keys = jax.random.split(jax.random.key(1), 1000)
  ours = [
    jax.vmap(lambda key, v=v: noise.gaussian(v, sigma=1.0, key=key))(keys[i::2])
    for i, v in enumerate(values)
  ]
  assert bit_attack.at_chance(bit_attack.wins(ours, values, 1.0), 1000)


@pytest.mark.slow
def test_neighboring_results_are_equally_frequent():
  """The last bits of results from 0 and from 1 have the same law: uniform."""
  for value in (0.0, 1.0):
    noisy = noise.gaussian(jnp.full(2_000_000, value), sigma=1.0, key=jax.random.key(1))
    near = np.asarray(noisy, np.float64)
    near = near[np.abs(near) < 2.0**-5] * 2.0**29
    np.testing.assert_array_equal(near, np.round(near))
    counts = np.bincount(near.astype(np.int64) % 16, minlength=16)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_leaves_are_drawn_in_any_grouping_alike():
  """Large leaves alone, small ones together, and the same stream."""
  sizes = (3, 5000, 7, 9000, 4096, 20, 4500, 6000, 1)
  leaves = [jnp.zeros(size) for size in sizes]
  key = jax.random.key(5)
  found = noise.gaussian(leaves, sigma=2.0, key=key)
  whole = noise.gaussian(jnp.zeros(sum(sizes)), sigma=2.0, key=key)
  np.testing.assert_array_equal(np.concatenate(found), whole)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads CPU kernels")
def test_the_cipher_runs_once_for_two_readers():
  """Moments of an optimizer read the noisy sum twice."""

  @jax.jit
  def twice(value, sigma, key):
    noisy = noise.gaussian(value, sigma=sigma, key=key)
    return 0.9 * noisy + 0.1, 0.99 * noisy * noisy

  program = twice.lower(jnp.zeros(9000), jnp.float32(2), jax.random.key(0))
  text = program.compile().as_text()
  rotations = text.count("shift-right-logical")
  once = jax.jit(lambda v, s, k: noise.gaussian(v, sigma=s, key=k))
  alone = once.lower(jnp.zeros(9000), jnp.float32(2), jax.random.key(0))
  assert rotations == alone.compile().as_text().count("shift-right-logical")
