"""Closed forms: errors of rules, means after clipping, bounds on alpha.

Host, float64, vectorized. Each is checked against brute force in the tests.
"""

from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.types import ArrayLike, Number

Op: TypeAlias = Literal["and", "or", "xor"]
OPS: tuple[Op, ...] = ("and", "or", "xor")


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


def laplace_threshold_error(value: ArrayLike, *, at: Number, scale: Number) -> np.ndarray:
  """Chance that 1{x >= at} is decided wrongly under Laplace noise.

  exp(-|x - at| / scale) / 2: one half at the threshold, the worst there is.
  """
  checks.positive("scale", scale)
  return np.asarray(0.5 * np.exp(-np.abs(np.asarray(value) - at) / scale))


def gaussian_threshold_error(value: ArrayLike, *, at: Number, sigma: Number) -> np.ndarray:
  """Chance that 1{x >= at} is decided wrongly under Gaussian noise.

  Phi(-|x - at| / sigma)
  """
  checks.positive("sigma", sigma)
  return np.asarray(special.ndtr(-np.abs(np.asarray(value) - at) / sigma))


def compose_error(op: Op, p1: ArrayLike, p2: ArrayLike, b1: ArrayLike, b2: ArrayLike) -> np.ndarray:
  """Chance that a composed rule errs, from the errors of its two parts.

  and: FF b1 b2, FT b1 (1 - b2), TF (1 - b1) b2, TT b1 + b2 - b1 b2
  or:  the mirror image, worst at FF
  xor: b1 + b2 - 2 b1 b2, whatever is true

  Args:
    op: "and", "or" or "xor".
    p1: truth of the first predicate.
    p2: truth of the second.
    b1: chance that the first is decided wrongly.
    b2: chance that the second is.

  Assumptions:
    The two are decided from independent noise. Predicates that read the same
    noisy count, such as sp / s > 5% and sp > 10,000, are not.

  Reference:
    Thesis, Lemmas 2.1 to 2.3.
  """
  checks.one_of("op", op, OPS)
  for name, chance in (("b1", b1), ("b2", b2)):
    checks.number(name, chance, low=0.0, high=1.0)
  b1, b2 = np.asarray(b1, np.float64), np.asarray(b2, np.float64)
  if op == "xor":
    return np.asarray(b1 + b2 - 2 * b1 * b2)
  p1, p2 = np.asarray(p1, bool), np.asarray(p2, bool)
  if op == "or":  # not (not p1 and not p2)
    p1, p2 = ~p1, ~p2
  yes1, yes2 = np.where(p1, 1 - b1, b1), np.where(p2, 1 - b2, b2)
  # Of two that are true: b1 + b2 - b1 b2 keeps its digits, 1 - (..)(..) not.
  return np.where(p1 & p2, b1 + b2 - b1 * b2, yes1 * yes2)


def compose_alpha(op: Op, range1: tuple[Any, Any], range2: tuple[Any, Any]) -> np.ndarray:
  """The alpha of a composed rule, from the ranges of its parts' errors.

  and, or: u1 + u2 - u1 u2 - min(l1 l2, (1 - u1) l2, l1 (1 - u2))
  xor:     the spread of b1 + b2 - 2 b1 b2 over the four corners

  The smallest number that holds for all truth values and errors within the
  ranges. The thesis's Theorems 2.3 and 2.4 are the case of all errors at most
  one half; beyond it they are too small.

  Args:
    op: "and", "or" or "xor".
    range1: (least, largest) chance of an error of the first predicate.
    range2: of the second.

  Assumptions:
    Independent noise, as for `compose_error`.
  """
  checks.one_of("op", op, OPS)
  for name, ends in (("range1", range1), ("range2", range2)):
    checks.number(name, ends, low=0.0, high=1.0)
    checks.require(
      bool(np.all(np.asarray(ends[0]) <= np.asarray(ends[1]))),
      f"{name} is (least, largest), and its first exceeds its second",
    )
  (l1, u1), (l2, u2) = (
    (np.asarray(low, np.float64), np.asarray(high, np.float64)) for low, high in (range1, range2)
  )
  if op == "xor":
    corners = [a + b - 2 * a * b for a in (l1, u1) for b in (l2, u2)]
    return np.asarray(np.max(corners, axis=0) - np.min(corners, axis=0))
  least = np.minimum(np.minimum(l1 * l2, (1 - u1) * l2), l1 * (1 - u2))
  return np.asarray(u1 + u2 - u1 * u2 - least)


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
