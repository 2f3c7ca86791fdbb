"""Closed forms against quadrature, enumeration and brute force."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import stats

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


def test_threshold_errors_are_tails():
  x = np.array([-3.0, 0.9, 1.0, 1.1, 9.0])
  away = -np.abs(x - 1.0)
  found = _theory.laplace_threshold_error(x, at=1.0, scale=2.5)
  np.testing.assert_allclose(found, stats.laplace.cdf(away, scale=2.5))
  found = _theory.gaussian_threshold_error(x, at=1.0, sigma=2.5)
  np.testing.assert_allclose(found, stats.norm.cdf(away, scale=2.5))
  assert found.max() == 0.5


OPERATORS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def enumerated(op, p1, p2, b1, b2):
  """The chance of an error, over the four ways to flip two predicates."""
  total = 0.0
  for flip1, flip2 in itertools.product((False, True), repeat=2):
    wrong = op(p1 ^ flip1, p2 ^ flip2) != op(p1, p2)
    chance = np.where(flip1, b1, 1 - b1) * np.where(flip2, b2, 1 - b2)
    total = total + wrong * chance
  return total


@pytest.mark.parametrize("op", OPERATORS)
def test_composed_errors_are_the_enumerated_ones(op):
  rng = np.random.default_rng(0)
  p1, p2 = rng.random((2, 1000)) < 0.5
  b1, b2 = rng.random((2, 1000))
  expected = enumerated(OPERATORS[op], p1, p2, b1, b2)
  found = _theory.compose_error(op, p1, p2, b1, b2)
  np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("op", OPERATORS)
def test_the_alpha_of_a_composition_is_never_below_brute_force(op):
  """10^4 random ranges; the worst pair of entities within each."""
  rng = np.random.default_rng(1)
  ends = np.sort(rng.random((2, 2, 10_000)), axis=1)
  bound = _theory.compose_alpha(op, tuple(ends[0]), tuple(ends[1]))
  errors = []
  for w1, w2 in itertools.product(np.linspace(0, 1, 5), repeat=2):
    b1 = ends[0][0] + w1 * (ends[0][1] - ends[0][0])
    b2 = ends[1][0] + w2 * (ends[1][1] - ends[1][0])
    for p1, p2 in itertools.product((False, True), repeat=2):
      errors.append(enumerated(OPERATORS[op], p1, p2, b1, b2))
  worst = np.max(errors, axis=0) - np.min(errors, axis=0)
  assert np.all(bound >= worst - 1e-12)
  np.testing.assert_allclose(bound, worst, atol=1e-12)  # and it is attained


def test_the_thesis_bounds_are_the_case_of_small_errors():
  l1, a1, l2, a2 = 0.1, 0.2, 0.05, 0.3
  u1, u2 = l1 + a1, l2 + a2
  found = _theory.compose_alpha("and", (l1, u1), (l2, u2))
  np.testing.assert_allclose(found, u1 + u2 - u1 * u2 - l1 * l2)
  found = _theory.compose_alpha("xor", (l1, u1), (l2, u2))
  printed = a1 * (1 - 2 * l2) + a2 * (1 - 2 * l1) - 2 * a1 * a2
  np.testing.assert_allclose(found, printed)
  large = _theory.compose_alpha("and", (0.1, 0.95), (0.5, 0.6))
  assert large > 0.95 + 0.6 - 0.95 * 0.6 - 0.1 * 0.5


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
    (lambda: _theory.compose_error("nor", True, True, 0.1, 0.1), "op='nor'"),
    (lambda: _theory.compose_error("or", True, True, 1.1, 0.1), "b1=1.1"),
    (lambda: _theory.compose_alpha("or", (0.5, 0.1), (0, 1)), "range1 is \\(least, largest\\)"),
    (lambda: decisions.clipped_laplace_mean(1.0, scale=0.0), "scale=0.0"),
    (lambda: _theory.allotment_sensitivity(max_weight=1.0, lower_total=0.0), "lower_total=0.0"),
  ],
)
def test_refused(call, told):
  with pytest.raises(checks.ArgumentError, match=told):
    call()
