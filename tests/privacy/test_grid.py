"""Noise on a grid: the law, the exact rounding, and what the grid costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from helpers import bit_attack
from jaxfair import checks
from jaxfair.privacy import exact, grid


def test_the_noise_is_gaussian_around_the_value():
  value = np.linspace(-5.0, 1e4, 3000)
  noisy = grid.gaussian(value, sigma=0.25, source=exact.seeded(1))
  assert stats.kstest((noisy - value) / 0.25, "norm").pvalue > 1e-6
  assert noisy.dtype == np.float64


def test_each_value_may_have_its_own_sigma():
  sigmas = np.tile([0.5, 8.0], 2000)
  noisy = grid.gaussian(np.zeros(4000), sigma=sigmas, source=exact.seeded(2))
  assert stats.kstest(noisy / sigmas, "norm").pvalue > 1e-6


def test_values_are_rounded_to_the_grid_before_the_noise():
  """Values within half a step give the same bits, and others do not."""
  sigma = 3.0
  step = Fraction(sigma) / grid.STEPS
  for base in (0, 7 * step, -(10**14) * step):
    near = [base, base + step * Fraction(2, 5), base - step * Fraction(2, 5)]
    values = np.array([*near, base + step], object)
    released = [
      grid.gaussian(np.array([v], object), sigma=sigma, source=exact.seeded(3)) for v in values
    ]
    assert released[0] == released[1] == released[2]
    assert base != 0 or released[0] != released[3]


def test_long_integers_and_shapes():
  big = np.array([[2**70, -(2**70)], [1, 0]], object)
  noisy = grid.gaussian(big, sigma=1.0, source=exact.seeded(4))
  assert noisy.shape == (2, 2)
  np.testing.assert_allclose(noisy, big.astype(float), rtol=1e-15, atol=8)


@pytest.mark.parametrize("count", [1, 10**4])
def test_sigma_counts_what_rounding_moves(count):
  sigma = grid.sigma_for(noise_multiplier=8.0, sensitivity=2.0, count=count)
  step = sigma / grid.STEPS
  assert sigma >= 8.0 * (2.0 + math.sqrt(count) * step)
  assert sigma == pytest.approx(16.0, rel=1e-6)
  with pytest.raises(checks.ArgumentError, match="too much for the grid"):
    grid.sigma_for(noise_multiplier=2.0**39, sensitivity=1.0, count=9)


@pytest.mark.parametrize("steps", [2, 5, 20])
def test_distance_bounds_that_to_rounded_gaussians(steps):
  n = np.arange(-40 * steps, 40 * steps + 1)
  discrete = np.exp(-(n**2) / (2 * steps**2))
  discrete /= discrete.sum()
  rounded = np.diff(stats.norm.cdf(np.append(n, n[-1] + 1) - 0.5, scale=steps))
  truth = 0.5 * np.abs(discrete - rounded).sum()
  bound = grid.distance(1, steps=steps)
  assert truth <= bound < 6 * truth


def test_distances_of_many_numbers_add_up():
  assert grid.distance(7) / grid.distance(1) == pytest.approx(7)
  assert grid.distance(0) == 0.0


def test_bits_of_single_counts_do_not_tell_the_value():
  """Float noise of 50 on one count decides many of 1,000 releases."""
  values = np.float32([[12.0], [13.0]])
  sparse = bit_attack.of_sparse_noise(values, 50.0, 500)
  assert bit_attack.wins(sparse, values, 50.0) > 650
  ours = [grid.gaussian(np.tile(v, (500, 1)), sigma=50) for v in values]
  assert bit_attack.at_chance(bit_attack.wins(ours, values, 50.0), 1000)


def test_what_is_no_number_is_refused():
  with pytest.raises(checks.ArgumentError, match="value"):
    grid.gaussian(np.array([1.0, np.nan]), sigma=1.0)
  with pytest.raises(checks.ArgumentError, match="sigma"):
    grid.gaussian(np.zeros(2), sigma=0.0)
