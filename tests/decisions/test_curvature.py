"""Traces against jax.hessian, in closed form, exactly and at random."""

import functools

import jax
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.decisions import _curvature, _problems

KEY = jax.random.key(0)
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
  np.testing.assert_allclose(found.trace, expected, rtol=1e-10)
  assert not found.standard_error.any()


def test_random_directions(expected):
  found = _curvature.decision_trace(problem, COUNTS, probes=500, key=KEY)
  away = np.abs(found.trace - expected)
  assert np.all(away <= 6 * found.standard_error)
  assert np.all(found.standard_error > 0)


def test_traces_of_local_problems_need_one_pass_per_array():
  def own(counts):
    x, y = counts
    return x**2 / y

  x, y = np.array([4.0, 30.0]), np.array([80.0, 600.0])
  found = _curvature.decision_trace(own, (x, y), local=True)
  np.testing.assert_allclose(found.trace, 2 / y + 2 * x**2 / y**3, rtol=1e-12)
  slow = _curvature.decision_trace(own, (x, y))
  np.testing.assert_allclose(found.trace, slow.trace, rtol=1e-12)


def test_equal_constant_traces_are_equal_biases():
  found = _curvature.decision_trace(lambda x: x + x @ x, COUNTS)
  np.testing.assert_allclose(found.trace, 2 * len(COUNTS))
  bias = _curvature.second_order_bias(found.trace, variance=2 * 3.0**2)
  np.testing.assert_allclose(bias, 9.0 * 2 * len(COUNTS))


def test_refused():
  rule = functools.partial(_problems.threshold, at=1.0)
  with pytest.raises(checks.ArgumentError, match="decision rule"):
    _curvature.decision_trace(rule, COUNTS)
  with pytest.raises(checks.ArgumentError, match="probes and key go together"):
    _curvature.decision_trace(problem, COUNTS, probes=4)
