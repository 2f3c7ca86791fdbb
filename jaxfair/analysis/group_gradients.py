"""The gradient of every group's mean loss."""

import functools

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.analysis import streamed
from jaxfair.analysis.by_group import ByGroup, mean_by_group
from jaxfair.analysis.curvature import check_people
from jaxfair.analysis.directions import per_example
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
    params: where.
    examples: the people.
    num_groups: static number of groups G.
    chunk: people in memory at once; by default all, in one program.

  Returns:
    Trees of the parameters; the groups' with a leading axis G, NaN for an
    empty group. Not for release.
  """
  check_people(examples, num_groups)
  if chunk is None:
    return _together(model, loss, params, examples, num_groups)
  nothing = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), params)
  found = [
    streamed.mean_gradient(model, loss, params, own) if own else nothing
    for own in streamed.chunks_by_group(examples, num_groups, chunk)
  ]
  return ByGroup(tree.stack(found[:-1]), found[-1])


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _together(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples,
  num_groups: int,
) -> ByGroup:  # fmt: skip
  people = jax.tree.map(jnp.asarray, examples)

  def losses(p: Params) -> ByGroup:
    own = per_example(model, loss, p, people)
    return mean_by_group(own, people.group, num_groups)

  known = jnp.isfinite(losses(params).group)
  found = jax.jacrev(losses)(params)
  group = jax.tree.map(
    lambda leaf: jnp.where(
      known.reshape(-1, *(1,) * (leaf.ndim - 1)), leaf, jnp.nan
    ),
    found.group,
  )
  return ByGroup(group, found.population)
