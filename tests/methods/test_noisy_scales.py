"""Scales found in noisy histograms: near the true ones, or none."""

import numpy as np
import pytest

from jaxfair.methods._counting import histogram
from jaxfair.methods._noisy_scales import MAGNITUDES, mean_and_deviation, second_grid

RNG = np.random.default_rng(0)


def found(values, sigma):
  """Mean and deviation by two histograms with normal noise; None where nothing stands out."""

  def noisy(edges):
    counts = histogram(values, edges)
    return counts + np.rint(RNG.normal(0, sigma, counts.size))

  grid = second_grid(noisy(MAGNITUDES), sigma)
  return None if grid is None else mean_and_deviation(noisy(grid[1:-1]), grid, sigma)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("middle", [0, 4])
def test_a_scale_that_no_single_bin_shows_is_found(scale, middle):
  values = scale * RNG.normal(middle, 1, 600)
  bins = histogram(values, MAGNITUDES)
  sigma = max(bins) / 4
  ratios = []
  for _ in range(40):
    told = found(values, sigma)
    if told is not None:
      ratios.append(told[1] / values.std())
  # With the fullest bin of noise and signal alone most were off by orders of magnitude.
  assert len(ratios) > 20
  assert np.mean((np.array(ratios) > 0.2) & (np.array(ratios) < 5)) > 0.9


def test_noise_alone_is_no_scale():
  # 183 sums of variance sigma^2: above 4 sigma with a chance below 0.6%, 16 of 600 below 1e-6.
  grids = [second_grid(np.rint(RNG.normal(0, 30, 123)), 30.0) for _ in range(600)]
  assert sum(grid is not None for grid in grids) < 16
  assert second_grid(histogram(RNG.normal(size=100), MAGNITUDES), 200.0) is None


def test_both_signs_are_in_the_range_of_a_centered_column():
  # One side alone passes five deviations now and then.
  for _ in range(20):
    mean, deviation = found(RNG.normal(size=480), 15.0)
    assert abs(mean) < 0.5
    assert 0.5 < deviation < 2


def test_bins_that_are_all_noise_leave_the_range():
  mean, deviation = mean_and_deviation(np.zeros(4), np.linspace(0, 8, 5), 10.0)
  assert mean == 4
  np.testing.assert_allclose(deviation, 8 / np.sqrt(12))  # of a uniform law
