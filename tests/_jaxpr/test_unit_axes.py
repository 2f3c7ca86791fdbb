"""Programs without axes of length one compute what they computed with them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import _jaxpr


def normal(*shape):
  return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def attention(x):
  """As a network computes it for one example of a batch: sums, products, softmax."""
  scores = jnp.einsum("bqd,bkd->bqk", x, x)
  mixed = jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), x)
  mean = jnp.mean(mixed, axis=-1, keepdims=True)
  return jnp.where(mixed > mean, mixed - mean, 0.1 * mixed).transpose(0, 2, 1).reshape(1, -1)


def loops(x):
  """A scan of one round, one of three, a while loop, and what is carried has a unit axis."""
  carry, _ = jax.lax.scan(lambda c, row: (jnp.tanh(c + row), row), x[:, 0], x[:1])
  carry, rows = jax.lax.scan(lambda c, row: (c * row, c + row), carry, jnp.stack([x[0]] * 3))
  return jax.lax.while_loop(lambda v: jnp.sum(v) < 9, lambda v: v + 1.0, carry), rows


def rematerialized(x):
  return jax.checkpoint(lambda v: jnp.sin(jnp.sum(v * v, axis=1)) * v)(x)


def repeated(x):
  """An axis of length one beside a longer one; an index; a maximum; integers; constants."""
  table = jnp.arange(3.0)[None]
  best = jnp.argmax(x, axis=-1)
  picked = jnp.take_along_axis(x, best[..., None], axis=-1)
  return jax.lax.add(jnp.ones((4, 1)), jnp.ones((1, 3))) + table, picked, best, jnp.max(x, 0)


CASES = {
  "attention": (attention, (1, 4, 3)),
  "loops": (loops, (1, 1, 3)),
  "remat": (rematerialized, (1, 5)),
  "repeated": (repeated, (1, 4, 3)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mapped", [False, True])
def test_the_results_and_their_shapes_are_the_same(name, mapped):
  function, shape = CASES[name]
  x = normal(*((6,) if mapped else ()), *shape)
  function = jax.vmap(function) if mapped else function
  expected = function(x)
  found = _jaxpr.without_unit_axes(function)(x)
  assert jax.tree.structure(found) == jax.tree.structure(expected)
  for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_gradients_are_sums_over_axes_longer_than_one():
  """Forward and backward pass of a mapped example: what the compiler sees has no unit axis."""

  def loss(scale, x):
    return jnp.sum(attention(x[None]) * scale)

  gradient = jax.vmap(jax.grad(loss), in_axes=(None, 0))
  arguments = (normal(12), normal(6, 4, 3))
  program = jax.make_jaxpr(_jaxpr.without_unit_axes(gradient))(*arguments)
  sums = [e for e in _jaxpr.equations(program) if e.primitive.name in ("mul", "reduce_sum")]
  assert sums
  assert all(1 not in atom.aval.shape for e in sums for atom in e.invars)
  np.testing.assert_allclose(
    _jaxpr.without_unit_axes(gradient)(*arguments), gradient(*arguments), rtol=1e-5, atol=1e-6
  )
