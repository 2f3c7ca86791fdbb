"""Convex solves against scikit-learn, and what happens when they fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from jaxfair import checks, models
from jaxfair.models import _losses
from jaxfair.training import _erm
from jaxfair.training._erm import SolveConfig, SolveError, SolveTrace, solve

KEY = jax.random.key(0)
METHODS = ("newton", "lbfgs")


def theirs(people, decay):
  """Softmax regression with a constant feature, so that b is penalized too."""
  x = np.hstack([people.x, np.ones((people.size, 1))]).astype(np.float64)
  model = LogisticRegression(
    C=1 / (decay * people.size), fit_intercept=False, tol=1e-12, max_iter=10_000
  )
  return model.fit(x, people.y).coef_.T


def weights(params):
  return np.vstack([params["w"], params["b"]])


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("decay", [1e-3, 0.1])
def test_softmax_regression_is_scikit_learn_s(people, method, decay):
  config = SolveConfig(weight_decay=decay, method=method)
  found = solve(models.logistic(3), models.cross_entropy, people, config, key=KEY)
  np.testing.assert_allclose(weights(found.params), theirs(people, decay), atol=1e-5)
  assert found.trace.gradient_norm <= config.tolerance
  assert found.trace.converged


@pytest.mark.slow
def test_two_classes_are_logistic_regression(make_people):
  """The softmax of two classes is a sigmoid whose weights share a penalty."""
  people = make_people(num_classes=2)
  found = solve(
    models.logistic(2), models.cross_entropy, people, SolveConfig(weight_decay=0.02), key=KEY
  ).params
  w = weights(found)
  expected = theirs(people, 0.01)  # |w1|^2 + |w0|^2 = |w1 - w0|^2 / 2
  np.testing.assert_allclose(w[:, 1:] - w[:, :1], expected, atol=1e-5)
  np.testing.assert_allclose(w.sum(1), 0, atol=1e-6)


@pytest.mark.slow
def test_least_squares_are_ridge_regression(people):
  n = people.size
  y = np.random.default_rng(1).normal(size=n).astype(np.float32)
  found = solve(
    models.logistic(1),
    _losses.squared,
    people._replace(y=y),
    SolveConfig(weight_decay=0.5),
    key=KEY,
  ).params
  x = np.hstack([people.x, np.ones((n, 1))]).astype(np.float64)
  # mean (..)^2 + decay / 2 |w|^2 = (sum (..)^2 + n decay / 2 |w|^2) / n
  ridge = Ridge(alpha=n * 0.25, fit_intercept=False).fit(x, y)
  np.testing.assert_allclose(weights(found)[:, 0], ridge.coef_, atol=1e-5)


def test_the_returned_parameters_are_where_the_gradient_vanishes(people):
  """To float32's rounding of the parameters; the solver itself goes on."""
  found = solve(models.logistic(3), models.cross_entropy, people, key=KEY)
  x = np.hstack([people.x, np.ones((people.size, 1))]).astype(np.float64)
  w = weights(found.params).astype(np.float64)
  shares = np.exp(x @ w) / np.exp(x @ w).sum(1, keepdims=True)
  gradient = x.T @ (shares - np.eye(3)[people.y]) / people.size + 1e-3 * w
  assert np.linalg.norm(gradient) < 1e-5
  assert found.trace.gradient_norm <= 1e-8


def test_newton_is_for_few_parameters_and_lbfgs_for_many(make_people, monkeypatch):
  called = []

  def fake(model, loss, examples, start, *rest, method, max_steps):
    called.append(method)
    return start, SolveTrace(0.0, 1, True)

  monkeypatch.setattr(_erm, "_solved", fake)
  for d in (3, 1000):
    people = make_people(30, d)
    solve(models.logistic(3), models.cross_entropy, people, key=KEY)
  assert called == ["newton", "lbfgs"]


def test_float64_is_used_inside_and_left_again(people):
  found = solve(models.logistic(3), models.cross_entropy, people, key=KEY)
  assert {leaf.dtype for leaf in jax.tree.leaves(found.params)} == {jnp.dtype("float32")}
  assert not jax.config.jax_enable_x64
  assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_solve_that_stops_early_says_so(people, method):
  config = SolveConfig(max_steps=1, method=method)
  with pytest.raises(SolveError, match=rf"{method} stopped after 1 steps.*rai"):
    solve(models.logistic(3), models.cross_entropy, people, config, key=KEY)


@pytest.mark.slow
def test_separable_people_without_weight_decay_have_no_optimum(make_people):
  people = make_people(12, 8)
  config = SolveConfig(weight_decay=0.0, tolerance=1e-14, max_steps=30)
  with pytest.raises(SolveError, match="raise weight_decay"):
    solve(models.logistic(3), models.cross_entropy, people, config, key=KEY)


@pytest.mark.slow
def test_far_from_the_optimum_newton_still_arrives(make_people):
  """Full Newton steps run away from here; halving them must save it."""
  people = make_people(50, 2, 2)
  model = models.logistic(2)
  start = model._replace(
    init=lambda key, x: {"w": 4.0 * jnp.array([[1.0, -1.0], [1.0, -1.0]]), "b": jnp.zeros(2)}
  )
  config = SolveConfig(weight_decay=1e-4, method="newton")
  far = solve(start, models.cross_entropy, people, config, key=KEY)
  near = solve(model, models.cross_entropy, people, config, key=KEY)
  np.testing.assert_allclose(weights(far.params), weights(near.params), atol=1e-4)


@pytest.mark.parametrize(
  ("config", "told"),
  [
    (SolveConfig(weight_decay=-1.0), "weight_decay=-1.0 must be 0 or above"),
    (SolveConfig(tolerance=0.0), "tolerance=0.0 must be above 0"),
    (SolveConfig(max_steps=0), "max_steps=0 must be at least 1"),
    (SolveConfig(method="sgd"), "use one of auto, newton, lbfgs"),
  ],
)
def test_impossible_settings_are_refused(people, config, told):
  with pytest.raises(checks.ArgumentError, match=told):
    solve(models.logistic(3), models.cross_entropy, people, config, key=KEY)
