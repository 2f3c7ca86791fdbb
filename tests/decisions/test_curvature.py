"""Traces against jax.hessian: in closed form and for any allotment."""

import jax
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.decisions import _curvature, _problems

COUNTS = np.array([3.0, 40.0, 400.0, 5000.0, 30.0])
WEIGHTS = np.array([2.0, 1.0, 1.5, 1.0, 3.0])


def problem(counts):
  return _problems.title_one(counts, weights=WEIGHTS)


@pytest.fixture(scope="module")
def expected():
  with jax.enable_x64(True):
    full = jax.hessian(problem)(COUNTS)
    return np.asarray(np.trace(full, axis1=1, axis2=2))


@pytest.mark.slow
def test_closed_form(expected):
  found = _curvature.allotment_trace(COUNTS, weights=WEIGHTS)
  np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_exact_traces_without_the_matrix(expected):
  found = _curvature.decision_trace(problem, COUNTS)
  np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_traces_over_several_arrays_of_counts():
  def own(counts):
    x, y = counts
    return x**2 / y

  x, y = np.array([4.0, 30.0]), np.array([80.0, 600.0])
  found = _curvature.decision_trace(own, (x, y))
  np.testing.assert_allclose(found, 2 / y + 2 * x**2 / y**3, rtol=1e-12)


def test_equal_constant_traces_are_equal_biases():
  found = _curvature.decision_trace(lambda x: x + x @ x, COUNTS)
  np.testing.assert_allclose(found, 2 * len(COUNTS))
  bias = _curvature.second_order_bias(found, variance=2 * 3.0**2)
  np.testing.assert_allclose(bias, 9.0 * 2 * len(COUNTS))


def test_refused():
  def rule(x):
    return x >= 1.0

  with pytest.raises(checks.ArgumentError, match="decision rule"):
    _curvature.decision_trace(rule, COUNTS)
