import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting import discrete_gaussian_sigma, gaussian_sigma, zcdp_budget, zcdp_epsilon
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._rdp import rdp_to_epsilon
from jaxfair.accounting._zcdp import discrete_gaussian_rho


@given(st.floats(1e-4, 50.0), st.floats(-40, -1))
def test_is_the_minimum_over_all_orders(rho, log_delta):
  delta = math.exp(log_delta)
  orders = 1 + np.logspace(-4, 5, 20001)
  brute = rdp_to_epsilon(rho * orders, orders, delta=delta)
  ours = zcdp_epsilon(rho=rho, delta=delta)
  assert ours <= brute * (1 + 1e-12)
  assert ours == pytest.approx(brute, rel=1e-5, abs=1e-9)


@given(st.floats(0.2, 50.0), st.floats(-40, -2))
def test_is_never_below_the_exact_gaussian(sigma, log_delta):
  delta = math.exp(log_delta)
  bound = zcdp_epsilon(rho=0.5 / sigma**2, delta=delta)
  assert bound >= gaussian_epsilon(sigma=sigma, delta=delta) * (1 - 1e-9)


def test_nothing_costs_nothing():
  assert zcdp_epsilon(rho=0.0, delta=1e-5) == 0.0
  assert zcdp_epsilon(rho=1e-12, delta=1e-5) == 0.0


def test_discrete_gaussian_bounds_its_own_loss_distribution():
  """Against the exact distribution of one integer count."""
  from dp_accounting.pld import privacy_loss_distribution as pld

  sigma, delta = 3.0, 1e-6
  exact = pld.from_discrete_gaussian_mechanism(sigma).get_epsilon_for_delta(delta)
  rho = discrete_gaussian_rho(sigma=sigma)
  assert rho == pytest.approx(1 / 18)
  assert exact <= zcdp_epsilon(rho=rho, delta=delta) <= 1.15 * exact


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.2])
def test_calibration_rounds_up_and_hardly(epsilon, delta):
  sigma = discrete_gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=2.0)

  def spent(s):
    rho = discrete_gaussian_rho(sigma=s, sensitivity=2.0)
    return zcdp_epsilon(rho=rho, delta=delta)

  assert spent(sigma) <= epsilon < spent(sigma * (1 - 1e-7))
  least = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=2.0)
  assert sigma >= least


def test_bad_arguments_are_named():
  with pytest.raises(checks.ArgumentError, match="rho"):
    zcdp_epsilon(rho=-1.0, delta=1e-5)
  with pytest.raises(checks.ArgumentError, match="delta"):
    zcdp_epsilon(rho=1.0, delta=0.0)
  with pytest.raises(checks.ArgumentError, match="sigma"):
    discrete_gaussian_rho(sigma=0.0)
  with pytest.raises(checks.ArgumentError, match="epsilon"):
    discrete_gaussian_sigma(epsilon=0.0, delta=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_budget_is_the_largest_rho_within_epsilon(epsilon):
  rho = zcdp_budget(epsilon=epsilon, delta=1e-6)
  assert zcdp_epsilon(rho=rho, delta=1e-6) <= epsilon
  assert zcdp_epsilon(rho=rho * 1.0001, delta=1e-6) > epsilon
