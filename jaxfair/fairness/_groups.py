"""Counts, sums and means by group: the one reduction everybody uses."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Float, Num

from jaxfair.types import Array, Features, Groups, PerPerson

# A long float32 running sum drifts: a million values of 0.1 come out 0.35% too
# high. Sums of 256 values, added up afterwards, stay within 1e-6.
_BUCKET = 256


def group_counts(
  group: Groups, num_groups: int, weights: PerPerson | None = None
) -> Num[jax.Array, "groups"]:
  """Number of people, or total weight, of every group.

  Rows whose id lies outside 0..num_groups-1 belong to no group.

  Returns:
    [G] int32 counts, or floating totals when weights are given.
  """
  group = jnp.asarray(group)
  chex.assert_rank(group, 1)
  if weights is None:
    ones = jnp.ones(group.shape, jnp.int32)
    return jax.ops.segment_sum(ones, group, num_groups)
  return group_sums(weights, group, num_groups)


def group_sums(
  values: Features, group: Groups, num_groups: int, weights: PerPerson | None = None
) -> Num[jax.Array, "groups ..."]:
  """Sum of the values, or of weight times value, in every group.

  Returns:
    [G, ...] sums; 0 for an empty group.
  """
  values, group = jnp.asarray(values), jnp.asarray(group)
  chex.assert_rank(group, 1)
  chex.assert_equal_shape_prefix((values, group), 1)
  if values.dtype == jnp.bool_:
    values = values.astype(jnp.int32)
  if weights is not None:
    weights = jnp.asarray(weights)
    chex.assert_equal_shape((weights, group))
    values = values * _over_trailing_axes(weights, values.ndim)
  exact = jnp.issubdtype(values.dtype, jnp.integer)
  short = values.shape[0] <= _BUCKET
  bucket_size = None if exact or short else _BUCKET
  return jax.ops.segment_sum(values, group, num_groups, bucket_size=bucket_size)


def group_means(
  values: Features, group: Groups, num_groups: int, weights: PerPerson | None = None
) -> Float[jax.Array, "groups ..."]:
  """Mean of the values in every group; NaN for an empty group.

  An empty group does not spoil the gradients of the others.

  Returns:
    [G, ...] means.
  """
  sums = group_sums(values, group, num_groups, weights)
  counts = group_counts(group, num_groups, weights)
  return divide(sums, _over_trailing_axes(counts, sums.ndim))


def divide(numerator: Array, denominator: Array) -> jax.Array:
  """numerator / denominator, NaN where the denominator is 0.

  The gradient there is 0, not NaN, so one empty group cannot poison a loss
  that leaves it out.
  """
  known = denominator != 0
  quotient = numerator / jnp.where(known, denominator, 1)
  return jnp.where(known, quotient, jnp.nan)


def _over_trailing_axes(rows: jax.Array, ndim: int) -> jax.Array:
  """Appends axes of length 1 so that rows broadcast against the values."""
  return rows.reshape(rows.shape + (1,) * (ndim - rows.ndim))
