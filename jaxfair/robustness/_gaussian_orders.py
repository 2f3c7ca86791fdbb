"""Which of the thesis's orders hold for two Gaussians, and where they must."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxfair.robustness import _gaussians
from jaxfair.types import Number

# Errors that are equal up to rounding are in order.
_ROUNDING = 1e-13


class Orderings(NamedTuple):
  """One answer per setting.

  Attributes:
    thresholds: mu_minus + epsilon <= fair <= natural <= robust
      <= mu_plus - epsilon (Theorem 6.1).
    inner: fair <= natural <= robust, the part that holds for every K.
    robust_errors: fair >= natural >= robust (Corollary 6.1).
    boundary_errors: fair >= natural >= robust (Corollary 6.2).
    distances: mean distance to the threshold, fair <= natural <= robust
      (Theorem 6.2).
    stated: whether the thesis claims the order of thresholds and robust errors
      here: K <= `largest_ratio`.
    stated_boundary: whether it claims that of the boundary errors: epsilon <=
      D / 4 and K <= `largest_ratio_for_boundary`.
  """

  thresholds: np.ndarray
  inner: np.ndarray
  robust_errors: np.ndarray
  boundary_errors: np.ndarray
  distances: np.ndarray
  stated: np.ndarray
  stated_boundary: np.ndarray


def orderings(mu_minus: Number, mu_plus: Number, ratio: Number, epsilon: Number) -> Orderings:
  """Compares the fair, the natural and the robust threshold.

  Returns:
    Masks, of the arguments' common shape.

  Reference:
    Thesis chapter 6, Theorems 6.1 and 6.2, Corollaries 6.1 and 6.2.
  """
  low, high, ratio, epsilon = np.broadcast_arrays(
    *(np.asarray(v, np.float64) for v in (mu_minus, mu_plus, ratio, epsilon))
  )
  people = (low, high, ratio)
  fair = _gaussians.fair_threshold(*people)
  natural = _gaussians.natural_threshold(*people)
  robust = _gaussians.robust_threshold(*people, epsilon)
  three = (fair, natural, robust)
  size = _ROUNDING * (1 + np.abs(low) + np.abs(high))
  inner = _rises(three, size)
  outer = _rises((low + epsilon, fair), size) & _rises((robust, high - epsilon), size)
  quarter = np.minimum(epsilon, (high - low) / 4)
  bound = _gaussians.largest_ratio_for_boundary(low, high, quarter)
  under = [_gaussians.robust_error(t, *people, epsilon=epsilon) for t in three]
  near = [_gaussians.boundary_error(t, *people, epsilon=epsilon) for t in three]
  away = [_gaussians.mean_distance(t, *people) for t in three]
  return Orderings(
    thresholds=inner & outer,
    inner=inner,
    robust_errors=_rises(under[::-1], _ROUNDING),
    boundary_errors=_rises(near[::-1], _ROUNDING),
    distances=_rises(away, size),
    stated=ratio <= _gaussians.largest_ratio(low, high, epsilon),
    stated_boundary=(epsilon <= quarter) & (ratio <= bound),
  )


def _rises(values: Sequence[np.ndarray], rounding: Number) -> np.ndarray:
  steps = [before <= after + rounding for before, after in itertools.pairwise(values)]
  return np.all(steps, axis=0)
