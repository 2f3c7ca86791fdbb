"""From one number per group to one gap: differences and ratios."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import chex
import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness._groups import divide

Method: TypeAlias = Literal["between_groups", "to_overall"]
METHODS: tuple[Method, ...] = ("between_groups", "to_overall")


def difference(
  by_group: jax.Array,
  overall: jax.Array | None = None,
  *,
  method: Method = "between_groups",
  skip_empty: bool = False,
) -> jax.Array:
  """The largest difference between groups, or between a group and everyone.

  between_groups: max_a r_a - min_a r_a
  to_overall:     max_a |r_a - r|

  Args:
    by_group: [G, ...] one value per group, NaN where it is not known.
    overall: [...] the value for everybody; needed by `to_overall`.
    method: which of the two.
    skip_empty: leave groups with NaN out. Otherwise one of them makes the
      result NaN: a gap to an unobserved group is unknown.

  Returns:
    [...] gaps, 0 or above.
  """
  chex.assert_shape(by_group, (None, ...))
  smallest, largest = _extremes(skip_empty)
  reference = _reference(overall, method)
  if reference is None:
    return largest(by_group, axis=0) - smallest(by_group, axis=0)
  return largest(jnp.abs(by_group - reference), axis=0)


def ratio(
  by_group: jax.Array,
  overall: jax.Array | None = None,
  *,
  method: Method = "between_groups",
  skip_empty: bool = False,
) -> jax.Array:
  """The smallest ratio between groups, or of a group and everybody.

  between_groups: min_a r_a / max_a r_a
  to_overall:     min_a min(r_a / r, r / r_a)

  Args:
    by_group: [G, ...] one value of 0 or above per group, NaN if not known.
    overall: as in `difference`.
    method: as in `difference`.
    skip_empty: as in `difference`.

  Returns:
    [...] ratios in [0, 1]; NaN where all values are 0.
  """
  chex.assert_shape(by_group, (None, ...))
  smallest, largest = _extremes(skip_empty)
  reference = _reference(overall, method)
  if reference is None:
    return divide(smallest(by_group, axis=0), largest(by_group, axis=0))
  lower = jnp.minimum(by_group, reference)
  upper = jnp.maximum(by_group, reference)
  return smallest(divide(lower, upper), axis=0)


_Reduce = Callable[..., jax.Array]


def _extremes(skip_empty: bool) -> tuple[_Reduce, _Reduce]:
  return (jnp.nanmin, jnp.nanmax) if skip_empty else (jnp.min, jnp.max)


def _reference(overall: jax.Array | None, method: Method) -> jax.Array | None:
  checks.one_of("method", method, METHODS)
  if method == "between_groups":
    return None
  if overall is None:
    raise checks.ArgumentError("method='to_overall' compares with everybody; pass overall as well")
  return overall
