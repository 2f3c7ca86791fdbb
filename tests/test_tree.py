"""Pytree arithmetic against plain NumPy on the flattened trees."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import tree

A = {"w": jnp.arange(6.0).reshape(2, 3), "b": (jnp.array([-1.0, 2.0]),)}
B = {"w": jnp.ones((2, 3)) * 0.5, "b": (jnp.array([3.0, -4.0]),)}


def flat(value):
  return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(value)])


def test_arithmetic():
  np.testing.assert_array_equal(flat(tree.add(A, B)), flat(A) + flat(B))
  np.testing.assert_array_equal(flat(tree.subtract(A, B)), flat(A) - flat(B))
  np.testing.assert_array_equal(flat(tree.scale(3.0, A)), 3 * flat(A))
  np.testing.assert_array_equal(flat(tree.zeros_like(A)), 0 * flat(A))


def test_products_and_norms():
  np.testing.assert_allclose(tree.dot(A, B), flat(A) @ flat(B))
  np.testing.assert_allclose(tree.squared_norm(A), flat(A) @ flat(A))
  np.testing.assert_allclose(tree.norm(A), np.linalg.norm(flat(A)))
  assert tree.size(A) == 8


def test_norm_has_no_nan_gradient_at_zero():
  gradient = jax.grad(tree.norm)(tree.zeros_like(A))
  np.testing.assert_array_equal(flat(gradient), 0.0)


def test_stack_and_take_are_inverse():
  stacked = tree.stack([A, B])
  for index, original in enumerate((A, B)):
    np.testing.assert_array_equal(flat(tree.take(stacked, index)), flat(original))
