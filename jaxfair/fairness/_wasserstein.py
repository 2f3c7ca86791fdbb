"""Generalized demographic parity: how far apart the groups' scores lie."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness import _gaps, _inputs
from jaxfair.fairness._gaps import Method
from jaxfair.fairness._groups import divide
from jaxfair.types import ArrayLike, GroupsLike, PerPersonLike


def wasserstein_disparity(
  scores: ArrayLike,
  *,
  sensitive_features: GroupsLike,
  method: Method = "between_groups",
  sample_weight: PerPersonLike | None = None,
  num_groups: int | None = None,
  skip_empty: bool = False,
) -> jax.Array:
  """Largest Wasserstein-1 distance between the groups' score distributions.

  W(a, b) = integral |F_a(t) - F_b(t)| dt

  It is 0 only when every threshold on the score selects the groups equally
  often, so it measures demographic parity at all thresholds at once.

  Args:
    scores: [n] one score per person; or [n, C], where each column is taken in
      turn and the worst one counts.
    sensitive_features: [n] group ids.
    method: "between_groups" (the two groups furthest apart) or "to_overall"
      (the group furthest from everybody).
    sample_weight: [n] weights, or None for one each.
    num_groups: static number of groups; needed inside jit.
    skip_empty: leave empty groups out. Otherwise one makes the result NaN.

  Returns:
    The distance, in units of the score.
  """
  distances = wasserstein_distances(
    scores,
    sensitive_features=sensitive_features,
    method=method,
    sample_weight=sample_weight,
    num_groups=num_groups,
  )
  return (jnp.nanmax if skip_empty else jnp.max)(distances)


def wasserstein_distances(
  scores: ArrayLike,
  *,
  sensitive_features: GroupsLike,
  method: Method = "between_groups",
  sample_weight: PerPersonLike | None = None,
  num_groups: int | None = None,
) -> jax.Array:
  """Wasserstein-1 distance of every two groups, or of each to everybody.

  Args:
    scores: [n], or [n, C] for one answer per column.
    sensitive_features: [n] group ids.
    method: "between_groups" or "to_overall".
    sample_weight: [n] weights, or None for one each.
    num_groups: static number of groups G; needed inside jit.

  Returns:
    [G, G] for "between_groups", [G] for "to_overall", with a leading axis C
    for scores of two axes; NaN where a group is empty.
  """
  checks.one_of("method", method, _gaps.METHODS)
  scores = _inputs.scores("scores", scores)
  group, num_groups, weights = _inputs.groups(
    sensitive_features, num_groups, sample_weight, scores=scores
  )
  one_column: Callable[[jax.Array], jax.Array] = functools.partial(
    _distances,
    group=jnp.asarray(group),
    weights=jnp.ones(scores.shape[0]) if weights is None else weights,
    num_groups=num_groups,
    to_overall=method == "to_overall",
  )
  if scores.ndim == 2:
    one_column = jax.vmap(one_column, in_axes=1)
  return one_column(scores)


@functools.partial(jax.jit, static_argnames=("num_groups", "to_overall"))
def _distances(
  scores: jax.Array, group: jax.Array, weights: jax.Array, num_groups: int, to_overall: bool
) -> jax.Array:
  order = jnp.argsort(scores)
  steps = jnp.diff(scores[order])
  member = jax.nn.one_hot(group[order], num_groups, dtype=weights.dtype)
  member = member * weights[order][:, None]
  totals = jnp.sum(member, axis=0)
  below = jnp.cumsum(member, axis=0)[:-1]  # [n - 1, G], constant on a step
  cdf = divide(below, totals)

  def distance_to(reference: jax.Array) -> jax.Array:
    return jnp.sum(steps[:, None] * jnp.abs(cdf - reference[:, None]), axis=0)

  present = totals > 0
  if to_overall:
    everybody = divide(jnp.sum(below, axis=1), jnp.sum(totals))
    return jnp.where(present, distance_to(everybody), jnp.nan)
  # One group at a time: all pairs at once would take n G^2 numbers.
  distances = jax.lax.map(distance_to, cdf.T)
  return jnp.where(present & present[:, None], distances, jnp.nan)
