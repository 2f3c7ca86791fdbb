"""Zero-concentrated DP, the measure for the discrete Gaussian mechanism."""

import math

import numpy as np
from scipy import optimize

from jaxfair import checks
from jaxfair.accounting._events import LARGEST, SMALLEST
from jaxfair.accounting._guarantee import delta_in_range

SLACK = 1e-9


def zcdp_epsilon(*, rho: float, delta: float) -> float:
  """The epsilon of a rho-zCDP mechanism at this delta.

  min over a > 1 of: rho a + ln(1 - 1/a) - ln(delta a) / (a - 1)

  Args:
    rho: 0 or above; it sums under composition.
    delta: in (0, 1).

  Privacy:
    Every order is a valid bound, so a search that stops early errs on the
    safe side.

  Reference:
    Canonne, Kamath & Steinke (2020), Proposition 12.
  """
  checks.non_negative("rho", rho)
  delta_in_range(delta)
  if delta**2 + math.expm1(-rho) > 0:  # Bretagnolle & Huber, KL <= rho
    return 0.0

  def bound(log_excess: float) -> float:
    excess = math.exp(log_excess)  # a - 1
    order = 1 + excess
    log_terms = math.log(delta) + math.log(order)
    return rho * order + math.log(excess / order) - log_terms / excess

  guess = 0.5 * math.log(-math.log(delta) / rho)
  found = optimize.minimize_scalar(
    bound, bounds=(guess - 15, guess + 5), method="bounded", options={"xatol": 1e-10}
  )
  return max(0.0, float(found.fun))


def zcdp_budget(*, epsilon: float, delta: float) -> float:
  """The rho that may be spent within (epsilon, delta), rounded down.

  Mechanisms whose rho sum up to it are together (epsilon, delta)-DP, however
  each was chosen after looking at the releases before it.

  Args:
    epsilon: above 0.
    delta: in (0, 1).

  Reference:
    Feldman & Zrnic (2021), Theorem 3.1.
  """
  sigma = discrete_gaussian_sigma(epsilon=epsilon, delta=delta)
  return discrete_gaussian_rho(sigma=sigma)


def discrete_gaussian_rho(*, sigma: float, sensitivity: float = 1.0) -> float:
  """rho of discrete Gaussian noise: (sensitivity / sigma)^2 / 2.

  Args:
    sigma: the parameter of the distribution; its standard deviation is not
      above.
    sensitivity: L2 sensitivity of the integer vector it is added to.

  Reference:
    Canonne, Kamath & Steinke (2020), Theorem 4.
  """
  for name, value in (("sigma", sigma), ("sensitivity", sensitivity)):
    checks.number(name, value, low=SMALLEST, high=LARGEST)
  return 0.5 * (sensitivity / sigma) ** 2 * (1 + 4 * float(_EPS))


def discrete_gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
  """A discrete Gaussian parameter that is (epsilon, delta)-DP, rounded up.

  Args:
    epsilon: above 0.
    delta: in (0, 1).
    sensitivity: L2 sensitivity of the integer vector the noise is added to.

  Returns:
    sigma whose zCDP bound meets the target; a few percent above the
    continuous Gaussian's, since the bound is not exact.
  """
  checks.positive("epsilon", epsilon)
  checks.positive("sensitivity", sensitivity)
  delta_in_range(delta)

  def excess(log_rho: float) -> float:
    return zcdp_epsilon(rho=math.exp(log_rho), delta=delta) - epsilon

  low, high = -1.0, 1.0
  while excess(low) > 0:
    low *= 2
  while excess(high) <= 0:
    high *= 2
  log_rho = optimize.brentq(excess, low, high, xtol=1e-12)
  sigma = sensitivity / math.sqrt(2 * math.exp(log_rho))
  slack = SLACK
  while not _meets(sigma, sensitivity, epsilon, delta):
    sigma, slack = sigma * (1 + slack), 2 * slack
  return sigma


_EPS = np.finfo(np.float64).eps


def _meets(sigma: float, sensitivity: float, epsilon: float, delta: float) -> bool:
  rho = discrete_gaussian_rho(sigma=sigma, sensitivity=sensitivity)
  return zcdp_epsilon(rho=rho, delta=delta) <= epsilon
