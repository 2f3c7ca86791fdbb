import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from jaxfair import checks
from jaxfair.accounting import gaussian_sigma
from jaxfair.accounting._gaussian import _log_delta, gaussian_epsilon


def gaussian_delta(*, sigma, epsilon):
  return math.exp(_log_delta(1 / sigma, epsilon))


def exact_log_delta(mu, epsilon):
  """The formula of the paper, with enough digits to survive cancellation."""
  with mp.workdps(400):
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    first = mp.ncdf(mu / 2 - epsilon / mu)
    second = mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
    return mp.log(first - second)


@pytest.mark.slow
@pytest.mark.parametrize("mu", np.logspace(-7, 2, 19))
def test_log_delta_is_exact_down_to_1e_300(mu):
  checked = 0
  for epsilon in np.logspace(-6, 3, 19):
    if epsilon / mu - mu / 2 < 37:
      exact = float(exact_log_delta(mu, epsilon))
      assert _log_delta(mu, epsilon) == pytest.approx(exact, rel=5e-15)
      checked += 1
  assert checked or mu < 1e-6 / 37


def test_log_delta_goes_on_beyond_what_floats_can_hold():
  for mu, epsilon in [(1e-3, 1e3), (0.5, 900.0), (3.0, 1e3), (1e-9, 1.0)]:
    with mp.workdps(30):
      t = mp.mpf(epsilon) / mp.mpf(mu) - mp.mpf(mu) / 2
      # phi(t) (1/t^2 - 3/t^4 ...) to first order, for small mu
      first = mp.log(mp.npdf(t)) + mp.log(mp.mpf(mu) / t**2)
    assert _log_delta(mu, epsilon) == pytest.approx(float(first), rel=2e-4)


def test_delta_is_the_integral_of_its_definition():
  sigma, epsilon = 1.3, 0.7
  p, q = stats.norm(1.0, sigma), stats.norm(0.0, sigma)
  start = epsilon * sigma**2 + 0.5  # where p = e^epsilon q
  brute, _ = integrate.quad(
    lambda x: p.pdf(x) - math.exp(epsilon) * q.pdf(x), start, 30, epsabs=1e-14
  )
  assert gaussian_delta(sigma=sigma, epsilon=epsilon) == pytest.approx(brute, rel=1e-10)


def test_agrees_with_dp_accounting():
  import dp_accounting

  for epsilon in (0.01, 0.5, 3.0, 40.0):
    for delta in (1e-12, 1e-6, 0.01):
      theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
      ours = gaussian_sigma(epsilon=epsilon, delta=delta)
      assert ours == pytest.approx(theirs, rel=1e-9)
      again = dp_accounting.get_epsilon_gaussian(ours, delta)
      assert gaussian_epsilon(sigma=ours, delta=delta) == pytest.approx(again, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 10.0, 1e3])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-10, 1e-5, 0.1, 0.9])
def test_calibration_rounds_up_and_hardly(epsilon, delta):
  sigma = gaussian_sigma(epsilon=epsilon, delta=delta)
  target = math.log(delta)
  assert float(exact_log_delta(1 / sigma, epsilon)) <= target
  less = sigma * (1 - 1e-9)
  assert float(exact_log_delta(1 / less, epsilon)) > target


@given(st.floats(0.05, 100), st.floats(-200, -0.1))
def test_epsilon_rounds_up_and_hardly(sigma, log_delta):
  delta = math.exp(log_delta)
  epsilon = gaussian_epsilon(sigma=sigma, delta=delta)
  assert gaussian_delta(sigma=sigma, epsilon=epsilon) <= delta
  if epsilon > 1e-6:
    less = epsilon * (1 - 1e-8)
    assert gaussian_delta(sigma=sigma, epsilon=less) > delta * (1 - 1e-7)


def test_no_epsilon_is_needed_for_a_large_delta():
  assert gaussian_epsilon(sigma=100.0, delta=0.01) == 0.0
  just = gaussian_delta(sigma=3.0, epsilon=0.0)
  assert gaussian_epsilon(sigma=3.0, delta=just * 1.000001) == 0.0
  assert gaussian_epsilon(sigma=3.0, delta=just * 0.999) > 0.0


def test_only_sensitivity_over_sigma_counts():
  assert gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=3.0) == pytest.approx(
    3 * gaussian_sigma(epsilon=1.0, delta=1e-5), rel=1e-12
  )


def test_the_classical_formula_is_not_private_for_large_epsilon():
  epsilon, delta = 20.0, 1e-5
  classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
  assert gaussian_delta(sigma=classical, epsilon=epsilon) > 10 * delta


@pytest.mark.parametrize(
  ("call", "names"),
  [
    (lambda: gaussian_sigma(epsilon=0.0, delta=1e-5), "epsilon"),
    (lambda: gaussian_sigma(epsilon=-1.0, delta=1e-5), "epsilon"),
    (lambda: gaussian_sigma(epsilon=1.0, delta=0.0), "delta"),
    (lambda: gaussian_sigma(epsilon=1.0, delta=1.0), "delta"),
    (lambda: gaussian_sigma(epsilon=1.0, delta=0.1, sensitivity=0.0), "sensitivity"),
    (lambda: gaussian_epsilon(sigma=0.0, delta=1e-5), "sigma"),
  ],
)
def test_bad_arguments_are_named(call, names):
  with pytest.raises(checks.ArgumentError, match=names):
    call()


def test_noise_too_small_for_floats_is_one_line():
  with pytest.raises(checks.ArgumentError, match="raise sigma"):
    gaussian_epsilon(sigma=1e-320, delta=1e-5)
