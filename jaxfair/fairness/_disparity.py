"""Demographic disparity of counts: how often each group gets each class."""

import functools
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from jaxfair import checks
from jaxfair.fairness._groups import divide
from jaxfair.types import ArrayLike

DisparityKind: TypeAlias = Literal["rest", "pairwise", "overall"]
DISPARITY_KINDS: tuple[DisparityKind, ...] = ("rest", "pairwise", "overall")


def demographic_disparity(
  counts: ArrayLike, *, notion: DisparityKind = "rest", skip_empty: bool = False
) -> Float[jax.Array, "groups classes"]:
  """Gamma(z, k): how much more often group z is assigned class k than the others are.

  rest:     P(k | z) - P(k | not z)
  pairwise: max_z' |P(k | z) - P(k | z')|
  overall:  P(k | z) - P(k)

  `rest` and `overall` have a sign: below 0 the group gets the class less often.
  A set of decisions is gamma-fair when no entry exceeds gamma.

  Args:
    counts: [G, C] decisions by group and class, m(z, k).
    notion: which of the three.
    skip_empty: let `pairwise` compare with the groups that have decisions.
      Otherwise one empty group makes all of it NaN.

  Returns:
    [G, C] disparities; NaN where a side of the comparison is empty.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, definition 1 and appendix H.1.
  """
  checks.one_of("notion", notion, DISPARITY_KINDS)
  checks.non_negative("counts", counts)
  counts = jnp.asarray(counts)
  checks.require(
    counts.ndim == 2, f"counts has shape {counts.shape}; pass decisions by group and class"
  )
  return _disparity(counts, notion, skip_empty)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _disparity(counts: jax.Array, notion: DisparityKind, skip_empty: bool) -> jax.Array:
  sizes = jnp.sum(counts, axis=1, keepdims=True)
  rate = divide(counts, sizes)
  class_totals = jnp.sum(counts, axis=0)
  if notion == "rest":
    return rate - divide(_sum_of_others(counts), _sum_of_others(sizes))
  if notion == "overall":
    return rate - divide(class_totals, jnp.sum(class_totals))
  smallest, largest = (jnp.nanmin, jnp.nanmax) if skip_empty else (jnp.min, jnp.max)
  return jnp.maximum(rate - smallest(rate, axis=0), largest(rate, axis=0) - rate)


def _sum_of_others(rows: jax.Array) -> jax.Array:
  """Sum over all rows but this one.

  Not the total minus this row: beside a group of millions, float32 would lose
  the others.
  """
  others = 1 - jnp.eye(rows.shape[0], dtype=rows.dtype)
  return jnp.matmul(others, rows, precision="highest")
