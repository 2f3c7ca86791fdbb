"""Host checks in front of every metric: ids, counts, weights and scores."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import ArrayLike, GroupsLike, PerPersonLike


def ids(name: str, values: ArrayLike) -> jax.Array | np.ndarray:
  """Requires one integer id per person, and returns the array."""
  values = as_array(values)
  kind = values.dtype.kind
  if kind == "f":
    raise checks.ArgumentError(
      f"{name} holds {values.dtype} values, not labels; threshold or argmax "
      "scores first, cast labels to int, or use wasserstein_disparity, which "
      "takes scores"
    )
  checks.require(
    kind in "iub",
    f"{name} holds {values.dtype} values, not integer ids; encode them with "
    f"names, {name} = numpy.unique({name}, return_inverse=True)",
  )
  checks.require(
    values.ndim == 1, f"{name} has shape {values.shape}; pass one id per person, shape (n,)"
  )
  return values


def count(argument: str, given: int | None, *, minimum: int = 1, **arrays: ArrayLike) -> int:
  """The number of classes or groups: as given, or the largest id plus one.

  It is a static number. Where the ids are not known (inside jit, vmap or
  grad) it must be given.
  """
  if given is None:
    given = max(_largest(argument, arrays) + 1, minimum)
  checks.integer(argument, given, low=minimum)
  for name, array in arrays.items():
    checks.ids(name, array, given)
  return int(given)


def groups(
  sensitive_features: GroupsLike,
  num_groups: int | None,
  sample_weight: PerPersonLike | None,
  **columns: Any,
) -> tuple[jax.Array | np.ndarray, int, jax.Array | None]:
  """Checked group ids, their number, and the weights, for these columns."""
  group = ids("sensitive_features", sensitive_features)
  rows = {**columns, "sensitive_features": group}
  if sample_weight is not None:
    rows["sample_weight"] = weights("sample_weight", sample_weight)
  checks.same_length(**rows)
  num_groups = count("num_groups", num_groups, sensitive_features=group)
  return group, num_groups, rows.get("sample_weight")


def weights(name: str, values: ArrayLike) -> jax.Array:
  """Requires one finite, non-negative weight per person."""
  values = as_array(values)
  checks.non_negative(name, values, "drop the row or give it weight 0")
  checks.require(
    values.ndim == 1, f"{name} has shape {values.shape}; pass one weight per person, shape (n,)"
  )
  return jnp.asarray(values, jnp.result_type(float))


def scores(name: str, values: ArrayLike) -> jax.Array:
  """Requires one finite score per person and, at most, one more axis."""
  values = as_array(values)
  checks.require(
    values.dtype.kind in "fiub",
    f"{name} holds {values.dtype} values, not numbers; pass scores as floats",
  )
  checks.require(
    values.ndim in (1, 2), f"{name} has shape {values.shape}; pass (n,) or (n, classes)"
  )
  checks.finite(name, values)
  return jnp.asarray(values, jnp.result_type(float))


def on_host(name: str, *values: object) -> None:
  """Requires known values: intervals are computed outside jit and vmap."""
  checks.require(
    checks.concrete(values), f"{name} runs on the host; call it on results, outside jit and vmap"
  )


def as_array(values: ArrayLike) -> jax.Array | np.ndarray:
  """A jax array as it is; lists, frames and the rest through NumPy."""
  return values if isinstance(values, jax.Array) else np.asarray(values)


def _largest(argument: str, arrays: dict[str, Any]) -> int:
  names = " and ".join(arrays)
  checks.require(
    checks.concrete(list(arrays.values())),
    f"{argument} must be given inside jit, vmap and grad, where {names} is "
    f"not known; pass {argument}=<how many there are>",
  )
  sizes = [np.size(array) for array in arrays.values()]
  checks.require(min(sizes) > 0, f"{names} has no rows; pass {argument}=<how many there are>")
  return max(int(np.max(array)) for array in arrays.values())
