"""Optimizers by name: what they compute, beside formulas and plain optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, training
from jaxfair.training import _optimizers

GRADIENTS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def path(optimizer, rate):
  """Parameters after each of the gradients, from zero."""
  made = optimizer(rate)
  params, found = jnp.zeros(3), []
  state = made.init(params)
  for gradient in jnp.asarray(GRADIENTS):
    updates, state = made.update(gradient, state, params)
    params = optax.apply_updates(params, updates)
    found.append(params)
  return np.stack(found)


def test_momentum_adds_nine_tenths_of_the_last_step():
  velocity, params, expected = np.zeros(3), np.zeros(3), []
  for gradient in GRADIENTS.astype(float):
    velocity = 0.9 * velocity + gradient
    params = params - 0.1 * velocity
    expected.append(params)
  np.testing.assert_allclose(path(_optimizers.OPTIMIZERS["momentum"], 0.1), expected, rtol=1e-5)


@pytest.mark.parametrize(
  ("schedule", "shares"),
  [("linear", 1 - np.arange(4) / 4), ("cosine", 0.5 + 0.5 * np.cos(np.pi * np.arange(4) / 4))],
)
def test_schedules_end_at_zero(schedule, shares):
  optimizer = training.named_optimizer("sgd", schedule, steps=4)
  expected = -np.cumsum(0.1 * shares[:, None] * GRADIENTS, axis=0)
  np.testing.assert_allclose(path(optimizer, 0.1), expected, rtol=1e-5, atol=1e-7)
  traced = jax.jit(lambda rate: optimizer(rate).init(jnp.zeros(3)))(0.1)
  assert len(jax.tree.leaves(traced)) == 1  # the number of the step


def test_equal_names_are_one_object():
  assert training.named_optimizer("adam") is optax.adam
  first, again = (training.named_optimizer("sgd", "cosine", steps=4) for _ in range(2))
  assert first is again


def test_bad_names_are_refused():
  with pytest.raises(checks.ArgumentError, match="name='lion'"):
    training.named_optimizer("lion")
  with pytest.raises(checks.ArgumentError, match="steps=None must be a whole number"):
    training.named_optimizer("sgd", "cosine")
