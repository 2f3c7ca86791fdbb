"""Two Gaussians and a threshold: fairness and robustness move it in opposite directions.

A person is of class -1, x ~ N(mu_minus, 1), or of class +1,
x ~ N(mu_plus, K^2), each with chance one half, K the `ratio` of the standard
deviations. The class is also the group. A threshold theta says +1 where
x > theta. Host, float64, vectorized: all arguments broadcast.

With the best threshold the wider class errs more often. A fair threshold makes
up for it by moving into the narrow class, where people are dense and a small
perturbation changes many predictions; a robust one moves away from them.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.types import Number

_OVERFLOW = 700.0  # exp of more is infinite


def natural_threshold(mu_minus: Number, mu_plus: Number, ratio: Number) -> np.ndarray:
  """The threshold with the fewest errors.

  theta = mu_minus - D/(K^2-1) + K/(K^2-1) sqrt(2 (K^2-1) ln K + D^2),
  D = mu_plus - mu_minus

  It is computed in a form that keeps its digits where K nears 1, and is the
  minimum over all thresholds, for every K >= 1. Up to K = exp(D^2 / 2) it lies
  between the means.

  Args:
    mu_minus: mean of class -1.
    mu_plus: mean of class +1, above the other.
    ratio: K >= 1, standard deviation of class +1 over that of class -1.

  Returns:
    Thresholds.

  Reference:
    Thesis chapter 6, (6.9).
  """
  mu, distance, ratio = _check(mu_minus, mu_plus, ratio)
  return mu + _crossing(distance, ratio, np.log(ratio))


def fair_threshold(mu_minus: Number, mu_plus: Number, ratio: Number) -> np.ndarray:
  """The threshold at which both classes err equally often.

  theta = mu_minus + D / (K + 1)

  There is only one; it also minimizes the mean distance to the threshold.

  Reference:
    Thesis chapter 6, Theorems 6.1 and 6.2.
  """
  mu, distance, ratio = _check(mu_minus, mu_plus, ratio)
  return mu + distance / (ratio + 1)


def robust_threshold(
  mu_minus: Number, mu_plus: Number, ratio: Number, epsilon: Number
) -> np.ndarray:
  """The threshold with the fewest errors when every input is perturbed by up to epsilon.

  The worst push moves class -1 up and class +1 down, so this is the natural
  threshold of the means mu_minus + epsilon and mu_plus - epsilon.

  Args:
    mu_minus: mean of class -1.
    mu_plus: mean of class +1, above the other.
    ratio: K >= 1.
    epsilon: size of the push, at most D / 2: the means must not meet.

  Reference:
    Thesis chapter 6, (6.10).
  """
  mu, distance, ratio = _check(mu_minus, mu_plus, ratio)
  epsilon = _check_epsilon(epsilon, distance)
  inner = distance - 2 * epsilon
  return mu + epsilon + _crossing(inner, ratio, np.log(ratio))


class ClassErrors(NamedTuple):
  """How often each class is predicted wrongly.

  Attributes:
    minus: Pr(x + tau > theta for some |tau| <= epsilon | -1).
    plus: Pr(x + tau <= theta for some |tau| <= epsilon | +1).
  """

  minus: np.ndarray
  plus: np.ndarray


def class_errors(
  threshold: Number, mu_minus: Number, mu_plus: Number, ratio: Number, *, epsilon: Number = 0.0
) -> ClassErrors:
  """Each class's error when everybody is pushed by epsilon; 0 for none."""
  mu, distance, ratio = _check(mu_minus, mu_plus, ratio)
  checks.non_negative("epsilon", epsilon)
  at = np.asarray(threshold, np.float64) - mu
  return ClassErrors(special.ndtr(epsilon - at), special.ndtr((at + epsilon - distance) / ratio))


def natural_error(
  threshold: Number, mu_minus: Number, mu_plus: Number, ratio: Number
) -> np.ndarray:
  """Chance of an error without any push, over both classes."""
  return robust_error(threshold, mu_minus, mu_plus, ratio, epsilon=0.0)


def robust_error(
  threshold: Number, mu_minus: Number, mu_plus: Number, ratio: Number, *, epsilon: Number
) -> np.ndarray:
  """Chance of an error under the worst push by epsilon, over both classes."""
  minus, plus = class_errors(threshold, mu_minus, mu_plus, ratio, epsilon=epsilon)
  return np.asarray(0.5 * (minus + plus))


def boundary_error(
  threshold: Number, mu_minus: Number, mu_plus: Number, ratio: Number, *, epsilon: Number
) -> np.ndarray:
  """Chance of being right, and within epsilon of being wrong."""
  where = (threshold, mu_minus, mu_plus, ratio)
  return robust_error(*where, epsilon=epsilon) - natural_error(*where)


def mean_distance(
  threshold: Number, mu_minus: Number, mu_plus: Number, ratio: Number
) -> np.ndarray:
  """E|x - theta| over both classes.

  Reference:
    Thesis chapter 6, Theorem 6.2. The derivative in its proof is twice the
    right one; the sign, which is all it uses, is right.
  """
  mu, distance, ratio = _check(mu_minus, mu_plus, ratio)
  at = np.asarray(threshold, np.float64) - mu
  wide = ratio * _folded((at - distance) / ratio)
  return np.asarray(0.5 * (_folded(at) + wide))


def largest_ratio(mu_minus: Number, mu_plus: Number, epsilon: Number) -> np.ndarray:
  """The largest K at which the thresholds are in order between the means.

  min(exp((D - 2 epsilon)^2 / 2), D / epsilon - 1)

  This range is exact, not only sufficient: above the first bound the robust
  threshold passes mu_plus - epsilon, above the second the fair one passes
  mu_minus + epsilon.

  Returns:
    K; below 1 where no ratio will do, infinite where every one does.

  Reference:
    Thesis chapter 6, Theorem 6.1, B_K.
  """
  _, distance, _ = _check(mu_minus, mu_plus, 1.0)
  epsilon = _check_epsilon(epsilon, distance)
  return np.minimum(_gap_bound(distance, epsilon), _shares(distance, epsilon))


def largest_ratio_for_boundary(mu_minus: Number, mu_plus: Number, epsilon: Number) -> np.ndarray:
  """The largest K of the thesis's order of boundary errors.

  min(exp((D - 2 epsilon)^2 / 2), the K >= 1 with K + 1/K = D / epsilon - 2)

  Args:
    mu_minus: mean of class -1.
    mu_plus: mean of class +1, above the other.
    epsilon: at most D / 4, where the second bound is 1.

  Reference:
    Thesis chapter 6, Corollary 6.2. Its proof compares epsilon' < epsilon at
    the threshold that is best for epsilon, which Proposition 6.3 does not
    cover. The order itself was not seen to fail for any K while epsilon <=
    D / 4; it does fail for larger ones.
  """
  _, distance, _ = _check(mu_minus, mu_plus, 1.0)
  epsilon = _check_epsilon(epsilon, distance, share=4)
  sum_ = _shares(distance, epsilon) - 1  # D / epsilon - 2, at least 2
  root = np.sqrt(np.maximum(sum_ - 2, 0)) * np.sqrt(sum_ + 2)
  return np.minimum(_gap_bound(distance, epsilon), (sum_ + root) / 2)


def _crossing(distance: Number, ratio: Number, log_weight: Any) -> np.ndarray:
  """Where weight / K phi((t - D) / K) = phi(t), the larger of two roots.

  (K^2 - 1) t^2 + 2 D t = D^2 + 2 K^2 log_weight, solved without dividing by
  K^2 - 1.
  """
  constant = distance**2 + 2 * ratio**2 * log_weight
  inner = distance**2 + 2 * (ratio**2 - 1) * log_weight
  below = distance + ratio * np.sqrt(np.maximum(inner, 0.0))
  return constant / np.where(below > 0, below, 1.0)


def _folded(z: np.ndarray) -> np.ndarray:
  """E|N(0, 1) - z|."""
  density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
  return z * special.erf(z / np.sqrt(2)) + 2 * density


def _gap_bound(distance: Number, epsilon: Number) -> np.ndarray:
  power = np.minimum((distance - 2 * epsilon) ** 2 / 2, _OVERFLOW)
  return np.where(power < _OVERFLOW, np.exp(power), np.inf)


def _shares(distance: Number, epsilon: Number) -> np.ndarray:
  """D / epsilon - 1, infinite where epsilon is 0."""
  some = epsilon > 0
  return np.where(some, distance / np.where(some, epsilon, 1.0) - 1, np.inf)


def _check(
  mu_minus: Number, mu_plus: Number, ratio: Number
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  checks.number("mu_minus", mu_minus)
  checks.number("mu_plus", mu_plus)
  distance = np.asarray(mu_plus, np.float64) - np.asarray(mu_minus, np.float64)
  checks.require(
    bool(np.all(distance > 0)), "mu_plus must be above mu_minus everywhere; swap the classes"
  )
  checks.number(
    "ratio",
    ratio,
    low=1.0,
    remedy="call the class with the smaller deviation -1, and scale it to 1",
  )
  return (np.asarray(mu_minus, np.float64), distance, np.asarray(ratio, np.float64))


def _check_epsilon(epsilon: Number, distance: np.ndarray, share: int = 2) -> np.ndarray:
  checks.non_negative("epsilon", epsilon)
  epsilon = np.asarray(epsilon, np.float64)
  checks.require(
    bool(np.all(epsilon <= distance / share)),
    f"epsilon={epsilon.max():g} is more than 1/{share} of the distance of the means; use less",
  )
  return epsilon
