"""The Gaussian mechanism, exactly (Balle & Wang 2018).

With mu = sensitivity / sigma and t = epsilon / mu - mu / 2,

  delta(epsilon) = Phi(-t) - e^epsilon Phi(-t - mu)
                 = phi(t) (R(t) - R(t + mu)),   R(t) = (1 - Phi(t)) / phi(t)

The second form, with Mills' ratio R, has no overflow and loses no digits in
the tails. All in float64 and logarithms, for delta down to 1e-300.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from jaxfair import checks
from jaxfair.accounting._guarantee import delta_in_range

# Relative distance by which results are moved towards privacy; far above the
# rounding of the formula, far below anything a person would notice.
SLACK = 1e-11
ROUNDING = 1e-13  # of an epsilon; below SLACK, so that a calibrated sigma fits


def gaussian_epsilon(*, sigma: float, delta: float, sensitivity: float = 1.0) -> float:
  """The smallest epsilon of Gaussian noise at this delta, rounded up.

  Args:
    sigma: standard deviation of the noise.
    delta: in (0, 1).
    sensitivity: L2 sensitivity of what the noise is added to.

  Returns:
    epsilon, at most a relative 1e-9 above the exact one.
  """
  checks.positive("sigma", sigma)
  checks.positive("sensitivity", sensitivity)
  delta_in_range(delta)
  mu, target = sensitivity / sigma, math.log(delta)
  checks.number("sensitivity / sigma", mu, high=1e100, remedy="raise sigma")
  if _log_delta(mu, 0.0) <= target:
    return 0.0

  def excess(log_epsilon: float) -> float:
    return _log_delta(mu, math.exp(log_epsilon)) - target

  return _root_above(excess, start=mu * mu / 2 + mu) * (1 + ROUNDING)


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
  """The smallest Gaussian noise that is (epsilon, delta)-DP, rounded up.

  Args:
    epsilon: above 0.
    delta: in (0, 1).
    sensitivity: L2 sensitivity of what the noise is added to.

  Returns:
    sigma, at most a relative 1e-9 above the exact one.

  Privacy:
    Unlike sqrt(2 ln(1.25 / delta)) / epsilon this holds for every epsilon.

  Reference:
    Balle & Wang (2018), Algorithm 1.
  """
  checks.positive("epsilon", epsilon)
  checks.positive("sensitivity", sensitivity)
  delta_in_range(delta)
  target = math.log(delta)

  def excess(log_sigma: float) -> float:
    return _log_delta(math.exp(-log_sigma), epsilon) - target

  # sqrt(2 epsilon) is where t = 0, so the scale of mu when delta is large.
  unit = _root_above(excess, start=1 / math.sqrt(2 * epsilon))
  return sensitivity * unit * (1 + SLACK)


def _log_delta(mu: float, epsilon: float) -> float:
  t = epsilon / mu - mu / 2
  log_phi = -0.5 * t * t - 0.5 * math.log(2 * math.pi)
  if mu < 1:
    # R(t) - R(t + mu) as the integral of -R': no cancellation for small mu.
    slopes = _minus_mills_slope(t + mu * (_NODES + 1) / 2)
    return log_phi + math.log(float(_WEIGHTS @ slopes) * mu / 2)
  if t > 0:
    return log_phi + math.log(float(_mills(t) - _mills(t + mu)))
  # Here delta is of order one, while R(t) may overflow.
  second = math.exp(log_phi) * float(_mills(t + mu))
  return math.log(float(special.ndtr(-t)) - second)


def _mills(t: ArrayLike) -> np.ndarray:
  """R(t) = (1 - Phi(t)) / phi(t)."""
  return math.sqrt(math.pi / 2) * special.erfcx(np.asarray(t) / math.sqrt(2))


def _minus_mills_slope(t: np.ndarray) -> np.ndarray:
  """-R'(t) = 1 - t R(t), by its asymptotic series where that would cancel."""
  far = np.maximum(t, _FAR) ** -2.0
  series = far * (1 - far * (3 - far * (15 - far * (105 - far * 945))))
  return np.where(t > _FAR, series, 1 - t * _mills(np.minimum(t, _FAR)))


def _root_above(excess: Callable[[float], float], *, start: float) -> float:
  """exp(x) for x at or just above the root of a falling function."""
  low = high = math.log(start)
  step = 1.0
  while excess(high) > 0:
    low, high, step = high, high + step, 2 * step
  while excess(low) <= 0:
    high, low, step = low, low - step, 2 * step
  root = optimize.brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
  slack = SLACK
  while excess(root) > 0:
    root, slack = root + slack, 2 * slack
  return math.exp(root)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FAR = 50.0
