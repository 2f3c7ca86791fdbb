"""Clip factors from the norms of per-example gradients."""

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from jaxfair.types import Number, Params

ClipRule: TypeAlias = Literal["clip", "normalize", "drop"]
RULES: tuple[ClipRule, ...] = ("clip", "normalize", "drop")
# Added to norms that gradients are divided by, so that the smallest ones stay small.
NORM_OFFSET = 0.01
# What sums round away of a norm is added to it; this pays for the roundings of
# the root, the quotient and the product with it.
ROUNDING_MARGIN = 1 - 2.0**-20


def weights_of(
  squared: jax.Array,
  largest: jax.Array,
  params: Params,
  *,
  l2_clip: Number,
  per_layer: bool,
  rule: ClipRule,
  mask: jax.Array,
  finite: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """[leaves, n] clip factors, [n] norms, and [n] which are non-finite.

  Factors are those of the largest norms that rounding may have hidden. Where
  that bound is not finite there is none, and the example is left out.

  Args:
    squared: [leaves, n] squared norms of the gradients.
    largest: [leaves, n] from `_factor_norms.largest_norms`.
    params: the parameters that the gradients belong to.
    l2_clip: bound on the norm of one example's contribution.
    per_layer: see `clipped_grad`.
    rule: see `clipped_grad`.
    mask: [n] which examples take part.
    finite: [n] which have finite features.
  """
  total, bound = jnp.sum(squared, axis=0), jnp.sum(largest, axis=0)
  bad = ~(jnp.isfinite(bound) & finite)
  takes_part = mask & ~bad
  norms = jnp.where(takes_part, jnp.sqrt(jnp.maximum(total, 0.0)), 0.0)
  if not per_layer:
    factor = jnp.where(takes_part, clip_factor(bound, l2_clip, rule), 0.0)
    return jnp.broadcast_to(factor, squared.shape), norms, bad
  layer = layer_ids(params)
  count = max(layer) + 1
  sums = jax.ops.segment_sum(largest, jnp.asarray(layer), count)
  share = l2_clip / jnp.sqrt(float(count))
  weights = clip_factor(sums, share, rule)[jnp.asarray(layer)]
  return jnp.where(takes_part, weights, 0.0), norms, bad


def clip_factor(squared: jax.Array, bound: Number, rule: ClipRule = "clip") -> jax.Array:
  """min(1, bound / norm), from squared norms, a hair below for rounding.

  To normalize, bound / (norm + offset). To drop, 1 within the bound and 0 beyond.
  """
  positive = squared > 0
  norm = jnp.sqrt(jnp.where(positive, squared, 1.0))
  if rule == "normalize":
    factor = ROUNDING_MARGIN * bound / (norm + NORM_OFFSET)
  elif rule == "drop":
    factor = jnp.where(norm <= ROUNDING_MARGIN * bound, 1.0, 0.0)
  else:
    factor = jnp.minimum(1.0, ROUNDING_MARGIN * bound / norm)
  return jnp.where(positive, factor, 1.0)


def layer_ids(params: Params) -> tuple[int, ...]:
  """For each leaf, the number of its layer: leaves under one node."""
  paths = [path[:-1] for path, _ in jax.tree_util.tree_leaves_with_path(params)]
  order = {path: i for i, path in enumerate(dict.fromkeys(paths))}
  return tuple(order[path] for path in paths)
