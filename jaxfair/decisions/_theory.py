"""Closed forms: errors of rules, means after clipping, bounds on alpha.

Host, float64, vectorized. Each is checked against brute force in the tests.
"""

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.types import ArrayLike, Number


def clipped_laplace_mean(value: ArrayLike, *, scale: Number, lower: Number = 0.0) -> np.ndarray:
  """E[max(lower, value + Lap(scale))]: the mean of a noisy count that is clipped from below.

  max(x, l) + scale / 2 exp(-|x - l| / scale)

  The thesis has it for x >= l. Small counts gain up to scale / 2 on average.

  Reference:
    Thesis, Theorem 2.5.
  """
  checks.positive("scale", scale)
  x, low = np.asarray(value, np.float64), np.asarray(lower, np.float64)
  gain = 0.5 * np.asarray(scale) * np.exp(-np.abs(x - low) / scale)
  return np.asarray(np.maximum(x, low) + gain)


def allotment_sensitivity(*, max_weight: float, lower_total: float) -> float:
  """How far one child moves all shares of `title_one` together, in L1.

  2 a_max / L

  Args:
    max_weight: public bound on the weights.
    lower_total: L, a public lower bound of the weighted total sum_j a_j x_j of
      any data set in question; a bound of the head count is not enough.

  Reference:
    Thesis, Theorem 2.12.
  """
  checks.positive("max_weight", max_weight)
  checks.positive("lower_total", lower_total)
  return 2 * max_weight / lower_total


def inverse_tail(value: ArrayLike, *, scale: Number, start: Number) -> np.ndarray:
  """E[1{t > start} / t] of t = value + Lap(scale), for start > 0.

  Exponential integrals; the pieces are scaled so that none overflows.
  """
  checks.positive("scale", scale)
  checks.positive("start", start)
  y, b, s = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (value, start, scale)))
  y, b = y / s, b / s  # in units of the scale
  top = np.maximum(y, b)
  # e^y E1(top) = e^(y - top) e^top E1(top)
  beyond = np.exp(y - top) * _scaled_e1(top)
  before = _scaled_ei(top) - np.exp(b - top) * _scaled_ei(b)
  return np.asarray((beyond + np.where(y > b, before, 0.0)) / (2 * s))


def floored_inverse_mean(value: ArrayLike, *, scale: Number, floor: Number) -> np.ndarray:
  """E[1 / max(floor, value + Lap(scale))] for a floor above 0.

  Times x it is the mean of a ratio of independent noisy counts whose
  denominator is floored; without a floor the mean does not exist.
  """
  y, b = np.asarray(value, np.float64), np.asarray(floor, np.float64)
  away = 0.5 * np.exp(-np.abs(b - y) / scale)
  below = np.where(b < y, away, 1 - away)
  return below / b + inverse_tail(y, scale=scale, start=b)


def _scaled_e1(z: np.ndarray) -> np.ndarray:
  """e^z E1(z), z > 0."""
  small = np.minimum(z, 50.0)
  return np.where(z < 50, np.exp(small) * special.exp1(small), _series(z, -1))


def _scaled_ei(z: np.ndarray) -> np.ndarray:
  """e^-z Ei(z), z > 0."""
  small = np.minimum(z, 50.0)
  return np.where(z < 50, np.exp(-small) * special.expi(small), _series(z, 1))


def _series(z: np.ndarray, sign: int) -> np.ndarray:
  """Sum of k! / (sign z)^k over z, to 30 terms: below 1e-16 for z >= 50."""
  z = np.maximum(z, 50.0)
  total, term = np.ones_like(z), np.ones_like(z)
  for k in range(1, 30):
    term = term * (sign * k) / z
    total = total + term
  return total / z
