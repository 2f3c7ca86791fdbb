import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from jaxfair import checks
from jaxfair.analysis import flip_probability, vote_margin


@pytest.mark.parametrize("sigma", [1.0, 7.0, 50.0, 400.0])
def test_two_classes_in_closed_form(sigma):
  counts = np.array([[200, 0], [0, 200], [130, 70], [100, 100], [101, 99]])
  found = flip_probability(counts, sigma=sigma)
  margins = abs(counts[:, 0] - counts[:, 1])
  exact = special.ndtr(-margins / (math.sqrt(2) * sigma))
  np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-300)
  assert found.dtype == np.float64


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3, 10, 100, 1000, 5000])
def test_a_tie_of_all_is_kept_once_in_so_many(classes):
  counts = np.full((2, classes), 4)
  found = flip_probability(counts, sigma=3.0)
  np.testing.assert_allclose(found, 1 - 1 / classes, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 10, 100])
def test_agrees_with_adaptive_quadrature(classes):
  rng = np.random.default_rng(classes)
  shares = rng.dirichlet(np.full(classes, 0.3), size=6)
  counts = rng.multinomial(250, shares)
  counts[0] = 0
  counts[0, -1] = 250  # unanimous
  for sigma in (5.0, 40.0):
    found = flip_probability(counts, sigma=sigma)
    for row, p in zip(counts, found, strict=True):
      assert p == pytest.approx(by_quadrature(row, sigma), abs=1e-11)


def by_quadrature(row, sigma):
  ranked = np.sort(row)
  gaps = (ranked[-1] - ranked[:-1]) / sigma

  def kept(z):
    return stats.norm.pdf(z) * np.prod(special.ndtr(z + gaps))

  points = np.linspace(-10, 10, 21)
  total = sum(integrate.quad(kept, a, b, epsabs=1e-14)[0] for a, b in itertools.pairwise(points))
  return 1 - total


def test_unanimous_votes_flip_more_often_with_more_classes():
  found = [flip_probability([[100] + [0] * rivals], sigma=50.0)[0] for rivals in (1, 2, 9)]
  assert found[0] == pytest.approx(1 - stats.norm.cdf(2 / math.sqrt(2)))
  assert found[0] < found[1] < found[2] < 9 * found[0]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_agrees_with_a_million_draws(classes):
  rng = np.random.default_rng(7)
  row = rng.multinomial(150, rng.dirichlet(np.full(classes, 2.0)))
  sigma, draws = 20.0, 10**6
  flipped = 0
  for _ in range(10):
    noise = rng.standard_normal((draws // 10, classes), dtype=np.float32)
    labels = np.argmax(row + np.float32(sigma) * noise, axis=1)
    flipped += np.sum(labels != np.argmax(row))
  [p] = flip_probability(row[None], sigma=sigma)
  assert 0.05 < p < 0.99
  # Five standard errors: a false alarm in 1.7 million.
  assert flipped / draws == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / draws))


@pytest.mark.slow
def test_slope_in_sigma():
  counts = [[150, 0], [90, 60], [75, 75]]
  margins = np.array([150, 30, 0])

  def flips(sigma):
    return flip_probability(counts, sigma=sigma)

  sigma = 40.0
  z = margins / (math.sqrt(2) * sigma)
  exact = z / sigma * stats.norm.pdf(z)
  for derivative in (jax.jacfwd, jax.jacrev):
    with jax.enable_x64(True):
      slope = np.asarray(derivative(flips)(sigma))
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope, exact, rtol=1e-11)
    rough = np.asarray(jax.jit(derivative(flips))(sigma))
    assert rough.dtype == np.float32
    np.testing.assert_allclose(rough, exact, rtol=1e-6)
  with jax.enable_x64(True):
    second = jax.jacfwd(jax.jacfwd(flips))(sigma)
  curve = exact * (z**2 - 2) / sigma
  np.testing.assert_allclose(second, curve, rtol=1e-10, atol=1e-15)


@pytest.mark.slow
def test_slope_with_many_classes():
  counts = np.random.default_rng(0).multinomial(200, np.full(20, 0.05), size=5)
  with jax.enable_x64(True):
    slope = jax.jacfwd(lambda s: flip_probability(counts, sigma=s))(9.0)
  high = flip_probability(counts, sigma=9.0 + 1e-4)
  low = flip_probability(counts, sigma=9.0 - 1e-4)
  np.testing.assert_allclose(slope, (high - low) / 2e-4, rtol=1e-6)


@pytest.mark.slow
def test_maps_over_sigmas_and_blocks():
  counts = np.random.default_rng(1).multinomial(60, [0.1] * 10, size=2000)
  sigmas = jnp.array([4.0, 9.0])
  mapped = jax.vmap(lambda s: flip_probability(counts[:7], sigma=s))(sigmas)
  for one, sigma in zip(mapped, (4.0, 9.0), strict=True):
    whole = flip_probability(counts, sigma=sigma)
    assert whole.shape == (2000,)
    np.testing.assert_allclose(one, whole[:7], rtol=1e-6)
    last = flip_probability(counts[-3:], sigma=sigma)
    np.testing.assert_allclose(whole[-3:], last, rtol=1e-13)
  assert flip_probability(np.zeros((0, 4), int), sigma=1.0).shape == (0,)
  assert not jax.config.jax_enable_x64


def test_margins():
  counts = [[5, 3, 2], [4, 4, 2], [0, 10, 0]]
  assert vote_margin(counts).tolist() == [2, 0, 10]
  traced = jax.jit(vote_margin)(jnp.array(counts))
  assert traced.tolist() == [2, 0, 10]


@pytest.mark.parametrize(
  ("counts", "sigma", "told"),
  [
    ([[3, 1.5]], 1.0, "counts"),
    ([[3, -1]], 1.0, "counts"),
    ([[3, 1], [3, 2]], 1.0, "same sum"),
    ([[3, 1]], 0.0, "sigma"),
    ([[3, 1]], [1.0, 2.0], "vmap"),
  ],
)
def test_bad_arguments_are_named(counts, sigma, told):
  with pytest.raises(checks.ArgumentError, match=told):
    flip_probability(counts, sigma=sigma)
