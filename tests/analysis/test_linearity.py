"""What is read off a program about how it bends; nothing is computed."""

import jax
import jax.numpy as jnp
import pytest

from jaxfair.analysis._linearity import Bend, bends, same_places

PUSH = jax.ShapeDtypeStruct((1, 4), jnp.float32)
SQUARE = jax.ShapeDtypeStruct((4, 4), jnp.float32)
OUT = jax.ShapeDtypeStruct((4, 3), jnp.float32)

CASES = {
  "linear": (lambda h, w, v: h @ w @ v, Bend.ZERO),
  "relu, twice": (lambda h, w, v: jax.nn.relu(jax.nn.relu(h) @ w) @ v, Bend.ZERO),
  "leaky, clipped, chosen": (
    lambda h, w, v: jnp.where(h > 0, h, 0.1 * h).clip(-1, 1) @ v,
    Bend.ZERO,
  ),
  "largest of a pool": (lambda h, w, v: (h @ w).max(keepdims=True), Bend.ZERO),
  "a step": (lambda h, w, v: jnp.sign(h) @ v, Bend.ZERO),
  "tanh below a linear output": (lambda h, w, v: jnp.tanh(h + 1) @ v, Bend.DIAGONAL),
  "gelu": (lambda h, w, v: jax.nn.gelu(h) @ v, Bend.DIAGONAL),
  "swish, with a skip": (lambda h, w, v: (jax.nn.silu(h) + h @ w) @ v, Bend.DIAGONAL),
  "tanh, then relu": (lambda h, w, v: jax.nn.relu(jnp.tanh(h) @ w) @ v, Bend.DIAGONAL),
  "tanh above a mix": (lambda h, w, v: jnp.tanh(h @ w) @ v, Bend.FULL),
  "two tanh": (lambda h, w, v: jnp.tanh(jnp.tanh(h) @ w) @ v, Bend.FULL),
  "neighbors multiplied": (lambda h, w, v: (h * h[:, ::-1]) @ v, Bend.FULL),
  "normalised": (lambda h, w, v: (h / jnp.sum(h**2)) @ v, Bend.FULL),
  "softmax": (lambda h, w, v: jax.nn.softmax(h) @ v, Bend.FULL),
  "squared by itself": (lambda h, w, v: h @ h.T, Bend.FULL),
}


@pytest.mark.parametrize("name", CASES)
def test_bend(name):
  function, expected = CASES[name]
  (found,) = bends(lambda pushes, rest: function(pushes[0], *rest), [PUSH], (SQUARE, OUT))
  assert found == expected


SURE = [name for name, (_, bend) in CASES.items() if bend != Bend.FULL]


@pytest.mark.slow
@pytest.mark.parametrize("name", SURE)
def test_second_derivatives_are_what_was_read(name):
  function, expected = CASES[name]
  w, v = (
    jax.random.normal(jax.random.key(i), shape.shape) for i, shape in enumerate((SQUARE, OUT))
  )
  at = jnp.array([[0.3, -0.7, 1.1, 0.2]])

  @jax.jit
  def hessian(h):
    return jax.hessian(lambda p: jnp.sum(function(p, w, v)))(h)

  found = hessian(at).reshape(4, 4)
  if expected == Bend.DIAGONAL:
    assert jnp.any(found)
    found = found - jnp.diag(jnp.diag(found))
  assert not jnp.any(jnp.abs(found) > 1e-5)


def test_a_bias_is_pushed_in_the_same_place_as_its_matrix():
  def function(pushes, rest):
    x, w, v = rest
    h = x @ w + pushes[0]
    h = h + 1.0 + pushes[1]
    return jnp.tanh(h) @ v + pushes[2]

  out = jax.ShapeDtypeStruct((1, 3), jnp.float32)
  rest = (PUSH, SQUARE, OUT)
  assert same_places(function, [PUSH, PUSH, out], rest) == [0, 0, 2]


def test_a_value_that_is_looked_at_in_between_is_a_place_of_its_own():
  def function(pushes, rest):
    x, w, v = rest
    first = x @ w + pushes[0]
    return (jnp.tanh(first + pushes[1]) + first**2) @ v

  rest = (PUSH, SQUARE, OUT)
  assert same_places(function, [PUSH, PUSH], rest) == [0, 1]
