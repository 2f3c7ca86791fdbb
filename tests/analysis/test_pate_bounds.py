"""Bounds against simulation: students solved to optimality."""

import math

import jax
import numpy as np
import pytest
from scipy import special

from jaxfair import checks, models
from jaxfair.analysis import model_deviation_bound
from jaxfair.training import _erm
from jaxfair.types import Examples


def people(m=40, features=3, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(m, features)) * rng.exponential(size=(m, 1))
  y = (x[:, 0] + 0.3 * rng.normal(size=m) > 0).astype(float)
  flips = np.where(rng.random(m) < 0.5, 0.02, 0.3) * rng.random(m)
  return x, y, flips


def solve(x, labels, penalty):
  """[draws, features] optima of one-logit regressions, by Newton's method."""
  theta = np.zeros((len(labels), x.shape[1]))
  for _ in range(40):
    p = special.expit(theta @ x.T)
    gradient = (p - labels) @ x / len(x) + 2 * penalty * theta
    weights = p * (1 - p) / len(x)
    hessian = np.einsum("dm,mi,mj->dij", weights, x, x)
    hessian += 2 * penalty * np.eye(x.shape[1])
    theta -= np.linalg.solve(hessian, gradient[..., None])[..., 0]
  assert np.abs(gradient).max() < 1e-12
  return theta


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [0.01, 0.1, 10.0])
def test_simulated_students_stay_within(penalty):
  x, y, flips = people()
  rng = np.random.default_rng(1)
  draws = 4000
  noisy = np.abs(y - (rng.random((draws, len(y))) < flips))
  [best] = solve(x, y[None], penalty)
  students = solve(x, noisy, penalty)
  moved = np.linalg.norm(students - best, axis=1)
  norms = np.linalg.norm(x, axis=1)
  bound = model_deviation_bound(flips, norms, penalty=penalty)
  assert np.mean(moved) <= bound.first == bound.first_in_paper / 2
  assert np.mean(moved**2) <= bound.second
  # Triangle inequalities lose some, but not an order of magnitude.
  assert bound.first < 10 * np.mean(moved) + 1e-12


def test_one_query_and_a_large_penalty_meet_the_bounds():
  # theta = (y - 1/2) x / (2 penalty) in the limit: d = x / (2 penalty).
  penalty, p = 1e4, 0.05
  x = np.array([[3.0, 4.0]])
  kept, flipped = solve(x, np.array([[0.0], [1.0]]), penalty)
  moved = np.linalg.norm(flipped - kept)
  bound = model_deviation_bound([p], [5.0], penalty=penalty)
  assert p * moved == pytest.approx(bound.first, rel=1e-3)
  assert p * moved**2 == pytest.approx(bound.second, rel=1e-3)
  # The papers' bound on the second moment does not hold here.
  assert p * moved**2 > p**2 * 25 / penalty**2


@pytest.mark.slow
def test_softmax_students_stay_within():
  rng = np.random.default_rng(2)
  x = rng.normal(size=(30, 2)).astype(np.float32)
  y = rng.integers(3, size=30).astype(np.int32)
  flips, penalty = np.full(30, 0.2), 0.05
  model = models.logistic(3)
  # The solver's objective has weight_decay / 2.
  config = _erm.SolveConfig(weight_decay=2 * penalty)

  def student(labels):
    people_ = Examples(x, labels, np.zeros(30, np.int32))
    fit = _erm.solve(model, models.cross_entropy, people_, config, key=jax.random.key(0))
    return np.concatenate([np.ravel(v) for v in jax.tree.leaves(fit.params)])

  best = student(y)
  moved = []
  for _ in range(40):
    away = rng.integers(1, 3, size=30)
    flip = rng.random(30) < flips
    moved.append(np.linalg.norm(student(np.where(flip, (y + away) % 3, y).astype(np.int32)) - best))
  # The model has an intercept, which is penalized like the rest.
  norms = np.sqrt(1 + np.sum(x**2, axis=1))
  bound = model_deviation_bound(flips, norms, penalty=penalty, softmax=True)
  one_logit = model_deviation_bound(flips, norms, penalty=penalty)
  assert bound.first == pytest.approx(math.sqrt(2) * one_logit.first)
  assert bound.second == pytest.approx(2 * one_logit.second)
  assert np.mean(moved) <= bound.first
  assert np.mean(np.square(moved)) <= bound.second


def test_many_settings_at_once():
  flips = np.random.default_rng(0).random((5, 2, 7))
  norms = np.arange(7.0)
  whole = model_deviation_bound(flips, norms, penalty=0.3)
  one = model_deviation_bound(flips[3, 1], norms, penalty=0.3)
  assert whole.second.shape == (5, 2)
  assert whole.second[3, 1] == pytest.approx(one.second)
  none = model_deviation_bound(np.zeros(7), norms, penalty=0.3)
  assert none == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"flips": [1.2, 0.1]}, "flips"),
    ({"norms": [-1.0, 0.1]}, "norms"),
    ({"norms": [1.0]}, "one of each per query"),
    ({"penalty": 0.0}, "penalty"),
  ],
)
def test_bad_arguments_are_named(change, told):
  given = {"flips": [0.1, 0.2], "norms": [1.0, 2.0], "penalty": 1.0, **change}
  with pytest.raises(checks.ArgumentError, match=told):
    model_deviation_bound(given.pop("flips"), given.pop("norms"), **given)
