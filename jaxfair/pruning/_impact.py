"""Who pays for a smaller network: what pruning does to each group."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.analysis._by_group import ByGroup
from jaxfair.pruning import _masks as masking
from jaxfair.pruning._group_profile import STEPS, NonPrivateProfile, group_profiles
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss


class NonPrivateImpact(NamedTuple):
  """A network before pruning, and at each of R rates. Not for release.

  Attributes:
    rates: [R] what was asked for.
    removed: [R] share of all parameters that is gone.
    moved: [R] ||theta_bar - theta*||.
    before: the network as it was.
    after: at each rate; a leading axis R on every array.
  """

  rates: jax.Array
  removed: jax.Array
  moved: jax.Array
  before: NonPrivateProfile
  after: NonPrivateProfile

  @property
  def excess_loss(self) -> ByGroup:
    """R(a), the loss after minus the loss before: [R, G] and [R]."""
    return tree.subtract(self.after.loss, _beside(self.before.loss))

  @property
  def accuracy_cost(self) -> ByGroup:
    """Accuracy before minus accuracy after: [R, G] and [R]."""
    return tree.subtract(_beside(self.before.accuracy), self.after.accuracy)

  @property
  def unfairness(self) -> jax.Array:
    """[R] xi = max_{a, a'} |R(a) - R(a')|, over groups with people."""
    return _spread(self.excess_loss.group)

  @property
  def accuracy_gap(self) -> jax.Array:
    """[R] the best group's accuracy minus the worst group's, after."""
    return _spread(self.after.accuracy.group)


def impact(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  rates: Sequence[float],
  scope: masking.Scope = "global",
  unit: masking.Unit = "weight",
  norm: masking.Norm = "l2",
  prunable: masking.Prunable | None = None,
  key: Key | None = None,
  steps: int = STEPS,
  max_curved: int | None = None,
) -> NonPrivateImpact:
  """Measures what one-shot pruning without fine-tuning does to every group.

  R(a) = J(theta_bar; D_a) - J(theta*; D_a)

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the trained network.
    examples: the people.
    num_groups: static number of groups G.
    rates: shares of the weights to remove, each in [0, 1).
    scope: see `magnitude_masks`.
    unit: see `magnitude_masks`.
    norm: see `magnitude_masks`.
    prunable: see `magnitude_masks`.
    key: for Lanczos' starting vectors; None leaves curvature out.
    steps: see `group_profile`.
    max_curved: see `group_profile`.

  Returns:
    All rates at once: one ranking of the weights and one program.

  Reference:
    Thesis chapter 5, (5.2) and (5.3).
  """
  kept = masking.masks_at_rates(params, rates, scope=scope, unit=unit, norm=norm, prunable=prunable)
  pruned = jax.tree.map(lambda leaf, keep: leaf * keep, params, kept)
  return compare(
    model,
    loss,
    params,
    pruned,
    examples,
    num_groups=num_groups,
    rates=rates,
    key=key,
    steps=steps,
    max_curved=max_curved,
  )


def compare(
  model: Model,
  loss: PerExampleLoss,
  before: Params,
  after: Params,
  examples: Examples,
  *,
  num_groups: int,
  rates: Sequence[float],
  key: Key | None = None,
  steps: int = STEPS,
  max_curved: int | None = None,
  gradients: bool = True,
) -> NonPrivateImpact:
  """Measures the impact on networks that are already pruned, and possibly fine-tuned.

  Args:
    model: see `impact`.
    loss: see `impact`.
    before: the trained network.
    after: the pruned networks, with a leading axis R.
    examples: see `impact`.
    num_groups: see `impact`.
    rates: [R] rates at which they were pruned.
    key: see `impact`.
    steps: see `impact`.
    max_curved: see `impact`.
    gradients: see `group_profile`.
  """
  shares = masking.check_rates(rates)
  masking.check_like(
    before, after, "after", "stack one pruned network for each of the rates", leading=shares.shape
  )
  # One program for all: the network as it was is the first of them.
  networks = jax.tree.map(
    lambda one, many: jnp.concatenate([jnp.asarray(one)[None], many]), before, after
  )
  looks = group_profiles(
    model,
    loss,
    networks,
    examples,
    num_groups=num_groups,
    key=key,
    steps=steps,
    max_curved=max_curved,
    gradients=gradients,
  )
  removed, moved = _sizes(before, after)
  return NonPrivateImpact(
    jnp.asarray(shares, jnp.float32),
    removed,
    moved,
    tree.take(looks, 0),
    tree.take(looks, slice(1, None)),
  )


@jax.jit
def _sizes(before: Params, after: Params) -> tuple[jax.Array, jax.Array]:
  """[R] shares of zeros, and [R] distances."""

  def one(pruned: Params) -> tuple[jax.Array, jax.Array]:
    kept = jax.tree.map(lambda leaf: jnp.sum(leaf != 0), pruned)
    left = jnp.sum(jnp.stack(jax.tree.leaves(kept)))
    moved = tree.norm(tree.subtract(pruned, before))
    return (tree.size(before) - left) / tree.size(before), moved

  return jax.vmap(one)(after)


def _beside(before: ByGroup) -> ByGroup:
  """With an axis of length 1 where the rates are."""
  return ByGroup(before.group[..., None, :], before.population[..., None])


def _spread(values: jax.Array) -> jax.Array:
  return jnp.nanmax(values, axis=-1) - jnp.nanmin(values, axis=-1)
