"""The public people of an estimator: given, or points drawn from declared ranges."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from jaxfair import checks, methods
from jaxfair.data._scaling import Scaler
from jaxfair.sklearn._ranges import ends
from jaxfair.types import Examples, FeaturesLike

POINTS = 1000  # that are drawn where nobody is public
UNKNOWN = -1  # label of a public person


def public_people(
  estimator: Any,
  method: methods.Method,
  x: FeaturesLike | None,
  groups: np.ndarray | None,
  scaler: Scaler | None,
) -> Examples | None:
  """The public people that a method needs; None if it needs none.

  Args:
    estimator: has `bounds` and `n_features_in_`.
    method: says what it needs.
    x: [m, d] their features; None draws points, if groups are not needed.
    groups: [m] their group ids; None if they have none.
    scaler: of the features.
  """
  width = estimator.n_features_in_
  if not method.needs & {"public", "public_groups"}:
    checks.require(
      x is None and groups is None,
      f"method={method.name!r} reads no public people; leave X_public out",
    )
    return None
  if "public_groups" in method.needs:
    checks.require(
      x is not None and groups is not None,
      f"method={method.name!r} compares groups on public people; pass X_public= and "
      "public_sensitive_features=, or use method='private_lagrangian' with sensitive_features=, "
      "which protects groups alone",
    )
  if x is None:
    return _drawn(estimator.bounds, width, scaler)
  found = check_array(x, dtype=np.float32, input_name="X_public")
  checks.require(
    found.shape[1] == width,
    f"X_public has {found.shape[1]} columns, and X has {width}; pass the same columns",
  )
  size = len(found)
  checks.require(
    groups is None or len(groups) == size,
    f"public_sensitive_features and X_public differ in length; pass one group for each of {size}",
  )
  own = np.zeros(size, np.int32) if groups is None else groups
  scaled = found if scaler is None else scaler.apply(found)
  return Examples(scaled, np.full(size, UNKNOWN, np.int32), own)


def _drawn(bounds: Any, width: int, scaler: Scaler | None) -> Examples:
  """Points drawn evenly from the declared ranges, always the same ones."""
  checks.require(
    bounds is not None and scaler is not None,
    "X_public is missing: pass features of public people, or bounds=(low, high), from which points "
    "are drawn to ask the teachers about",
  )
  assert scaler is not None
  low, high = ends(bounds, width)
  points = np.random.default_rng(0).uniform(low, high, (POINTS, width))
  nothing = np.zeros(POINTS, np.int32)
  return Examples(scaler.apply(points), np.full(POINTS, UNKNOWN, np.int32), nothing)
