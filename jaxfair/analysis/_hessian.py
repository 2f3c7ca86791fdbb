"""Whole Hessians of group losses: for small models, and as the oracle."""

import functools

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxfair import checks, tree
from jaxfair.analysis._by_group import ByGroup, weights_by_group
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.types import Examples, Model, Params, PerExampleLoss

LARGEST = 4_000  # parameters; a matrix of that many squared is 64 MB


def group_hessians(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, *, num_groups: int
) -> ByGroup:
  """The Hessian of each group's mean loss, and of the population's.

  Args:
    model: of at most 4,000 parameters.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.

  Returns:
    [G, p, p] and [p, p] matrices over the flattened parameters (the order of
    `jax.flatten_util.ravel_pytree`); NaN for an empty group.
  """
  size = tree.size(params)
  checks.require(
    size <= LARGEST,
    f"params has {size} numbers, and a Hessian their square; use at most "
    f"{LARGEST}, or hessian_trace and top_eigenvalue",
  )
  return _group_hessians(model, loss, params, examples, num_groups)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _group_hessians(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, num_groups: int
) -> ByGroup:
  flat, unravel = ravel_pytree(params)
  weights = weights_by_group(examples.group, num_groups)

  def one(row: jax.Array) -> jax.Array:
    known = jnp.where(jnp.isnan(row), 0.0, row)
    found = jax.hessian(lambda v: known @ per_example(model, loss, unravel(v), examples))(flat)
    return jnp.where(jnp.any(jnp.isnan(row)), jnp.nan, found)

  # One after the other: side by side they would multiply the memory.
  found = jax.lax.map(one, weights)
  return ByGroup(found[:-1], found[-1])
