"""Normal draws: exact map, moments, tails, independence of counters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair.privacy import _normal, _random_words

DRAWS = 4_000_000


@pytest.fixture(scope="module")
def draws():
  return np.asarray(_normal.normal(jax.random.key(7), (DRAWS,)), np.float64)


def test_map_agrees_with_scipy_down_to_the_tail():
  """|z| is the inverse survival function of the uniform number."""
  uniform = np.concatenate(
    [np.logspace(-18.9, -1, 4000), np.linspace(0.1, 1 - 2.0**-24, 4000)]
  ).astype(np.float32)
  squared = -2.0 * jnp.log(jnp.asarray(uniform))
  t = jnp.sqrt(squared)
  value = squared * _normal._polynomial(_normal._NUMERATOR, t)
  value /= _normal._polynomial(_normal._DENOMINATOR, t)
  expected = stats.norm.isf(uniform.astype(np.float64) / 2)
  # A few units in the last place of float32, plus that of the logarithm near 1.
  np.testing.assert_allclose(value, expected, rtol=2e-6, atol=2e-7)


@pytest.mark.slow
def test_moments(draws):
  # Six standard errors: Var z^k / n for k = 1..4.
  for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
    error = 6 * np.sqrt(variance / DRAWS)
    assert abs(np.mean(draws**power) - mean) < error, power


def test_distribution(draws):
  assert stats.kstest(draws[:500_000], "norm").pvalue > 1e-6


def test_tails_exceed_what_jax_can_draw():
  """Words with tiny magnitudes map beyond 5.42, the limit of a 23-bit grid."""
  for high, low, expected in ((0, 0, 9.0), (0, 2**31, 6.3), (2, 0, 6.2)):
    words = _random_words.Words(jnp.array([high], jnp.uint32), jnp.array([low], jnp.uint32))
    squared = -2 * jnp.log(_random_words.unit_interval(words))
    value = squared * _normal._polynomial(_normal._NUMERATOR, jnp.sqrt(squared))
    value /= _normal._polynomial(_normal._DENOMINATOR, jnp.sqrt(squared))
    assert float(value[0]) > expected


def test_tail_frequencies(draws):
  for cut in (3.0, 4.0, 4.5):
    expected = 2 * stats.norm.sf(cut)
    seen = np.sum(np.abs(draws) > cut)
    low, high = stats.poisson.interval(1 - 1e-7, expected * DRAWS)
    assert low <= seen <= high, cut


def test_signs_are_independent_of_magnitudes(draws):
  large = np.abs(draws) > 0.6745  # half of them
  share = np.mean(draws[large] > 0)
  assert abs(share - 0.5) < 6 * 0.5 / np.sqrt(large.sum())


@pytest.mark.slow
def test_leaves_share_a_key_without_overlap():
  key = jax.random.key(0)
  whole = _normal.normal(key, (10, 10))
  second = _normal.normal(key, (5, 4), start=80)
  np.testing.assert_array_equal(whole.reshape(-1)[80:], second.reshape(-1))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="counts CPU kernels")
def test_the_cipher_runs_once_per_draw():
  """One fused kernel; a second one would run the cipher again."""
  draw = jax.jit(lambda key: _normal.normal(key, (4096,)))
  program = draw.lower(jax.random.key(0)).compile().as_text()
  assert program[program.index("ENTRY") :].count(" fusion(") == 1
