"""Closed forms for two Gaussians, against direct minimization in 50 digits."""

import mpmath
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.robustness import _gaussians as g

# mu_minus, mu_plus, K, epsilon, penalty
CASES = [
  (-1.0, 1.0, 5.0, 0.2, 0.3),
  (-1.0, 1.0, 10.0, 0.1, 0.9),
  (-1.0, 1.0, 1.0, 0.3, 0.5),
  (0.0, 4.0, 1.0 + 1e-9, 0.5, 0.0),
  (2.0, 3.0, 1.6, 0.0, 0.1),
  (-3.0, 0.5, 2.0, 1.75, 1.0 / 3),  # the pushed means meet; penalty at its bend
  (0.0, 0.5, 40.0, 0.1, 0.2),  # far above exp(D^2 / 2)
  (0.0, 12.0, 3.0, 1.0, 2.0),
]
TOLERANCE = 1e-8


def errors(threshold, low, high, ratio, epsilon=0):
  """Both classes' errors in 50 digits, from the normal distribution alone."""
  minus = mpmath.ncdf(-(threshold - epsilon - mpmath.mpf(low)))
  plus = mpmath.ncdf((threshold + epsilon - high) / mpmath.mpf(ratio))
  return minus, plus


def minimize(function, low, high):
  """The least value on a grid, then golden section around it."""
  with mpmath.workdps(50):
    points = mpmath.linspace(low, high, 161)
    values = [function(p) for p in points]
    best = values.index(min(values))
    a, b = points[max(best - 1, 0)], points[min(best + 1, 160)]
    share = (mpmath.sqrt(5) - 1) / 2
    while b - a > mpmath.mpf(10) ** -14:
      left, right = b - share * (b - a), a + share * (b - a)
      if function(left) < function(right):
        b = right
      else:
        a = left
    return float((a + b) / 2)


def span(low, high, ratio):
  """Wide enough to hold every local minimum of the cases."""
  return low - 4 * ratio, high + 4 * ratio


@pytest.mark.parametrize("case", CASES)
def test_the_natural_threshold_has_the_fewest_errors(case):
  people = case[:3]
  found = minimize(lambda t: sum(errors(t, *people)), *span(*people))
  assert float(g.natural_threshold(*people)) == pytest.approx(found, abs=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_the_robust_threshold_has_the_fewest_errors_under_attack(case):
  people, epsilon = case[:3], case[3]
  found = minimize(lambda t: sum(errors(t, *people, epsilon)), *span(*people))
  at = float(g.robust_threshold(*people, epsilon))
  assert at == pytest.approx(found, abs=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_the_fair_threshold_is_fair_and_nearest_to_everybody(case):
  people = case[:3]
  at = float(g.fair_threshold(*people))
  minus, plus = g.class_errors(at, *people)
  assert float(minus) == pytest.approx(float(plus), abs=1e-15)

  def distance(t):
    low, high, ratio = people
    return mpmath.mpf(folded(t - low)) + ratio * folded((t - high) / ratio)

  found = minimize(distance, people[0] - 1, people[1] + 1)
  assert at == pytest.approx(found, abs=TOLERANCE)
  ours = float(g.mean_distance(at, *people))
  assert ours == pytest.approx(float(distance(found)) / 2, abs=TOLERANCE)


def folded(z):
  """E|N(0, 1) - z|, by its derivative 1 - 2 Phi(-z) and its value at 0."""
  return 2 * mpmath.npdf(z) + z * (1 - 2 * mpmath.ncdf(-z))


def test_mean_distance_by_quadrature():
  low, high, ratio, at = -1.0, 1.0, 5.0, 0.3

  def integrand(x):
    return abs(x - at) * (mpmath.npdf(x, low, 1) + mpmath.npdf(x, high, ratio))

  found = mpmath.quad(integrand, [-60, -10, low, at, high, 10, 60]) / 2
  ours = float(g.mean_distance(at, low, high, ratio))
  assert ours == pytest.approx(float(found), abs=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_errors_to_the_last_digits(case):
  people, epsilon = case[:3], case[3]
  at = float(g.fair_threshold(*people)) + 0.1
  with mpmath.workdps(50):
    plain = sum(errors(at, *people)) / 2
    pushed = sum(errors(at, *people, epsilon)) / 2
  natural = float(g.natural_error(at, *people))
  robust = float(g.robust_error(at, *people, epsilon=epsilon))
  boundary = float(g.boundary_error(at, *people, epsilon=epsilon))
  assert natural == pytest.approx(float(plain), abs=1e-14)
  assert robust == pytest.approx(float(pushed), abs=1e-14)
  assert boundary == pytest.approx(float(pushed - plain), abs=1e-14)


def test_errors_are_what_a_simulation_counts():
  low, high, ratio, epsilon, at = -1.0, 1.0, 3.0, 0.25, 0.4
  n = 200_000
  rng = np.random.default_rng(0)
  minus = rng.normal(low, 1, n)
  plus = rng.normal(high, ratio, n)
  wrong = np.concatenate([minus + epsilon > at, plus - epsilon <= at])
  near = wrong & np.concatenate([minus <= at, plus > at])
  people = (low, high, ratio)
  for counted, exact in (
    (wrong, g.robust_error(at, *people, epsilon=epsilon)),
    (near, g.boundary_error(at, *people, epsilon=epsilon)),
  ):
    deviation = np.sqrt(exact * (1 - exact) / (2 * n))
    assert abs(counted.mean() - exact) < 5.3 * deviation  # chance below 1e-6


def test_printed_formulas_agree_away_from_equal_deviations():
  low, high, k, e = -1.0, 1.0, 5.0, 0.2
  d = high - low
  root = k / (k * k - 1)
  natural = low - d / (k * k - 1) + root * np.sqrt(2 * (k * k - 1) * np.log(k) + d * d)
  robust = (
    low
    - (d - (k * k + 1) * e) / (k * k - 1)
    + root * np.sqrt(2 * (k * k - 1) * np.log(k) + (d - 2 * e) ** 2)
  )
  people = (low, high, k)
  assert g.natural_threshold(*people) == pytest.approx(natural, abs=1e-12)
  assert g.robust_threshold(*people, e) == pytest.approx(robust, abs=1e-12)


def test_equal_deviations_put_all_thresholds_in_the_middle():
  found = [
    g.natural_threshold(0.0, 3.0, 1.0),
    g.fair_threshold(0.0, 3.0, 1.0),
    g.robust_threshold(0.0, 3.0, 1.0, [0.0, 1.0, 1.5]),
  ]
  assert np.allclose(np.concatenate([np.ravel(f) for f in found]), 1.5)


def test_arguments_broadcast():
  found = g.robust_threshold(0.0, 4.0, np.ones((3, 1)) * 2, np.zeros(5))
  assert found.shape == (3, 5)


def test_the_largest_ratio_for_the_boundary_solves_its_equation():
  k = g.largest_ratio_for_boundary(0.0, 9.0, 1.0)
  assert k + 1 / k == pytest.approx(9.0 - 2)
  assert g.largest_ratio_for_boundary(0.0, 4.0, 1.0) == 1.0
  assert g.largest_ratio(0.0, 50.0, 0.0) == np.inf


@pytest.mark.parametrize(
  ("call", "told"),
  [
    (lambda: g.natural_threshold(1.0, 1.0, 2.0), "swap the classes"),
    (lambda: g.natural_threshold(0.0, 1.0, 0.5), "smaller deviation"),
    (lambda: g.robust_threshold(0.0, 1.0, 2.0, 0.6), "1/2 of the distance"),
    (lambda: g.largest_ratio_for_boundary(0.0, 1.0, 0.3), "1/4"),
    (lambda: g.fair_threshold(np.nan, 1.0, 2.0), "mu_minus"),
  ],
)
def test_what_makes_no_sense_is_refused(call, told):
  with pytest.raises(checks.ArgumentError, match=told):
    call()
