"""Arithmetic on pytrees of arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Tree = Any


def add(a: Tree, b: Tree) -> Tree:
  """a + b."""
  return jax.tree.map(jnp.add, a, b)


def subtract(a: Tree, b: Tree) -> Tree:
  """a - b."""
  return jax.tree.map(jnp.subtract, a, b)


def scale(factor: float | jax.Array | np.ndarray, a: Tree) -> Tree:
  """factor * a, for a scalar factor."""
  return jax.tree.map(lambda leaf: factor * leaf, a)


def zeros_like(a: Tree) -> Tree:
  """A tree of zeros with a's structure, shapes and types."""
  return jax.tree.map(jnp.zeros_like, a)


def dot(a: Tree, b: Tree) -> jax.Array:
  """<a, b>, summed over all leaves."""
  products = jax.tree.map(lambda u, v: jnp.sum(u * v), a, b)
  return sum(jax.tree.leaves(products), start=jnp.zeros(()))


def squared_norm(a: Tree) -> jax.Array:
  """||a||^2 over all leaves."""
  return dot(a, a)


def norm(a: Tree) -> jax.Array:
  """||a|| over all leaves, with a zero (not NaN) gradient at zero."""
  squared = squared_norm(a)
  positive = squared > 0
  return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def size(a: Tree) -> int:
  """Number of scalars in the tree."""
  return sum(int(np.prod(np.shape(leaf))) for leaf in jax.tree.leaves(a))


def stack(trees: list[Tree]) -> Tree:
  """One tree whose leaves carry a new leading axis."""
  return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def take(a: Tree, index: Any) -> Tree:
  """a[index] on the leading axis of every leaf."""
  return jax.tree.map(lambda leaf: leaf[index], a)


def repeat(a: Tree, count: int) -> Tree:
  """The tree `count` times along a new leading axis."""
  return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), a)
