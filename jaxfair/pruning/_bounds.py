"""Bounds on what a group can lose by pruning, with both sides measured."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import analysis, tree
from jaxfair.analysis import _by_group, _directional_derivatives, _group_gradients
from jaxfair.analysis._by_group import ByGroup
from jaxfair.fairness._groups import group_counts
from jaxfair.pruning._group_profile import STEPS, check
from jaxfair.types import Array, Examples, Key, Model, Params, PerExampleLoss


class NonPrivateExcessBound(NamedTuple):
  """Theorem 5.1 and what it bounds. Not for release.

  Attributes:
    first: ||g_a|| ||d||, d the change of the parameters.
    second: lambda_max(H_a) ||d||^2 / 2.
    slope: <g_a, d>, at most `first`.
    curvature: d' H_a d / 2, at most `second`.
    excess: R(a), the loss after minus before.
  """

  first: ByGroup
  second: ByGroup
  slope: ByGroup
  curvature: ByGroup
  excess: ByGroup

  @property
  def bound(self) -> ByGroup:
    """The right-hand side without its third order."""
    return tree.add(self.first, self.second)

  @property
  def remainder(self) -> ByGroup:
    """R(a) minus its second-order expansion: what the O(|d|^3) stands for."""
    return tree.subtract(self.excess, tree.add(self.slope, self.curvature))

  @property
  def holds(self) -> ByGroup:
    """Whether R(a) is below the bound; the third order may break it."""
    return jax.tree.map(jnp.less_equal, self.excess, self.bound)


def excess_bound(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  pruned: Params,
  examples: Examples,
  *,
  num_groups: int,
  key: Key,
  steps: int = STEPS,
) -> NonPrivateExcessBound:
  """The bound on every group's excess loss, term by term.

  R(a) <= ||g_a|| ||d|| + lambda_max(H_a) ||d||^2 / 2 + O(||d||^3)

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: theta*, where gradients and Hessians are taken.
    pruned: theta_bar, zeros included.
    examples: the people; at least two of every group.
    num_groups: static number of groups G.
    key: for Lanczos.
    steps: Hessian-vector products per group.

  Returns:
    The terms. At rates used in practice the third order is no small thing:
    look at `remainder` before you lean on the bound.

  Reference:
    Thesis chapter 5, Theorem 5.1.
  """
  check(examples, num_groups, key)
  change = tree.subtract(pruned, params)
  moved = tree.norm(change)
  gradients = _group_gradients.group_gradients(model, loss, params, examples, num_groups=num_groups)
  top = analysis.top_eigenvalue(
    model, loss, params, examples, num_groups=num_groups, key=key, steps=steps
  ).values
  first = ByGroup(
    jax.vmap(tree.norm)(gradients.group) * moved, tree.norm(gradients.population) * moved
  )
  slope, curvature, excess = _expansion(model, loss, params, change, examples, num_groups)
  second = tree.scale(0.5 * moved**2, top)
  return NonPrivateExcessBound(first, second, slope, curvature, excess)


class SizeIdentity(NamedTuple):
  """Proposition 5.1 at a point. Not for release.

  Attributes:
    gradient_norm: [G] ||g_a||.
    count: [G] |D_a|.
    imbalance: ||sum_a |D_a| g_a|| over sum_a |D_a| ||g_a||; 0 where the plain
      training loss is stationary, 1 where all groups pull one way.
  """

  gradient_norm: Array
  count: Any
  imbalance: Array


def size_identity(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, *, num_groups: int
) -> SizeIdentity:
  """How nearly sum_a |D_a| g_a = 0 holds for the group gradients g_a where training ended.

  Of two groups, |D_a| ||g_a|| = |D_b| ||g_b|| then, so the larger group has
  the smaller gradient. With three or more groups, with weight decay, or short
  of a stationary point the order does not follow; `imbalance` tells the last.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters where training ended.
    examples: the people it was trained on; no group may be empty.
    num_groups: static number of groups G.

  Reference:
    Thesis chapter 5, Proposition 5.1, which states it for any two groups of
    any number; its proof is for two.
  """
  found = _group_gradients.group_gradients(model, loss, params, examples, num_groups=num_groups)
  norms = jax.vmap(tree.norm)(found.group)
  count = group_counts(examples.group, num_groups)
  pull = examples.size * tree.norm(found.population)
  return SizeIdentity(norms, count, pull / jnp.sum(count * norms))


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _expansion(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  change: Params,
  examples: Examples,
  num_groups: int,
) -> tuple[ByGroup, ByGroup, ByGroup]:
  people = jax.tree.map(jnp.asarray, examples)
  here = _directional_derivatives.along(model, loss, params, people, change)
  after = loss(model.apply(tree.add(params, change), people.x), people.y)
  values = (here.slopes, 0.5 * here.curvatures, after - here.losses)
  slope, curvature, excess = (_by_group.mean_by_group(v, people.group, num_groups) for v in values)
  return slope, curvature, excess
