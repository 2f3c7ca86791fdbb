"""The gradient of every group's mean loss."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.analysis import _streamed_products as streamed
from jaxfair.analysis._by_group import ByGroup
from jaxfair.analysis._curvature import check_people
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.fairness._groups import group_counts, group_means
from jaxfair.types import Examples, Model, Params, PerExampleLoss


def group_gradients(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  chunk: int | None = None,
) -> ByGroup:
  """g_a, the gradient of each group's mean loss, and the population's.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.
    chunk: people in memory at once; by default all, in one program.

  Returns:
    Trees of the parameters; the groups' with a leading axis G, NaN for an
    empty group. Not for release.
  """
  check_people(examples, num_groups)
  if chunk is not None:
    return _streamed(model, loss, params, examples, num_groups, chunk)
  if checks.concrete(examples.group):
    rows, weights = _blocks(np.asarray(examples.group), num_groups)
    return _by_block(model, loss, params, examples, rows, weights)
  return _together(model, loss, params, examples, num_groups)


def _streamed(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  chunk: int,
) -> ByGroup:
  nothing = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), params)
  found = [
    streamed.mean_gradient(model, loss, params, own) if own else nothing
    for own in streamed.chunks_by_group(examples, num_groups, chunk)
  ]
  return ByGroup(tree.stack(found[:-1]), found[-1])


def _blocks(group: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
  """[G, m] rows of each group, filled up, and their weights in its mean."""
  members = [np.flatnonzero(group == a) for a in range(num_groups)]
  longest = max(map(len, members))
  rows = np.zeros((num_groups, longest), np.int32)
  weights = np.zeros((num_groups, longest), np.float32)
  for a, own in enumerate(members):
    rows[a, : len(own)] = own
    weights[a, : len(own)] = 1 / max(1, len(own))
    if not len(own):
      weights[a] = np.nan
  return rows, weights


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _by_block(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  rows: jax.Array,
  weights: jax.Array,
) -> ByGroup:
  """Each person contributes to their own group only."""
  people = jax.tree.map(jnp.asarray, examples)

  def one(own: jax.Array, weight: jax.Array) -> Params:
    known = jnp.where(jnp.isnan(weight), 0.0, weight)
    found = jax.grad(lambda p: known @ per_example(model, loss, p, people.take(own)))(params)
    empty = jnp.isnan(weight[0])
    return jax.tree.map(lambda leaf: jnp.where(empty, jnp.nan, leaf), found)

  group = jax.vmap(one)(rows, weights)
  counts = jnp.sum(weights > 0, axis=1)
  return ByGroup(group, _pooled(group, counts))


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _together(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, num_groups: int
) -> ByGroup:
  """Groups that are not known yet: everybody, once for every group."""
  people = jax.tree.map(jnp.asarray, examples)

  def losses(p: Params) -> jax.Array:
    own = per_example(model, loss, p, people)
    return group_means(own, people.group, num_groups)

  counts = group_counts(people.group, num_groups)
  found = jax.jacrev(losses)(params)
  group = jax.tree.map(lambda leaf: jnp.where(_over(counts, leaf) > 0, leaf, jnp.nan), found)
  return ByGroup(group, _pooled(group, counts))


def _pooled(group: Params, counts: jax.Array) -> Params:
  """Everybody's gradient: the mean of the groups' by their sizes."""
  shares = counts / jnp.sum(counts)
  return jax.tree.map(
    lambda leaf: jnp.sum(
      jnp.where(_over(counts, leaf) > 0, _over(shares, leaf) * leaf, 0.0), axis=0
    ),
    group,
  )


def _over(values: jax.Array, leaf: jax.Array) -> jax.Array:
  """[G] with axes of length 1 for the leaf's others."""
  return values.reshape(-1, *(1,) * (leaf.ndim - 1))
