"""Gradients and Hessian-vector products of groups, a chunk of people at a time.

One program holds every person's activations at once, and on CPU a convolution
inside a loop of the program is ten times slower than outside. Here the loops
are Python's, over one compiled chunk: memory does not grow with the number of
people, groups or steps.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.types import Examples, Model, Params, PerExampleLoss, PyTree

STEP = 32  # numbers of people are rounded up to a multiple of it


class Chunk(NamedTuple):
  """Some people of a group, and their weights in the group's mean."""

  people: Examples
  weights: Any


def chunks_by_group(examples: Examples, num_groups: int, size: int) -> list[list[Chunk]]:
  """Each group's people, then everybody, in chunks of one size.

  Args:
    examples: known people, not traced ones.
    num_groups: number of groups G.
    size: people in a chunk at most; the last of a group is filled up with
      weights of zero, so that all chunks have one shape.

  Returns:
    G + 1 lists whose weights sum to one; an empty one for an empty group.
  """
  checks.integer("chunk", size, low=1)
  checks.require(
    checks.concrete(examples), "chunk=... loops on the host; leave it out inside jit and vmap"
  )
  examples = jax.tree.map(np.asarray, examples)
  members = [np.flatnonzero(examples.group == a) for a in range(num_groups)]
  # Small groups need no large chunk. In steps, so that other people of about
  # the same number find their program compiled.
  longest = max(map(len, members))
  size = max(1, min(size, -(-longest // STEP) * STEP))
  return [_chunks(examples, rows, size) for rows in (*members, np.arange(examples.size))]


def mean_gradient(
  model: Model, loss: PerExampleLoss, params: Params, chunks: Sequence[Chunk]
) -> Params:
  """The gradient of the chunks' mean loss."""
  return _total(lambda chunk: _gradient(model, loss, params, chunk), chunks)


def mean_product(
  model: Model, loss: PerExampleLoss, params: Params, chunks: Sequence[Chunk], direction: Params
) -> Params:
  """The Hessian of the chunks' mean loss, times a direction."""
  return _total(lambda chunk: _product(model, loss, params, chunk, direction), chunks)


def largest_streamed(
  product: Callable[[Params], Params], start: Params, steps: int
) -> tuple[float, float]:
  """The largest Ritz value of a symmetric operator, and its residual."""
  *_, found = ritz_streamed(product, start, steps)
  return found


def ritz_streamed(
  product: Callable[[Params], Params], start: Params, steps: int
) -> Iterator[tuple[float, float]]:
  """`largest_streamed` after every step: who looks may stop.

  Lanczos with three vectors instead of all of them. Rounding makes the vectors
  lose their orthogonality, which repeats eigenvalues that were found; it makes
  none that is not there (Paige 1980), so the largest one stays right.
  """
  vector = tree.scale(1 / tree.norm(start), start)
  before, side = tree.zeros_like(vector), jnp.zeros(())
  diagonal: list[float] = []
  sides: list[float] = []
  for _ in range(steps):
    image = product(vector)
    before, vector, alpha, side = _advance(image, vector, before, side)
    diagonal.append(float(alpha))
    inner = np.array(sides)
    sides.append(float(side))
    matrix = np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    values, vectors = np.linalg.eigh(matrix)
    yield float(values[-1]), float(abs(sides[-1] * vectors[-1, -1]))
    scale = max(map(abs, (*diagonal, *sides[:-1])))
    if sides[-1] <= 10 * float(np.finfo(np.float32).eps) * scale:
      return  # the space is used up: the value is exact


def _chunks(examples: Examples, rows: np.ndarray, size: int) -> list[Chunk]:
  found = []
  for first in range(0, len(rows), size):
    own = rows[first : first + size]
    fill = np.r_[own, np.repeat(own[-1:], size - len(own))]
    weights = np.where(np.arange(size) < len(own), 1 / len(rows), 0.0)
    found.append(Chunk(examples.take(fill), weights.astype(np.float32)))
  return found


def _total(function: Callable[[Chunk], Params], chunks: Sequence[Chunk]) -> Params:
  total = function(chunks[0])
  for chunk in chunks[1:]:
    # Waiting keeps one chunk's memory in use at a time, not all of them.
    total = jax.block_until_ready(_add(total, function(chunk)))
  return total


_add = jax.jit(tree.add, donate_argnums=0)


def _weighted(model: Model, loss: PerExampleLoss, chunk: Chunk, params: Params) -> jax.Array:
  return jnp.vdot(chunk.weights, per_example(model, loss, params, chunk.people))


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _gradient(model: Model, loss: PerExampleLoss, params: Params, chunk: Chunk) -> Params:
  return jax.grad(functools.partial(_weighted, model, loss, chunk))(params)


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _product(
  model: Model, loss: PerExampleLoss, params: Params, chunk: Chunk, direction: Params
) -> Params:
  gradient = jax.grad(functools.partial(_weighted, model, loss, chunk))
  return jax.jvp(gradient, (params,), (direction,))[1]


@jax.jit
def _advance(image: PyTree, vector: PyTree, before: PyTree, side: PyTree) -> PyTree:
  """One step of the three-term recursion."""
  image = tree.subtract(image, tree.scale(side, before))
  alpha = tree.dot(vector, image)
  image = tree.subtract(image, tree.scale(alpha, vector))
  length = tree.norm(image)
  tiny = jnp.finfo(jnp.float32).tiny
  return vector, tree.scale(1 / jnp.maximum(length, tiny), image), alpha, length
