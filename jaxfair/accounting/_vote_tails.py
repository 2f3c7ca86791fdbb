"""Tails of the noise on votes, continuous or discrete Gaussian, in logarithms.

A discrete Gaussian with parameter sigma has mass e^(-x^2 / (2 sigma^2)) / Z on
the integers. The difference of two of them has, exactly,

  Pr[d] = c(d mod 2) e^(-d^2 / (4 sigma^2)),

where c(0) = sum_x e^(-x^2 / sigma^2) / Z^2 and c(1) the same over x + 1/2. Its
tails are heavier than those of the continuous noise, by e^(d / (4 sigma^2)) and
more: a data-dependent bound for continuous noise does not hold for discrete.
"""

import math

import numpy as np
from scipy import special

NEGLIGIBLE = 40.0  # e^-40 of a sum is below its rounding


def log_rival_tails(most: int, *, sigma: float, discrete: bool) -> np.ndarray:
  """[most + 1] ln Pr[rival's noise - winner's noise >= g], g = 0, 1, ...

  Equality counts: discrete noise can tie, and ties may go either way.
  """
  if not discrete:
    return special.log_ndtr(-np.arange(most + 1) / (math.sqrt(2) * sigma))
  normalizer = 2 * _theta(0.0, 2 * sigma**2)
  even = _theta(0.0, sigma**2) - normalizer
  odd = _theta(0.5, sigma**2) - normalizer
  last = math.isqrt(math.ceil(most**2 + 4 * sigma**2 * NEGLIGIBLE)) + 2
  d = np.arange(last + 1)
  log_mass = np.where(d % 2 == 0, even, odd) - d**2 / (4 * sigma**2)
  return _log_sums_from(log_mass)[: most + 1]


def log_noise_tails(most: int, *, sigma: float) -> np.ndarray:
  """[most + 1] ln Pr[X >= j] of discrete noise X, j = 0, 1, ..., most."""
  last = math.isqrt(math.ceil(most**2 + 2 * sigma**2 * NEGLIGIBLE)) + 2
  x = np.arange(last + 1)
  log_mass = -(x**2) / (2 * sigma**2) - _theta(0.0, 2 * sigma**2)
  return _log_sums_from(log_mass)[: most + 1]


def log_reach(shortfall: np.ndarray, *, sigma: float) -> np.ndarray:
  """ln Pr[X >= shortfall] of discrete noise, for whole numbers of any sign."""
  if shortfall.size == 0:
    return np.zeros(0)
  most = int(max(shortfall.max(), (1 - shortfall).max()))
  tails = log_noise_tails(most, sigma=sigma)
  above = tails[np.maximum(shortfall, 0)]
  below = tails[np.maximum(1 - shortfall, 0)]  # of X <= shortfall - 1
  likely = np.log1p(-np.exp(np.minimum(below, -math.log(2))))
  return np.where(shortfall > 0, above, likely)


def _theta(offset: float, width: float) -> float:
  """ln sum_x e^(-(x + offset)^2 / width) over all whole numbers x."""
  last = math.isqrt(math.ceil(width * NEGLIGIBLE)) + 2
  x = np.arange(-last, last + 1) + offset
  return float(special.logsumexp(-(x**2) / width))


def _log_sums_from(log_mass: np.ndarray) -> np.ndarray:
  return np.logaddexp.accumulate(log_mass[::-1])[::-1]
