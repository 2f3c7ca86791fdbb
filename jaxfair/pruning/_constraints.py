"""Constraints that keep groups together when a network is pruned."""

import dataclasses

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxfair import checks, tree
from jaxfair.analysis._by_group import weights_by_group
from jaxfair.analysis._directional_derivatives import per_example
from jaxfair.analysis._lanczos import largest
from jaxfair.fairness._groups import group_counts
from jaxfair.fairness.constraints import Notion, Violations, equal_losses
from jaxfair.types import Examples, Model, Params, PerExampleLoss


def relaxed(num_groups: int, loss: PerExampleLoss) -> Notion:
  """Equal group losses: |J(theta; D_a) - J(theta; D)| for every group.

  Reference:
    Thesis chapter 5, (5.8).
  """
  return equal_losses(num_groups, loss, sides="absolute")


def full(model: Model, loss: PerExampleLoss, num_groups: int, *, steps: int = 5) -> "EqualFactors":
  """Equal gradient norms and equal top eigenvalues.

  | ||g_a|| - ||g|| | / s_g  and  | lambda_max(H_a) - lambda_max(H) | / s_H

  Gradient norms and eigenvalues are of different sizes, and of other sizes
  than losses: under one rate of multipliers the larger would be all. So each
  gap is a share of its factor's mean over people, s = sum_a p_a |factor_a|,
  held fixed in derivatives: who is equal stays equal, nobody gains by making
  everybody's factor large, and multiplying the loss changes nothing. Both
  factors are convex, so everybody's is at most s.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, three times differentiable.
    num_groups: G.
    steps: of Lanczos for each group, in every training step.

  Returns:
    A constraint for `training.LagrangianConfig`; equal arguments give equal
    ones, which share programs. It costs G + 1 gradients and G + 1 times
    `steps` Hessian-vector products of the batch, and their derivatives.

  Reference:
    Thesis chapter 5, (5.7).
  """
  checks.integer("num_groups", num_groups, low=1)
  checks.integer("steps", steps, low=1)
  return EqualFactors(model, loss, int(num_groups), int(steps))


@dataclasses.dataclass(frozen=True)
class EqualFactors:
  """`full`, as a function of parameters and a batch."""

  model: Model
  loss: PerExampleLoss
  num_groups: int
  steps: int

  def __call__(self, params: Params, batch: Examples) -> Violations:
    """[2 G] relative gaps; 0 for a group without people in the batch."""
    weights = weights_by_group(batch.group, self.num_groups)
    known = jnp.isfinite(weights[:, :1])
    weights = jnp.where(known, weights, 0.0)
    flat, unravel = ravel_pytree(params)
    # Lanczos starts at a fixed vector: a training step has no key of its own,
    # and any start that is not orthogonal to the answer will do.
    start = jax.random.normal(jax.random.key(0), flat.shape)

    def factors(row: jax.Array) -> tuple[jax.Array, jax.Array]:
      def mean(v: jax.Array) -> jax.Array:
        return row @ per_example(self.model, self.loss, unravel(v), batch)

      def product(at: jax.Array, v: jax.Array) -> jax.Array:
        return jax.jvp(jax.grad(mean), (at,), (v,))[1]

      fixed = jax.lax.stop_gradient(flat)
      vector = jax.lax.stop_gradient(largest(lambda v: product(fixed, v), start, self.steps).vector)
      # With its eigenvector held fixed, the derivative of v' H v is that of
      # the eigenvalue.
      return tree.norm(jax.grad(mean)(flat)), vector @ product(flat, vector)

    norms, tops = jax.vmap(factors)(weights)
    counts = group_counts(batch.group, self.num_groups)

    def gaps(values: jax.Array) -> jax.Array:
      scale = jax.lax.stop_gradient(jnp.abs(values[:-1]) @ counts / batch.size)
      # A factor that is 0 in every group has no gap.
      gap = jnp.abs(values[:-1] - values[-1]) / jnp.where(scale > 0, scale, 1.0)
      return jnp.where(counts > 0, gap, 0.0)

    value = jnp.concatenate([gaps(norms), gaps(tops)])
    return Violations(value, value, jnp.tile(counts, 2))
