"""Closeness at its ends, margins, and distances found by walking there."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import moved, people
from jaxfair import checks, models
from jaxfair.analysis import closeness
from jaxfair.analysis._boundary import linear_distance, top_two_margin


def test_closeness_is_largest_when_all_classes_are_alike():
  logits = jnp.array([[0.0, 0.0, 0.0], [1e4, 0.0, 0.0], [1.0, 0.0, -1.0]])
  f = np.exp([1.0, 0.0, -1.0]) / np.exp([1.0, 0.0, -1.0]).sum()
  np.testing.assert_allclose(closeness(logits), [2 / 3, 0.0, 1 - np.sum(f**2)], rtol=1e-6)


def test_the_margin_is_between_the_best_two():
  scores = np.array([[0.1, 0.7, 0.2], [0.4, 0.2, 0.4]])
  np.testing.assert_allclose(top_two_margin(scores), [0.5, 0.0], atol=1e-6)
  with pytest.raises(checks.ArgumentError, match="two classes"):
    top_two_margin(np.ones((3, 1)))


def test_the_distance_is_the_shortest_way_to_another_class():
  examples = people(12)
  model = models.logistic(3)
  params = moved(model, examples, scale=1.0)
  found = np.asarray(linear_distance(model, params, examples.x))
  w, b = (np.asarray(params[k], np.float64) for k in ("w", "b"))
  logits = examples.x @ w + b
  best = logits.argmax(1)
  rng = np.random.default_rng(0)
  ways = rng.normal(size=(20_000, 4))
  ways /= np.linalg.norm(ways, axis=1, keepdims=True)
  for x, k, distance in zip(examples.x, best, found, strict=True):
    # Nothing changes just inside, and something does just outside.
    inside = (x + 0.999 * distance * ways) @ w + b
    assert np.all(inside.argmax(1) == k)
    steps = [(w[:, c] - w[:, k]) / np.linalg.norm(w[:, c] - w[:, k]) for c in range(3) if c != k]
    outside = (x + 1.001 * distance * np.array(steps)) @ w + b
    assert np.any(outside.argmax(1) != k)


def test_a_class_that_no_input_changes_is_infinitely_far():
  model = models.logistic(2)
  params = {"w": jnp.ones((4, 2)), "b": jnp.array([0.0, 1.0])}
  assert np.isinf(linear_distance(model, params, np.ones((3, 4)))).all()


def test_refuses_a_model_that_is_not_linear():
  examples = people()
  model = models.mlp(4, 3)
  with pytest.raises(checks.ArgumentError, match="not linear"):
    linear_distance(model, moved(model, examples), examples.x)


def test_the_largest_change_of_a_feature_as_distance():
  examples = people(12)
  model = models.logistic(3)
  params = moved(model, examples, scale=1.0)
  found = np.asarray(linear_distance(model, params, examples.x, order=math.inf))
  w, b = (np.asarray(params[k], np.float64) for k in ("w", "b"))
  for x, distance in zip(examples.x, found, strict=True):
    k = (x @ w + b).argmax()
    corners = np.sign(w - w[:, [k]]).T  # the best push towards every class
    inside = (x + 0.999 * distance * corners) @ w + b
    outside = (x + 1.001 * distance * corners) @ w + b
    assert (inside.argmax(1) == k).all()
    assert (outside.argmax(1) != k).any()
  with pytest.raises(checks.ArgumentError, match="order"):
    linear_distance(model, params, examples.x, order=1)
