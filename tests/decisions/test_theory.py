"""Closed forms against quadrature, enumeration and brute force."""

import mpmath
import numpy as np
import pytest

from jaxfair import checks, decisions
from jaxfair.decisions import _theory

CASES = [(3.0, 2.0, 0.0), (0.0, 5.0, 0.0), (-4.0, 1.5, 0.0), (70.0, 3.0, 60.0)]


def mean_of(function, value, scale, breaks):
  """E[function(value + Lap(scale))] to 30 digits."""
  mpmath.mp.dps = 30
  points = sorted({mpmath.mpf(p) for p in (*breaks, value)})
  ends = [points[0] - 80 * scale, *points, points[-1] + 80 * scale]

  def integrand(t):
    density = mpmath.exp(-abs(t - value) / scale) / (2 * scale)
    return function(t) * density

  return float(mpmath.quad(integrand, ends))


@pytest.mark.parametrize(("value", "scale", "lower"), CASES)
def test_clipped_mean(value, scale, lower):
  expected = mean_of(lambda t: max(lower, t), value, scale, (lower,))
  found = decisions.clipped_laplace_mean(value, scale=scale, lower=lower)
  np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("value", "scale"), [(8.0, 3.0), (0.4, 30.0), (600.0, 0.9), (-5.0, 2.0)])
@pytest.mark.parametrize("floor", [1.0, 20.0])
def test_floored_inverse_mean(value, scale, floor):
  expected = mean_of(lambda t: 1 / max(floor, t), value, scale, (floor,))
  found = _theory.floored_inverse_mean(value, scale=scale, floor=floor)
  np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_inverse_is_smooth_where_series_takes_over_and_never_overflows():
  at = np.array([49.999999, 50.000001])
  for function in (_theory._scaled_e1, _theory._scaled_ei):
    low, high = function(at)
    np.testing.assert_allclose(low, high, rtol=1e-7)
  far = _theory.floored_inverse_mean(5e11, scale=1e6, floor=1e11)
  np.testing.assert_allclose(5e11 * far - 1, 2 * (1e6 / 5e11) ** 2, rtol=1e-3)


def test_sensitivity_of_shares_is_never_below_removing_one_child():
  rng = np.random.default_rng(2)
  for _ in range(200):
    x = rng.integers(0, 6, size=5).astype(float)
    x[0] += 2
    a = rng.uniform(0.1, 3, size=5)
    for i in np.flatnonzero(x):
      less = x - (np.arange(5) == i)
      moved = np.abs(a * x / (a @ x) - a * less / (a @ less)).sum()
      bound = _theory.allotment_sensitivity(max_weight=a.max(), lower_total=a @ less)
      assert moved <= bound + 1e-12


@pytest.mark.parametrize(
  ("call", "told"),
  [
    (lambda: decisions.clipped_laplace_mean(1.0, scale=0.0), "scale=0.0"),
    (lambda: _theory.allotment_sensitivity(max_weight=1.0, lower_total=0.0), "lower_total=0.0"),
  ],
)
def test_refused(call, told):
  with pytest.raises(checks.ArgumentError, match=told):
    call()
