"""Draws against exact distributions.

Tolerances: empirical frequencies of B draws are within sqrt(log(2 / p) / 2B) of
the probabilities (Hoeffding), but for a probability p. Here p = 1e-8.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair.fairness import _resampling


def hoeffding(num_draws, p=1e-8):
  return np.sqrt(np.log(2 / p) / (2 * num_draws))


def test_row_weights_are_multinomial():
  n, num_draws = 40, 20_000
  (weights,) = _resampling.row_weights(np.random.default_rng(0), n, num_draws)
  assert weights.shape == (num_draws, n)
  np.testing.assert_array_equal(weights.sum(axis=1), n)
  exact = stats.binom(n, 1 / n)
  for person in (0, 17, 39):
    for k in range(4):
      found = np.mean(weights[:, person] <= k)
      assert abs(found - exact.cdf(k)) < hoeffding(num_draws)
  # Drawing one person more often means drawing another less often.
  covariance = np.mean((weights[:, 0] - 1) * (weights[:, 1] - 1))
  assert abs(covariance + 1 / n) < 5.5 * np.sqrt(1.1 / num_draws)


@pytest.mark.parametrize(("num_draws", "size"), [(1000, 10), (7, 2**22), (3, 2**30)])
def test_chunks_bound_the_memory_and_cover_the_draws(num_draws, size):
  chunks = _resampling.chunk_sizes(num_draws, size)
  assert sum(chunks) >= num_draws
  assert sum(chunks) - num_draws < len(chunks)
  assert len(set(chunks)) == 1
  assert chunks[0] == 1 or chunks[0] * size <= 2**23


def test_tables_are_multinomial_and_start_with_the_sample():
  counts = np.array([[3, 0], [10, 7]])
  num_draws = 20_000
  (tables,) = _resampling.tables(np.random.default_rng(1), counts, num_draws)
  assert tables.shape == (num_draws + 1, 2, 2)
  np.testing.assert_array_equal(tables[0], counts)
  np.testing.assert_array_equal(tables.sum(axis=(1, 2)), 20)
  np.testing.assert_array_equal(tables[:, 0, 1], 0)
  for cell in ((0, 0), (1, 0), (1, 1)):
    exact = stats.binom(20, counts[cell] / 20)
    for k in (1, 3, 6, 9, 12):
      found = np.mean(tables[1:][:, *cell] <= k)
      assert abs(found - exact.cdf(k)) < hoeffding(num_draws)
  joint = np.mean((tables[1:, 0, 0] == 3) & (tables[1:, 1, 0] == 10))
  expected = stats.multinomial(20, [0.15, 0.5, 0.35]).pmf([3, 10, 7])
  assert abs(joint - expected) < hoeffding(num_draws)


def test_millions_of_people_are_drawn_with_the_right_spread():
  """Where float32 sampling is off by more than a percent."""
  n, num_draws = 10_000_000, 20_000
  counts = np.array([4_000_000, 6_000_000])
  (tables,) = _resampling.tables(np.random.default_rng(2), counts, num_draws)
  variance = np.var(tables[1:, 0].astype(np.float64))
  # A normal sample variance has relative standard error sqrt(2 / B).
  np.testing.assert_allclose(variance, n * 0.24, rtol=5.5 * np.sqrt(2 / num_draws))


def test_the_key_decides_the_stream():
  def stream(seed):
    return _resampling.generator_of(jax.random.key(seed)).random(3)

  np.testing.assert_array_equal(stream(0), stream(0))
  assert np.all(stream(0) != stream(1))
