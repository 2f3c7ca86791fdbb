"""Losses, slopes and curvatures of every person along one direction.

Second directional derivatives are taken forwards twice. There is no backward
pass and no sum over people in it, so one direction gives the number of every
person at once, and groups cost nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.types import Examples, Model, Params, PerExampleLoss, PyTree

CHUNK = 1024  # people in memory at once, where each holds many numbers


class Along(NamedTuple):
  """What each person's loss does when the parameters move along v.

  Attributes:
    losses: [n] l_i.
    slopes: [n] <grad l_i, v>.
    curvatures: [n] v' H_i v.
  """

  losses: jax.Array
  slopes: jax.Array
  curvatures: jax.Array


def along(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, direction: Params
) -> Along:
  """Each person's loss, slope and curvature along a direction."""

  def value_and_slope(p: Params) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(lambda q: per_example(model, loss, q, examples), (p,), (direction,))

  (losses, slopes), (_, curvatures) = jax.jvp(value_and_slope, (params,), (direction,))
  return Along(losses, slopes, curvatures)


def per_example(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples
) -> jax.Array:
  """[n] losses; refuses a loss that returns anything else."""
  losses = loss(model.apply(params, examples.x), examples.y)
  checks.require(
    jnp.shape(losses) == (examples.x.shape[0],),
    f"loss returned shape {jnp.shape(losses)} for {examples.x.shape[0]} "
    "examples; it must return one number per example, not their mean or sum",
  )
  return losses


def in_chunks(function: Callable[..., Any], arrays: PyTree, size: int = CHUNK) -> PyTree:
  """`function(arrays)`, computed on `size` rows at a time.

  Args:
    function: maps arrays with a leading axis to arrays with the same one, each
      row by itself.
    arrays: a pytree whose leaves share the leading axis.
    size: rows at a time; chunks are made equal.
  """
  n = jax.tree.leaves(arrays)[0].shape[0]
  if n <= size:
    return function(arrays)
  count = -(-n // size)
  size = -(-n // count)

  def chunked(leaf: jax.Array) -> jax.Array:
    # The last row is repeated: a value that the function is known to take.
    leaf = jnp.asarray(leaf)
    last = jnp.broadcast_to(leaf[-1:], (count * size - n, *leaf.shape[1:]))
    filled = jnp.concatenate([leaf, last]) if last.size else leaf
    return filled.reshape(count, size, *leaf.shape[1:])

  chunks = jax.tree.map(chunked, arrays)
  found = jax.lax.map(function, chunks)
  return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:n], found)
