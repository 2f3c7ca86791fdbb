"""Scaling by declared ranges: nothing is learned from the people."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from jaxfair import checks
from jaxfair.data._scaling import Scaler
from jaxfair.types import FeaturesLike

Bounds = tuple[Any, Any]


class RangeScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
  """Scales features from declared ranges to [-1, 1]; values outside become the nearest bound.

  Takes the place of `StandardScaler` and `MinMaxScaler`, which put means and extremes of private
  people into the model. `fit` reads the number of columns and nothing else.

  Args:
    bounds: (low, high), each a number for all columns or one number per column, known without
      looking at the people.

  Attributes:
    scaler_: the transformation.
    n_features_in_: number of columns.
  """

  def __init__(self, bounds: Bounds = (-1.0, 1.0)):
    self.bounds = bounds

  def fit(self, X: FeaturesLike, y: object = None) -> "RangeScaler":
    """Checks the bounds against the number of columns."""
    del y
    x = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
    self.scaler_ = scaler_of(self.bounds, x.shape[1])
    return self

  def transform(self, X: FeaturesLike) -> np.ndarray:
    """[n, d] float32 in [-1, 1]; a missing number becomes the middle of its range."""
    check_is_fitted(self)
    x = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
    return self.scaler_.apply(x)

  def __sklearn_tags__(self) -> Any:
    tags = super().__sklearn_tags__()
    tags.input_tags.allow_nan = True
    tags.transformer_tags.preserves_dtype = []  # float32 always, as networks take it
    return tags


def scaler_of(bounds: Bounds, width: int) -> Scaler:
  """The scaler of declared ranges.

  Raises:
    ArgumentError: for bounds that are not finite, not rising, or of another number of columns.
  """
  low, high = ends(bounds, width)
  center = ((low + high) / 2).astype(np.float32)
  return Scaler(center, (2 / (high - low)).astype(np.float32), center, 1.0)


def ends(bounds: Bounds, width: int) -> tuple[np.ndarray, np.ndarray]:
  """[d] lower and [d] upper bounds."""
  remedy = "pass (low, high), each a number or one number per column"
  told = f"bounds={checks.shown(bounds)}"
  try:
    low, high = (np.asarray(end, np.float64) for end in bounds)
    low, high = np.broadcast_to(low, (width,)), np.broadcast_to(high, (width,))
  except (TypeError, ValueError):
    raise checks.ArgumentError(f"{told} do not fit {width} columns; {remedy}") from None
  checks.require(
    bool(np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()),
    f"{told} are not finite with low below high; {remedy}",
  )
  return low, high
