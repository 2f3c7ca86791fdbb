"""Thin products by columns: the same numbers, and only where they are thin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import models
from jaxfair.training import _thin_products


def kinds(function, *arguments):
  """Shapes of the products in a function's program."""
  found = jax.make_jaxpr(_thin_products.by_columns(function))(*arguments)
  return [
    tuple(len(atom.aval.shape) for atom in equation.invars)
    for equation in found.jaxpr.eqns
    if equation.primitive.name == "dot_general"
  ]


def numbers(*shape, seed=0):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


# [large operand's shape, which of its axes is summed over, thin columns]
THIN = [((256, 50), 0, 2), ((64, 40), 0, 3), ((64, 40), 0, 4), ((700, 100), 1, 2)]
THICK = [((256, 50), 0, 5), ((256, 20), 0, 3), ((256, 50), 1, 2), ((3, 50), 0, 4)]


def product(shape, axis, columns, thin_first):
  """A product, and its two operands."""
  large, few = numbers(*shape), numbers(shape[axis], columns, seed=1)
  sums = ((0,), (axis,)) if thin_first else ((axis,), (0,))
  pair = (few, large) if thin_first else (large, few)
  return (lambda a, b: jax.lax.dot_general(a, b, (sums, ((), ())))), pair


@pytest.mark.parametrize("thin_first", [False, True])
@pytest.mark.parametrize("case", THIN)
def test_a_thin_product_is_one_of_vectors_for_each_column(case, thin_first):
  function, pair = product(*case, thin_first)
  assert len(kinds(function, *pair)) == case[2]
  assert all(min(ranks) == 1 for ranks in kinds(function, *pair))
  found = _thin_products.by_columns(function)(*pair)
  wanted = np.tensordot(
    np.asarray(pair[0], np.float64),
    np.asarray(pair[1], np.float64),
    ((0,), (case[1],)) if thin_first else ((case[1],), (0,)),
  )
  np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("thin_first", [False, True])
@pytest.mark.parametrize("case", THICK)
def test_other_products_stay_whole(case, thin_first):
  function, pair = product(*case, thin_first)
  assert kinds(function, *pair) == [(2, 2)]


def test_batched_and_outer_products_stay_whole():
  assert kinds(jnp.matmul, numbers(3, 50, 40), numbers(3, 40, 2)) == [(3, 3)]
  for axes in (0, 2):  # all products, and their sum
    function = functools.partial(jnp.tensordot, axes=axes)
    assert kinds(function, numbers(50, 40), numbers(50, 40)) == [(2, 2)]


def step(params, x, y):
  """A step of gradient descent, with a jitted part inside."""
  model = models.logistic(2)

  @jax.jit
  def gradient(p):
    loss = lambda q: models.cross_entropy(model.apply(q, x), y).mean()  # noqa: E731
    return jax.grad(loss)(p)

  return jax.tree.map(lambda a, b: a - b, params, gradient(params)), {"x": x[0]}


def test_a_step_gives_the_same_numbers_in_the_same_structure():
  x, y = numbers(256, 50), jnp.arange(256) % 2
  params = {"w": numbers(50, 2, seed=2), "b": jnp.ones(2)}
  # Forward whole; the gradient, within the jit, by columns.
  assert kinds(step, params, x, y) == [(2, 2), (1, 2), (1, 2)]
  found, wanted = _thin_products.by_columns(step)(params, x, y), step(params, x, y)
  assert jax.tree.structure(found) == jax.tree.structure(wanted)
  for a, b in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_it_can_be_mapped_differentiated_and_closes_over_outer_numbers():
  xs = numbers(3, 64, 40)

  def loss(w, x, scale):
    inner = _thin_products.by_columns(lambda v: jnp.sum(jnp.tanh(scale * (x.T @ v))))
    return inner(w)

  w = numbers(64, 2, seed=3)
  found = jax.vmap(jax.grad(loss), (None, 0, 0))(w, xs, jnp.arange(3.0))
  for i in range(3):
    wanted = jax.grad(lambda v, i=i: jnp.sum(jnp.tanh(i * (xs[i].T @ v))))(w)
    np.testing.assert_allclose(found[i], wanted, rtol=1e-4, atol=1e-5)


def test_other_backends_keep_their_own_products(monkeypatch):
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
  function, pair = product(*THIN[0], thin_first=False)
  assert kinds(function, *pair) == [(2, 2)]


def test_random_keys_and_settings_pass_through():
  def draw(key, state, x):
    return state + jax.random.normal(key, (40, 2)) + x.T @ numbers(64, 2), key

  x, key = numbers(64, 40), jax.random.key(3)
  found, same = _thin_products.by_columns(draw)(key, 2, x)
  np.testing.assert_allclose(found, draw(key, 2, x)[0], rtol=1e-5, atol=1e-5)
  assert jnp.issubdtype(same.dtype, jax.dtypes.prng_key)
