"""Simulated biases against closed forms, and each other."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks, decisions
from jaxfair.decisions import _bias, _curvature, _problems
from jaxfair.decisions import _bias as module

KEY = jax.random.key(7)
# Of 10 normal numbers one beyond 6 standard errors: below 1e-7.
WIDE = 6.0
COUNTS = np.array([3.0, 40.0, 400.0, 5000.0, 30.0])
WEIGHTS = np.array([2.0, 1.0, 1.5, 1.0, 3.0])


def release(epsilon=0.5):
  return decisions.LaplaceRelease.for_epsilon(epsilon)


def test_errors_of_a_threshold_are_the_closed_form():
  x = np.array([3.0, 9.0, 10.0, 10.5, 30.0, 60.0])
  found = decisions.simulate(lambda x: x >= 10.0, x, release=release(), draws=20_000, key=KEY)
  exact = stats.laplace.cdf(-np.abs(x - 10.0), scale=2.0)
  spread = np.sqrt(exact * (1 - exact) / 20_000)
  assert np.all(np.abs(found.error - exact) <= WIDE * spread + 3 / 20_000)
  np.testing.assert_array_equal(found.error, np.abs(found.bias))
  assert found.is_rule
  assert np.all(found.standard_error > 0)  # also where no draw was wrong
  assert found.alpha <= 0.5 + WIDE * 0.5 / np.sqrt(20_000)


def test_gaussian_errors_of_a_threshold():
  x = np.array([9.0, 10.0, 12.0])
  found = decisions.simulate(
    lambda x: x >= 10.0, x, release=decisions.GaussianRelease(2.0), draws=20_000, key=KEY
  )
  exact = stats.norm.cdf(-np.abs(x - 10.0), scale=2.0)
  assert np.all(np.abs(found.error - exact) <= WIDE * 0.5 / np.sqrt(20_000))


def test_bias_of_clipping_is_the_closed_form():
  found = decisions.simulate(
    decisions.non_negative, COUNTS, release=release(0.1), draws=20_000, key=KEY
  )
  exact = decisions.clipped_laplace_mean(COUNTS, scale=10.0) - COUNTS
  # Clipping is plain addition far from 0: rounding is all that is left.
  assert np.all(np.abs(found.bias - exact) <= WIDE * found.standard_error + 1e-9)
  assert found.bias[0] > 3.0
  lam = 10.0
  np.testing.assert_allclose(found.variance[3], 2 * lam**2, rtol=0.1)


@pytest.mark.slow
def test_with_and_without_control_they_agree_and_control_is_sharper():
  problem = decisions.allotment(WEIGHTS)
  some = [
    decisions.simulate(problem, COUNTS, release=release(0.1), draws=5000, key=key, control=control)
    for key, control in zip(jax.random.split(KEY), (True, False), strict=True)
  ]
  spread = np.hypot(some[0].standard_error, some[1].standard_error)
  assert np.all(np.abs(some[0].bias - some[1].bias) <= WIDE * spread)
  assert np.all(some[0].standard_error < 0.3 * some[1].standard_error)
  np.testing.assert_allclose(some[0].error, some[1].error, rtol=0.1)


def test_simulated_biases_are_the_second_order_ones_for_small_noise():
  problem = decisions.allotment(WEIGHTS)
  noise = decisions.LaplaceRelease(scale=5.0)
  found = decisions.simulate(problem, COUNTS, release=noise, draws=20_000, key=KEY)
  predicted = _curvature.second_order_bias(
    _curvature.allotment_trace(COUNTS, weights=WEIGHTS), variance=noise.variance
  )
  # The next term is smaller by a factor of (noise over total)^2.
  share = np.sum(WEIGHTS**2) * noise.variance / np.sum(WEIGHTS * COUNTS) ** 2
  allowed = WIDE * found.standard_error + 20 * share * np.abs(predicted)
  assert np.all(np.abs(found.bias - predicted) <= allowed)
  assert np.abs(predicted / found.standard_error).max() > 20


@pytest.mark.slow
def test_draws_that_fill_no_whole_chunk_are_counted_once(monkeypatch):
  problem = decisions.allotment(WEIGHTS)

  def run():
    return decisions.simulate(problem, COUNTS, release=release(), draws=103, key=KEY)

  whole = run()
  monkeypatch.setattr(module, "CHUNK_NUMBERS", 5 * 10)
  parts = run()
  np.testing.assert_allclose(whole.bias, parts.bias, rtol=1e-9)
  np.testing.assert_allclose(whole.error, parts.error, rtol=1e-12)


@pytest.mark.slow
def test_one_program_for_all_weights_budgets_and_numbers_of_draws():
  def run(weights, epsilon, draws):
    problem = functools.partial(_problems.title_one, weights=weights)
    decisions.simulate(problem, COUNTS, release=release(epsilon), draws=draws, key=KEY)

  run(WEIGHTS, 0.5, 60_000)
  before = module._run._cache_size()
  run(2 * WEIGHTS, 0.1, 70_000)
  run(WEIGHTS[::-1].copy(), 1.0, 80_000)
  assert module._run._cache_size() == before


def test_alpha_and_disparity_by_hand():
  def made(is_rule):
    bias = np.array([-0.2, 0.1, 0.3])
    return _bias.NonPrivateBias(bias, bias, np.full(3, 0.01), bias, np.abs(bias), 100, is_rule)

  numbers, rule = made(False), made(True)
  assert numbers.alpha == pytest.approx(0.5)
  np.testing.assert_allclose(numbers.disparity, [0.5, 0.3, 0.5])
  assert rule.alpha == pytest.approx(0.2)
  np.testing.assert_allclose(rule.disparity, [0.1, 0.2, 0.2])
  low, high = numbers.alpha_interval()
  z = 2.3939797998185104  # standard normal quantile at 1 - 0.05 / 6
  assert (low, high) == pytest.approx((0.5 - 2 * z * 0.01, 0.5 + 2 * z * 0.01))
  assert made(False)._replace(standard_error=np.ones(3)).alpha_interval()[0] == 0


@pytest.mark.slow
def test_noise_of_your_own_and_trees_of_counts():
  def spread(counts, *, key):
    noisy = jax.tree.map(lambda x: x + 0.5, counts)
    keys = jax.random.split(key, len(noisy))
    return tuple(
      x + jax.random.uniform(k, x.shape, minval=-0.5, maxval=0.5)
      for x, k in zip(noisy, keys, strict=True)
    )

  counts = (np.array([10.0, 20.0]), np.array([1.0, 2.0]))
  found = decisions.simulate(lambda c: c[0] + c[1], counts, release=spread, draws=4000, key=KEY)
  assert np.all(np.abs(found.bias - 1.0) <= WIDE * found.standard_error)


def test_control_is_refused_where_it_would_be_wrong():
  with pytest.raises(checks.ArgumentError, match="unbiased = True"):
    decisions.simulate(
      lambda x: x,
      COUNTS,
      release=lambda c, *, key: jnp.maximum(c, 5.0),
      draws=4,
      key=KEY,
      control=True,
    )
