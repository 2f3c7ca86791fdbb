"""Thresholds that make two Gaussians' losses equal, for losses one trains with.

Counting errors cannot be trained with, so a fair model equalizes some loss of
the margin y (x - theta). An unbounded one pays most for the few people far on
the wrong side, and the threshold runs after them. Host, float64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from jaxfair.robustness import _gaussians
from jaxfair.types import Number

MarginLoss = Callable[[Any], np.ndarray]  # margins -> losses
# Nodes of the quadrature between two kinks.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_REACH = 12.0  # standard deviations that are integrated over


def zero_one_loss(margin: Number) -> np.ndarray:
  """1 where the margin is not above 0."""
  return np.asarray(np.asarray(margin) <= 0, np.float64)


def ramp_loss(margin: Number) -> np.ndarray:
  """min(1, max(0, 1 - margin))."""
  return np.clip(1.0 - np.asarray(margin, np.float64), 0.0, 1.0)


def log_loss(margin: Number) -> np.ndarray:
  """log(1 + exp(-margin))."""
  return np.logaddexp(0.0, -np.asarray(margin, np.float64))


def exponential_loss(margin: Number) -> np.ndarray:
  """exp(-margin)."""
  return np.exp(-np.asarray(margin, np.float64))


LOSSES: dict[str, MarginLoss] = {
  "zero_one": zero_one_loss,
  "ramp": ramp_loss,
  "log": log_loss,
  "exponential": exponential_loss,
}


def class_losses(
  loss: MarginLoss, threshold: float, mu_minus: float, mu_plus: float, ratio: float
) -> _gaussians.ClassErrors:
  """Each class's expected loss, by quadrature over 12 standard deviations."""
  _gaussians.fair_threshold(mu_minus, mu_plus, ratio)  # checks its arguments
  minus = _mean(lambda x: loss(threshold - x), mu_minus, 1.0, threshold)
  plus = _mean(lambda x: loss(x - threshold), mu_plus, ratio, threshold)
  return _gaussians.ClassErrors(minus, plus)


def equal_loss_threshold(loss: MarginLoss, mu_minus: float, mu_plus: float, ratio: float) -> float:
  """The threshold at which both classes have the same expected loss.

  The classifier that a fairness penalty without end picks when groups are
  compared by this loss. With `zero_one_loss` it is `fair_threshold`; with
  `exponential_loss` it is (mu_minus + mu_plus)/2 - (K^2 - 1)/4.

  Reference:
    Thesis chapter 6, section 6.8.
  """

  def apart(threshold: float) -> float:
    minus, plus = class_losses(loss, threshold, mu_minus, mu_plus, ratio)
    return float(plus - minus)

  # Rising in the threshold: class +1 loses more, class -1 less.
  width = ratio * ratio + (mu_plus - mu_minus) + 1
  return float(optimize.brentq(apart, mu_minus - width, mu_plus + width, xtol=1e-12))


def _mean(
  function: Callable[[np.ndarray], np.ndarray], mean: float, deviation: float, threshold: float
) -> np.ndarray:
  """E f(mean + deviation N(0, 1)), piece by piece between the losses' kinks."""
  # exp(-margin) moves the bulk of the integral by up to deviation^2.
  low = mean - _REACH * deviation - deviation**2
  high = mean + _REACH * deviation + deviation**2
  kinks = np.clip([threshold - 1, threshold, threshold + 1], low, high)
  edges = np.array([low, *kinks, high])
  half = np.diff(edges)[:, None] / 2
  x = edges[:-1, None] + half * (1 + _NODES)
  z = (x - mean) / deviation
  density = np.exp(-0.5 * z * z) / (deviation * np.sqrt(2 * np.pi))
  return np.sum(half * _WEIGHTS * function(x) * density)
