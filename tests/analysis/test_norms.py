"""Norms against the closed form of softmax regression and built gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import ZOO, moved, people
from jaxfair import models
from jaxfair.analysis import norms
from jaxfair.analysis._norms import gradient_norms

PEOPLE = people()


@pytest.mark.slow
def test_softmax_regression_by_hand():
  model = models.logistic(3)
  params = moved(model, PEOPLE)
  found = norms(model, models.cross_entropy, params, PEOPLE, num_groups=2)
  f = np.asarray(jax.nn.softmax(model.apply(params, PEOPLE.x)))
  inputs = np.linalg.norm(PEOPLE.x, axis=1)
  slope = np.linalg.norm(f - np.eye(3)[PEOPLE.y], axis=1)
  gradients = slope * np.sqrt(inputs**2 + 1)
  np.testing.assert_allclose(found.inputs, inputs, rtol=1e-5)
  np.testing.assert_allclose(found.gradients, gradients, rtol=1e-5)
  for a in (0, 1):
    own = PEOPLE.group == a
    np.testing.assert_allclose(found.mean_gradient.group[a], gradients[own].mean(), rtol=1e-5)
  np.testing.assert_allclose(found.mean_input.population, inputs.mean(), rtol=1e-5)


@pytest.mark.slow
def test_a_shared_matrix_and_a_zero_gradient():
  model = ZOO["shared"]
  params = moved(model, PEOPLE)

  def loss(logits, y):
    return jnp.where(y == 0, 0.0, models.cross_entropy(logits, y))

  def one(p, x, y):
    return loss(model.apply(p, x[None]), y[None])[0]

  @jax.jit
  def both(params):
    built = jax.vmap(jax.grad(one), (None, 0, 0))(params, PEOPLE.x, PEOPLE.y)
    squared = sum(jnp.sum(g.reshape(PEOPLE.size, -1) ** 2, axis=1) for g in jax.tree.leaves(built))
    found = jax.value_and_grad(lambda q: jnp.sum(gradient_norms(model, loss, q, PEOPLE)))(params)
    return jnp.sum(jnp.sqrt(squared)), found

  expected, (value, slope) = both(params)
  np.testing.assert_allclose(value, expected, rtol=1e-5)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(slope))
