"""The largest eigenvalue of every group's Hessian (Lanczos)."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from jaxfair import checks, tree
from jaxfair.analysis import _streamed_products as streamed
from jaxfair.analysis._by_group import ByGroup, weights_by_group
from jaxfair.analysis._curvature import check_people
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.privacy._normal import normal
from jaxfair.types import Examples, Groups, Key, Model, Params, PerExampleLoss, PyTree


class NonPrivateEigenvalues(NamedTuple):
  """Largest eigenvalues. Not for release.

  Attributes:
    values: of each group's Hessian and of the population's: the largest, not
      the largest in magnitude. Never above the truth, but for rounding.
    error: how far the value can be from *an* eigenvalue of the matrix.
  """

  values: ByGroup
  error: ByGroup


def top_eigenvalue(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  key: Key,
  steps: int = 30,
  chunk: int | None = None,
) -> NonPrivateEigenvalues:
  """The largest eigenvalue of the Hessian of each group's mean loss.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.
    key: for the starting vectors.
    steps: Hessian-vector products per group; at most the number of parameters
      are taken, and then the value is exact.
    chunk: people in memory at once. By default all people of a group are, and one program takes
      the groups in turn and keeps `steps` vectors of the parameters' size; with a chunk three
      vectors are kept.

  Returns:
    The eigenvalues. Without `chunk` they are differentiable by the parameters and by the
    examples' features (d lambda = u' dH u, with the eigenvector u), as far as the eigenvalue is
    simple and the steps have found it; `error` is constant.

  Reference:
    Lanczos 1950, with every new vector made orthogonal to all before it, twice.
  """
  checks.one_key("key", key)
  checks.integer("steps", steps, low=1, remedy="30 is usual")
  check_people(examples, num_groups)
  steps = min(int(steps), tree.size(params))
  if chunk is not None:
    return _streamed(model, loss, params, examples, num_groups, steps, key, chunk)
  rows = _rows_by_group(examples.group, num_groups)
  return _top(model, loss, params, examples, rows, num_groups, steps, key)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups", "steps"))
def _top(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  rows: PyTree,
  num_groups: int,
  steps: int,
  key: jax.Array,
) -> NonPrivateEigenvalues:
  examples = jax.tree.map(jnp.asarray, examples)
  flat, unravel = ravel_pytree(params)
  *weights, everybody = weights_by_group(examples.group, num_groups)

  def one(people: Examples, row: jax.Array, start: jax.Array) -> tuple[jax.Array, jax.Array]:
    known = jnp.where(jnp.isnan(row), 0.0, row)

    def gradient(v: jax.Array, people: Examples) -> jax.Array:
      return jax.grad(lambda v: known @ per_example(model, loss, unravel(v), people))(v)

    # Linearized once: what does not depend on the direction is not computed in every step.
    fixed, held = jax.lax.stop_gradient((flat, people))
    _, product = jax.linearize(lambda v: gradient(v, held), fixed)
    value, error, vector = largest(product, start, steps)
    # d lambda = u' dH u for the eigenvector u: differentiating the iteration itself would divide
    # by gaps between eigenvalues that have nothing to do with it.
    curved = vector @ jax.jvp(lambda v: gradient(v, people), (flat,), (vector,))[1]
    value += curved - jax.lax.stop_gradient(curved)
    empty = jnp.any(jnp.isnan(row))
    return jnp.where(empty, jnp.nan, value), jnp.where(empty, jnp.nan, error)

  def one_group(given: PyTree) -> tuple[jax.Array, jax.Array]:
    own, row, start = given
    # A row that stands for nobody is numbered n: it has the weight 0, and the features of another.
    # An empty group has such rows alone; it stays NaN.
    known = row.at[own].get(mode="fill", fill_value=0.0) + 0 * row[0]
    return one(jax.tree.map(lambda leaf: leaf.at[own].get(mode="clip"), examples), known, start)

  starts = normal(key, (num_groups + 1, flat.size))
  values, errors = jax.lax.map(one_group, (rows, jnp.stack(weights), starts[:-1]))
  value, error = one(examples, everybody, starts[-1])
  return NonPrivateEigenvalues(ByGroup(values, value), ByGroup(errors, error))


def _rows_by_group(group: Groups, num_groups: int) -> np.ndarray:
  """[G, size] the rows of each group's people, filled up with n.

  A group's products then read its own people and no others. Groups that are traced are not known:
  everybody is in every row there, and the weights alone tell groups apart.
  """
  if not checks.concrete(group):
    return np.tile(np.arange(group.shape[0]), (num_groups, 1))
  group = np.asarray(group)
  longest = int(np.max(np.bincount(group, minlength=num_groups)))
  # In steps, so that other people of about the same number find their program compiled.
  size = min(len(group), -(-longest // streamed.STEP) * streamed.STEP)
  rows = np.full((num_groups, size), len(group))
  for index, own in enumerate(rows):
    members = np.flatnonzero(group == index)
    own[: len(members)] = members
  return rows


def _streamed(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  steps: int,
  key: jax.Array,
  chunk: int,
) -> NonPrivateEigenvalues:
  found = []
  groups = streamed.chunks_by_group(examples, num_groups, chunk)
  _, unravel = ravel_pytree(params)
  for index, own in enumerate(groups):
    if not own:
      found.append((float("nan"), float("nan")))
      continue
    product = functools.partial(streamed.mean_product, model, loss, params, own)
    start = normal(jax.random.fold_in(key, index), (tree.size(params),))
    found.append(streamed.largest_streamed(product, unravel(start), steps))
  values, errors = (jnp.asarray(column) for column in zip(*found, strict=True))
  return NonPrivateEigenvalues(ByGroup(values[:-1], values[-1]), ByGroup(errors[:-1], errors[-1]))


class Ritz(NamedTuple):
  """The largest Ritz value, its residual, and its vector of length 1."""

  value: jax.Array
  error: jax.Array
  vector: jax.Array


def largest(product: Callable[[jax.Array], jax.Array], start: jax.Array, steps: int) -> Ritz:
  """The largest Ritz value of a symmetric operator."""
  size = start.shape[0]
  tiny = jnp.finfo(start.dtype).tiny

  def step(basis: jax.Array, index: jax.Array) -> PyTree:
    vector = basis[index]
    image = product(vector)
    diagonal = vector @ image
    # Twice is enough: what rounding leaves of the old vectors would otherwise
    # grow, and eigenvalues would be found several times.
    for _ in range(2):
      image = image - basis.T @ (basis @ image)
    length = jnp.linalg.norm(image)
    # A space that is used up: zeros from here on, which couple to nothing.
    floor = 10 * jnp.finfo(start.dtype).eps * jnp.abs(diagonal)
    alive = length > floor
    fresh = jnp.where(alive, image / jnp.maximum(length, tiny), 0.0)
    basis = basis.at[index + 1].set(fresh)
    return basis, (diagonal, jnp.where(alive, length, 0.0), jnp.any(vector))

  first = start / jnp.linalg.norm(start)
  basis = jnp.zeros((steps + 1, size)).at[0].set(first)
  basis, (diagonal, side, used) = jax.lax.scan(step, basis, jnp.arange(steps))
  # Steps after the end would add an eigenvalue 0 that is none of the matrix's.
  diagonal = jnp.where(used, diagonal, jnp.min(diagonal))
  matrix = jnp.diag(diagonal) + jnp.diag(side[:-1], 1) + jnp.diag(side[:-1], -1)
  values, vectors = jnp.linalg.eigh(matrix)
  error = jnp.abs(side[-1] * vectors[-1, -1])
  return Ritz(values[-1], error, vectors[:, -1] @ basis[:-1])
