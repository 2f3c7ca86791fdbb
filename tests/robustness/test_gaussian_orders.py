"""The thesis's orders, in their ranges and at the ends of them."""

import numpy as np
import pytest

from jaxfair.robustness import _gaussian_orders, _gaussians
from jaxfair.robustness._gaussian_orders import orderings as compare


def draw(n=200_000, seed=0):
  """Settings of every kind: near, far, alike, up to 1000 times as wide."""
  rng = np.random.default_rng(seed)
  distance = np.exp(rng.uniform(np.log(0.05), np.log(12), n))
  ratio = 1 + np.exp(rng.uniform(np.log(1e-6), np.log(1e3), n))
  epsilon = distance * rng.uniform(0, 0.5, n)
  low = rng.normal(size=n)
  return low, low + distance, ratio, epsilon


def test_what_the_thesis_states_holds():
  found = compare(*draw())
  assert found.stated.mean() > 0.1
  assert found.stated_boundary.mean() > 0.1
  assert found.thresholds[found.stated].all()
  assert found.robust_errors[found.stated].all()
  assert found.boundary_errors[found.stated_boundary].all()


def test_what_holds_for_every_ratio():
  found = compare(*draw(seed=1))
  assert found.inner.all()
  assert found.distances.all()


def test_the_stated_range_of_the_thresholds_is_exact():
  low, high, _, epsilon = draw(2_000, seed=2)
  bound = _gaussians.largest_ratio(low, high, epsilon)
  some = (bound > 1.01) & (bound < 1e3)
  low, high, epsilon, bound = (v[some] for v in (low, high, epsilon, bound))
  assert some.sum() > 500
  assert compare(low, high, bound * (1 - 1e-6), epsilon).thresholds.all()
  assert not compare(low, high, bound * (1 + 1e-6), epsilon).thresholds.any()


def test_errors_leave_their_order_outside_the_range():
  """The fair threshold is deep among class -1, where errors saturate."""
  found = compare(0.0, 8.5, 10.7, 4.2)
  assert not found.stated
  assert not found.stated_boundary
  assert not found.robust_errors
  assert not found.boundary_errors


def test_a_ratio_just_above_one_is_in_order():
  found = compare(0.0, 2.0, 1.0, [0.0, 0.3, 1.0])
  assert found.inner.all()
  assert found.distances.all()


def test_rounding_is_no_disorder_but_a_difference_is():
  rises = _gaussian_orders._rises
  assert rises((np.array(1.0), np.array(1.0 - 1e-14)), 1e-13)
  assert not rises((np.array(1.0), np.array(1.0 - 1e-9)), 1e-13)


@pytest.mark.parametrize("k", [5.0, 10.0])
def test_the_thesis_s_picture(k):
  """Figure 6.2: means at -1 and 1."""
  found = compare(-1.0, 1.0, k, 0.1)
  assert found.inner
  assert found.robust_errors
  assert found.boundary_errors
