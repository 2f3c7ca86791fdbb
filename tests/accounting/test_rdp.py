import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon

ORDERS = np.array(DEFAULT_ORDERS)


def test_default_orders_are_dp_accountings():
  from dp_accounting.rdp import rdp_privacy_accountant as theirs

  assert list(DEFAULT_ORDERS) == list(theirs.DEFAULT_RDP_ORDERS)


@given(st.floats(1e-6, 100.0), st.floats(-60, -0.5), st.floats(0.5, 2.0))
def test_tight_agrees_with_dp_accounting(scale, log_delta, power):
  from dp_accounting.rdp import rdp_privacy_accountant as theirs

  delta = math.exp(log_delta)
  rdp = scale * ORDERS**power
  expected, _ = theirs.compute_epsilon(ORDERS, rdp, delta)
  assert rdp_to_epsilon(rdp, ORDERS, delta=delta) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_mironov_is_the_formula_of_the_papers():
  rdp = np.array([0.5, 1.0, 3.0])
  orders = [2.0, 4.0, 16.0]
  log = -math.log(1e-5)
  by_hand = min(0.5 + log, 1.0 + log / 3, 3.0 + log / 15)
  found = rdp_to_epsilon(rdp, orders, delta=1e-5, conversion="mironov")
  assert found == pytest.approx(by_hand, rel=1e-14)


@given(st.floats(0.3, 30.0), st.floats(-60, -1))
def test_never_below_the_exact_gaussian(sigma, log_delta):
  delta = math.exp(log_delta)
  exact = gaussian_epsilon(sigma=sigma, delta=delta)
  rdp = ORDERS / (2 * sigma**2)
  tight = rdp_to_epsilon(rdp, ORDERS, delta=delta)
  loose = rdp_to_epsilon(rdp, ORDERS, delta=delta, conversion="mironov")
  assert exact * (1 - 1e-9) <= tight <= loose


def test_falls_as_delta_grows():
  rdp = 0.01 * ORDERS
  deltas = np.logspace(-300, -0.01, 500)
  for conversion in ("tight", "mironov"):
    epsilons = rdp_to_epsilon(rdp, ORDERS, delta=deltas, conversion=conversion)
    assert np.all(np.diff(epsilons) <= 0)
    assert np.all(np.isfinite(epsilons))


def test_many_at_once_equal_one_by_one():
  rng = np.random.default_rng(0)
  rdp = np.sort(rng.exponential(size=(4, 3, ORDERS.size)), axis=-1)
  delta = np.array([1e-3, 1e-6, 1e-9])
  together = rdp_to_epsilon(rdp, ORDERS, delta=delta)
  assert together.shape == (4, 3)
  for i in range(4):
    for j in range(3):
      one = rdp_to_epsilon(rdp[i, j], ORDERS, delta=float(delta[j]))
      assert isinstance(one, float)
      assert together[i, j] == one


def test_unknown_orders_are_left_out():
  rdp = np.where(ORDERS == 8.0, 0.1, np.inf)
  found = rdp_to_epsilon(rdp, ORDERS, delta=1e-5)
  assert found == rdp_to_epsilon([0.1], [8.0], delta=1e-5)
  assert rdp_to_epsilon(np.full(2, np.inf), [2.0, 3.0], delta=0.1) == math.inf


def test_no_divergence_costs_nothing():
  assert rdp_to_epsilon(np.zeros(ORDERS.size), ORDERS, delta=1e-12) == 0.0


@pytest.mark.parametrize(
  ("change", "names"),
  [
    ({"rdp": [-1e-9, 0.1]}, "rdp"),
    ({"rdp": [math.nan, 0.1]}, "rdp"),
    ({"rdp": [0.1]}, "rdp"),
    ({"orders": [1.0, 2.0]}, "orders"),
    ({"orders": []}, "orders"),
    ({"delta": 0.0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"conversion": "tite"}, "did you mean tight"),
  ],
)
def test_bad_arguments_are_named(change, names):
  given_ = {"rdp": [0.1, 0.2], "orders": [2.0, 3.0], "delta": 1e-5, **change}
  with pytest.raises(checks.ArgumentError, match=names):
    rdp_to_epsilon(given_.pop("rdp"), given_.pop("orders"), **given_)
