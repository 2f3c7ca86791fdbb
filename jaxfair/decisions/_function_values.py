"""Functions as values: so that a program is compiled once per function.

`functools.partial(title_one, weights=a)` made again is another function for
JAX, which would compile it again. As a tree its function is what is compiled
and its weights are data.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from jaxfair.types import Array, Counts

Problem: TypeAlias = Callable[[Any], Any]


def as_tree(function: Callable[..., Any]) -> Callable[..., Any]:
  """The same function, as a pytree that jit takes as an argument."""
  if not jax.tree_util.all_leaves([function]):
    return function
  if isinstance(function, functools.partial):
    return Partial(function.func, *function.args, **function.keywords)
  return Partial(function)


def in_float64(counts: Counts) -> Counts:
  """Every count in float64; inside enable_x64."""
  return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), counts)


def wide(function: Any) -> Any:
  """A function as a tree with its real numbers in float64.

  Its integers stay: they are indices.
  """

  def cast(leaf: Array) -> Array:
    real = jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    return jnp.asarray(leaf, jnp.float64 if real else None)

  return jax.tree.map(cast, as_tree(function))


def identity(values: Counts) -> Counts:
  """The values as they are."""
  return values
