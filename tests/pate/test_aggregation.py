"""Noisy votes: frequencies against exact probabilities, and limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from jaxfair import checks, pate
from jaxfair.accounting._pate_threshold import log_answer_probability
from jaxfair.pate import _aggregation
from jaxfair.privacy import exact

DRAWS = 200_000
COUNTS = np.array([8, 5, 5, 2])
KEY = jax.random.key(3)
# Each frequency is a binomial share; six tests of up to five classes, and
# 6 standard deviations leave below 1e-7.
DEVIATIONS = 6.0


def repeated(counts):
  """One histogram, asked many times: independent draws in one call."""
  return np.tile(counts, (DRAWS, 1))


def agree(labels, expected):
  labels = np.asarray(labels)
  shift = 1 if labels.min() < 0 else 0
  found = np.bincount(labels + shift, minlength=len(expected)) / DRAWS
  margin = DEVIATIONS * np.sqrt(expected * (1 - expected) / DRAWS) + 1e-9
  assert (np.abs(found - expected) < margin).all(), (found, expected)


def real_argmax(counts, law):
  """Pr[class c has the largest noisy count], by quadrature."""

  def wins(c):
    def density(v):
      others = [law.cdf(v - n) for i, n in enumerate(counts) if i != c]
      return law.pdf(v - counts[c]) * math.prod(others)

    return integrate.quad(density, -80, 80, limit=400, points=list(counts))[0]

  return np.array([wins(c) for c in range(len(counts))])


def whole_argmax(counts, weight):
  """The same on the integers: ties go to each of the tied alike."""
  grid = np.arange(-150, 170)
  mass = np.array([weight(grid - n) for n in counts], float)
  mass /= mass.sum(axis=1, keepdims=True)
  below = np.cumsum(mass, axis=1) - mass
  result = np.zeros(len(counts))
  for c in range(len(counts)):
    others = [i for i in range(len(counts)) if i != c]
    # Coefficients over the number of others that tie with c at each value.
    ties = np.zeros((len(counts), grid.size))
    ties[0] = 1.0
    for i in others:
      ties[1:] = ties[1:] * below[i] + ties[:-1] * mass[i]
      ties[0] = ties[0] * below[i]
    share = ties / np.arange(1, len(counts) + 1)[:, None]
    result[c] = (mass[c] * share.sum(axis=0)).sum()
  np.testing.assert_allclose(result.sum(), 1.0, rtol=1e-12)
  return result


def discrete_gaussian(sigma):
  return lambda n: np.exp(-(n**2) / (2 * sigma**2))


@pytest.mark.slow
def test_gnmax_has_the_frequencies_of_discrete_noise():
  labels = pate.gnmax(repeated(COUNTS), sigma=2.0, key=KEY)
  agree(labels, whole_argmax(COUNTS, discrete_gaussian(2.0)))


@pytest.mark.slow
def test_gnmax_has_the_frequencies_of_real_noise():
  labels = pate.gnmax(repeated(COUNTS), sigma=2.5, key=KEY, continuous=True)
  agree(labels, real_argmax(COUNTS, stats.norm(scale=2.5)))


@pytest.mark.slow
def test_confident_answers_have_their_frequencies():
  labels = _aggregation.confident_gnmax(
    repeated(COUNTS), threshold=9.5, sigma_threshold=3.0, sigma_answer=1.5, key=KEY
  )
  grid = np.arange(-100, 100)
  mass = discrete_gaussian(3.0)(grid)
  passes = mass[grid + COUNTS.max() >= 9.5].sum() / mass.sum()
  answers = whole_argmax(COUNTS, discrete_gaussian(1.5))
  agree(labels, np.array([1 - passes, *(passes * answers)]))


@pytest.mark.parametrize("threshold", [0.55 * 100, 0.58 * 100, 0.29 * 100, 55, 54.5, 55 + 2.0**-40])
def test_a_share_of_the_teachers_is_the_threshold_that_is_priced(threshold):
  # 0.55 * 100 is above 55 in float64, and 55 in float32: 55 votes must not reach it.
  other = np.arange(73) // 2
  counts = np.stack([100 - np.arange(73), other, np.arange(73) - other], axis=1)
  noise = {"threshold": threshold, "sigma_threshold": 0.01, "sigma_answer": 1.0}
  given = np.asarray(_aggregation.confident_gnmax(counts, **noise, key=KEY)) != pate.NO_ANSWER
  np.testing.assert_array_equal(given, counts.max(axis=1) >= threshold)
  released = pate.ConfidentGnMax(**noise).passes(counts, exact.seeded(0))
  np.testing.assert_array_equal(given, released)
  priced = log_answer_probability(counts, threshold=threshold, sigma=0.01, discrete=True)
  np.testing.assert_array_equal(given, priced > -1)


def test_unanimous_votes_flip_as_the_normal_law_says():
  sigma, k = 20.0, 30
  labels = pate.gnmax(repeated(np.array([k, 0])), sigma=sigma, key=KEY, continuous=True)
  flip = stats.norm.sf(k / (math.sqrt(2) * sigma))
  agree(labels, np.array([1 - flip, flip]))


def test_ties_are_broken_fairly():
  labels = _aggregation.plurality(repeated(np.array([3, 7, 7, 1, 7])), key=KEY)
  agree(labels, np.array([0, 1, 1, 0, 1]) / 3)


def test_noise_of_the_test_and_of_the_answer_is_fresh():
  """Were it shared, a passed test would favor the largest count."""
  counts = np.array([6, 5])
  labels = _aggregation.confident_gnmax(
    repeated(counts), threshold=12, sigma_threshold=4.0, sigma_answer=4.0, key=KEY, continuous=True
  )
  answered = np.asarray(labels)[np.asarray(labels) >= 0]
  expected = stats.norm.cdf(1 / (math.sqrt(2) * 4.0))
  deviation = math.sqrt(expected * (1 - expected) / answered.size)
  assert abs(np.mean(answered == 0) - expected) < DEVIATIONS * deviation


def test_the_test_s_noise_is_not_the_stream_of_the_answer_s():
  """With one class both would be drawn from the same counters."""
  draws = _aggregation.confident_draws(
    jnp.full((2000, 1), 50),
    threshold=50.0,
    sigma_threshold=5.0,
    sigma_answer=5.0,
    key=KEY,
    continuous=True,
  )
  same = np.asarray(draws.confident) == (np.asarray(draws.noisy)[:, 0] >= 50)
  assert abs(same.mean() - 0.5) < DEVIATIONS * 0.5 / math.sqrt(2000)


@pytest.mark.slow
def test_without_noise_all_are_the_plurality():
  counts = np.array([[5, 1, 2], [0, 3, 5], [1, 7, 0]])
  expected = counts.argmax(axis=1)
  for labels in (
    pate.gnmax(counts, sigma=0, key=KEY),
    pate.gnmax(counts, sigma=0.0, key=KEY, continuous=True),
    _aggregation.plurality(counts, key=KEY),
    _aggregation.confident_gnmax(counts, threshold=5, sigma_threshold=0, sigma_answer=0, key=KEY),
  ):
    np.testing.assert_array_equal(labels, expected)
  some = _aggregation.confident_gnmax(
    counts, threshold=6, sigma_threshold=0, sigma_answer=0, key=KEY
  )
  np.testing.assert_array_equal(some, [-1, -1, 1])


@pytest.mark.slow
def test_soft_labels_are_noisy_shares():
  counts = np.tile([6, 3, 1], (60_000, 1))
  for continuous in (False, True):
    weights = pate.soft_labels(counts, sigma=4.0, key=KEY, continuous=continuous)
    noise = np.asarray(weights) * 10 - [6, 3, 1]
    if not continuous:
      np.testing.assert_allclose(noise, np.round(noise), atol=1e-4)
    assert np.abs(noise.mean(axis=0)).max() < DEVIATIONS * 4 / math.sqrt(60_000)
    # The variance of n normal squares is 2 / n.
    apart = np.abs(noise.var() / 16 - 1)
    assert apart < DEVIATIONS * math.sqrt(2 / 180_000)


def test_projection_is_the_nearest_point_of_the_simplex():
  rng = np.random.default_rng(0)
  weights = rng.normal(scale=0.7, size=(6, 4)).astype(np.float32)
  found = np.asarray(_aggregation.project_to_simplex(weights))
  np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
  for row, projected in zip(weights, found, strict=True):
    # At the optimum all that is kept was lowered by the same amount.
    shift = optimize.brentq(lambda t, row=row: np.maximum(row - t, 0).sum() - 1, -5, 5)
    np.testing.assert_allclose(projected, np.maximum(row - shift, 0), atol=1e-6)
  inside = np.array([[0.2, 0.3, 0.5]], np.float32)
  np.testing.assert_allclose(_aggregation.project_to_simplex(inside), inside, atol=1e-6)


@pytest.mark.slow
def test_rules_map_over_seeds_and_compile():
  counts = np.array([[5, 4, 0], [1, 2, 6]])
  keys = jax.random.split(KEY, 5)
  rules = [
    lambda c, k: pate.soft_labels(c, sigma=3.0, key=k),
    lambda c, k: _aggregation.confident_gnmax(
      c, threshold=4, sigma_threshold=3.0, sigma_answer=2.0, key=k
    ),
  ]
  for rule in rules:
    many = jax.jit(jax.vmap(rule, in_axes=(None, 0)))(counts, keys)
    single = jnp.stack([rule(counts, key) for key in keys])
    np.testing.assert_allclose(many, single, rtol=1e-6)


@pytest.mark.slow
def test_real_noise_maps_over_sigmas():
  counts = np.array([[5, 4], [1, 2]])
  sigmas = jnp.array([0.0, 1.0, 100.0])
  many = jax.vmap(lambda s: pate.gnmax(counts, sigma=s, key=KEY, continuous=True))(sigmas)
  for sigma, labels in zip(sigmas, many, strict=True):
    one = pate.gnmax(counts, sigma=float(sigma), key=KEY, continuous=True)
    np.testing.assert_array_equal(labels, one)


def test_another_sigma_of_real_noise_compiles_nothing():
  counts = np.array([[5, 4], [1, 2]])
  pate.gnmax(counts, sigma=1.0, key=KEY, continuous=True)
  size = _aggregation._fair_argmax._cache_size()
  pate.gnmax(counts, sigma=2.0, key=KEY, continuous=True)
  assert _aggregation._fair_argmax._cache_size() == size


def test_traced_sigmas_need_real_noise():
  with pytest.raises(checks.ArgumentError, match="or continuous=True to map"):
    jax.jit(lambda s: pate.gnmax(np.ones((2, 2), int), sigma=s, key=KEY))(1.0)


@pytest.mark.parametrize(
  ("counts", "told"),
  [
    (np.array([3, 4]), "counts has shape"),
    (np.array([[3.0, 4.5]]), "votes are whole"),
    (np.array([[3, -1]]), "counts=-1.0 must be in"),
  ],
)
def test_what_is_no_histogram_is_refused(counts, told):
  for rule in (
    lambda: pate.gnmax(counts, sigma=1.0, key=KEY),
    lambda: _aggregation.plurality(counts, key=KEY),
    lambda: pate.soft_labels(counts, sigma=1.0, key=KEY),
  ):
    with pytest.raises(checks.ArgumentError, match=told):
      rule()


def test_other_impossible_requests_are_refused():
  counts = np.array([[3, 2], [5, 0]])
  with pytest.raises(checks.ArgumentError, match="above the 5 teachers"):
    _aggregation.confident_gnmax(
      counts, threshold=6, sigma_threshold=0.0, sigma_answer=1.0, key=KEY
    )
  with pytest.raises(checks.ArgumentError, match=r"sigma=-1.0 must be"):
    pate.gnmax(counts, sigma=-1.0, key=KEY)
  with pytest.raises(checks.ArgumentError, match="rows with different sums"):
    pate.soft_labels(counts * np.array([[1], [2]]), sigma=1.0, key=KEY)
  with pytest.raises(checks.ArgumentError, match="key is an array of 2 keys"):
    pate.gnmax(counts, sigma=1.0, key=jax.random.split(KEY))
