"""Piece-wise linear proxies against scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from jaxfair import checks, decisions
from jaxfair.decisions import _mechanisms, _proxies

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
SIGNS = np.where(X @ [1.0, -0.5, 0.2] + RNG.normal(size=60) > 0.3, 1.0, -1.0)
ONES = np.ones(60)


@pytest.mark.slow
def test_least_squares():
  with jax.enable_x64(True):
    found = _proxies.linear_regression(X, SIGNS, ONES)
  peer = LinearRegression().fit(X, SIGNS)
  np.testing.assert_allclose(found.slope, peer.coef_, rtol=1e-6)
  np.testing.assert_allclose(found.intercept, peer.intercept_, rtol=1e-6)


def test_the_svm_is_liblinear_s():
  with jax.enable_x64(True):
    found = _proxies.linear_svm(jnp.asarray(X), SIGNS, ONES)
  peer = LinearSVC(dual=False, tol=1e-12, max_iter=10_000).fit(X, SIGNS)
  np.testing.assert_allclose(found.slope, peer.coef_[0], rtol=1e-5)
  np.testing.assert_allclose(found.intercept, peer.intercept_[0], rtol=1e-5)


@pytest.mark.slow
def test_weights_of_0_leave_rows_out():
  weight = (np.arange(60) < 40).astype(float)
  with jax.enable_x64(True):
    found = _proxies.linear_svm(jnp.asarray(X), SIGNS, weight)
    short = _proxies.linear_svm(jnp.asarray(X[:40]), SIGNS[:40], ONES[:40])
  np.testing.assert_allclose(found.slope, short.slope, rtol=1e-9)


def test_bins_are_of_equal_size_and_in_order():
  values = np.array([5.0, 1.0, 9.0, 1.0, 7.0, 3.0, 2.0])
  found = _proxies.equal_bins(values, 3)
  assert found.tolist() == [1, 0, 2, 0, 2, 1, 0]


@pytest.mark.slow
def test_a_rule_that_is_linear_in_each_bin_is_learned():
  s = np.round(RNG.uniform(1000, 50_000, 900))
  sp = np.round(s * RNG.uniform(0, 0.1, 900))
  counts = (s, sp, sp)

  def rule(counts):
    return counts[1] > 0.05 * counts[0]

  proxy = _proxies.fit_proxy(rule, counts, learner=_proxies.linear_svm)
  with jax.enable_x64(True):
    found = np.asarray(proxy(counts))
  assert np.mean(found == np.asarray(rule(counts))) > 0.85
  assert np.bincount(proxy.bins).tolist() == [100] * 9


@pytest.mark.slow
def test_a_proxy_is_a_problem_like_any_other():
  counts = tuple(np.round(RNG.uniform(10, 1000, 40)) for _ in range(3))

  def rule(counts):
    return counts[0] > counts[1]

  line = _proxies.Line(np.array([[1.0, -1.0, 0.0]]), np.zeros(1))
  proxy = _proxies.PiecewiseProxy(np.zeros(40, np.int32), line)
  release = decisions.LaplaceRelease.for_epsilon(1.0, sensitivity=3)
  found = decisions.simulate_mechanism(
    _mechanisms.on_counts(proxy, release), rule, counts, draws=100, key=jax.random.key(0)
  )
  assert found.is_rule
  far = np.abs(counts[0] - counts[1]) > 100  # 33 noise scales
  assert not found.error[far].any()


def test_refused():
  with pytest.raises(checks.ArgumentError, match="num_bins=9 exceeds"):
    _proxies.fit_proxy(lambda c: c[0] > 1, (ONES[:3], ONES[:3]), learner=_proxies.linear_svm)
