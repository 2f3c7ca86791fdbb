"""Sums by cell: exact for millions, bounded, with discrete Gaussian noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import bit_attack
from jaxfair.accounting import _grid
from jaxfair.privacy import _grid_sums

KEY = jax.random.key(0)


def sums(values, cell, cells, *, bound=1.0, noise=0.0, key=KEY):
  return _grid_sums.noisy_sums(
    values, cell, cells, bound=bound, noise_multiplier=noise, sensitivity=math.sqrt(2), key=key
  )


@pytest.mark.parametrize("size", [1, 200, 5000])
def test_integers_are_added_exactly(size):
  rng = np.random.default_rng(size)
  values = rng.integers(-(2**30), 2**30, (size, 2)).astype(np.int32)
  cell = rng.integers(-1, 4, size)
  high, low = _grid_sums._sums(jnp.asarray(values), jnp.asarray(cell), 3)
  found = np.asarray(high, np.int64) * 2**32 + np.asarray(low, np.int64)
  for i in range(3):
    expected = values[cell == i].astype(np.int64).sum(axis=0)
    np.testing.assert_array_equal(found[i], expected)
  back = np.asarray(_grid_sums._as_float(_grid_sums.Wide(high, low)))
  np.testing.assert_allclose(back, found, rtol=3e-7)


@pytest.mark.slow
def test_sums_of_millions_do_not_drift():
  size = 4_000_000
  values = jnp.full((size, 1), 0.99)
  found = sums(values, jnp.zeros(size, jnp.int32), 1, noise=20.0)
  noise = 20 * math.sqrt(2)
  assert abs(float(found[0, 0]) / size - 0.99) < 1e-6 + 6 * noise / size


def test_values_are_cut_off_at_the_bound():
  values = jnp.array([[5.0], [-7.0], [jnp.inf], [0.25]])
  found = sums(values, jnp.arange(4), 4, bound=2.0)
  np.testing.assert_allclose(found[:, 0], [2, -2, 2, 0.25], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("multiplier", [0.5, 3.0, 40.0])
def test_noise_is_gaussian_and_not_below_what_is_promised(multiplier):
  values = jnp.ones((50, 3)) * 0.3
  keys = jax.random.split(jax.random.key(3), 4000)
  found = jax.vmap(
    lambda key: sums(values, jnp.arange(50) % 2, 2, bound=0.5, noise=multiplier, key=key)
  )(keys)
  sigma = multiplier * math.sqrt(2) * 0.5
  noise = (np.asarray(found, np.float64) - 7.5).ravel() / sigma
  assert stats.kstest(noise, "norm").pvalue > 1e-6
  assert abs(noise.std() - 1) < 6 / math.sqrt(2 * noise.size)


@pytest.mark.parametrize("multiplier", [1e-3, 0.07, 1.0, 3.3, 99.9, 1e4])
def test_the_multiplier_is_kept_in_whole_steps(multiplier):
  """M is rounded down, so STEPS / (D M) is never below the multiplier."""
  whole = int(_grid_sums.whole_steps(jnp.float32(multiplier), math.sqrt(6)))
  assert _grid_sums.STEPS / (math.sqrt(6) * whole) >= multiplier
  if multiplier > 1 / 16:
    assert _grid_sums.STEPS / (math.sqrt(6) * whole) <= multiplier * 1.001


def test_three_draws_make_a_discrete_gaussian():
  drawn = _grid_sums._discrete_gaussian(jax.random.key(5), (100_000,))
  scaled = np.asarray(drawn, np.float64) / _grid_sums.STEPS
  assert stats.kstest(scaled, "norm").pvalue > 1e-6
  for low_bits in (4, 8, 12):
    counts = np.bincount(np.asarray(drawn) % 2**low_bits)
    assert stats.chisquare(counts).pvalue > 1e-6
  # The law of the sum in small: width 4, as above.
  part, factor = 16, 4
  n = np.arange(-160, 161)
  law = np.exp(-(n**2) / (2 * part**2))
  law /= law.sum()
  spread = np.zeros(factor * 320 + 1)
  spread[::factor] = law
  both = np.convolve(spread, law)
  at = np.arange(len(both)) - len(both) // 2
  expected = np.exp(-(at**2) / (2 * part**2 * (1 + factor**2)))
  expected /= expected.sum()
  middle = np.abs(at) < 250
  np.testing.assert_allclose(both[middle], expected[middle], rtol=1e-9)


def test_the_distance_is_small_and_priced():
  distance = _grid_sums.distance(2048)
  assert distance < 1e-13
  extra = _grid.grid_delta(noise_multiplier=10.0, distance=distance)
  assert extra < 1e-12


@pytest.mark.slow
def test_bits_of_a_size_do_not_tell_it():
  """Sizes of 12 and 13 people under noise of 50, 1,000 releases."""
  values = np.float32([[12.0], [13.0]])
  keys = jax.random.split(jax.random.key(1), 1000)

  def released(size, keys):
    one = lambda key: sums(  # noqa: E731
      jnp.ones((size, 1)), jnp.zeros(size, jnp.int32), 1, noise=50 / math.sqrt(2), key=key
    )[0]
    return jax.vmap(one)(keys)

  ours = [released(12, keys[::2]), released(13, keys[1::2])]
  assert bit_attack.at_chance(bit_attack.wins(ours, values, 50.0), 1000)
  sparse = bit_attack.of_sparse_noise(values, 50.0, 500)
  assert bit_attack.wins(sparse, values, 50.0) > 650
