"""Exact discrete noise for released counts, computed on the host.

The distribution is exact to the last bit: integer arithmetic only, no floating point, no truncated
tails. Bits come from the operating system unless a study passes a reproducible source. For
simulations inside compiled programs see `noise`.
"""

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks
from jaxfair.privacy import _exact_coins
from jaxfair.privacy._exact_coins import BitSource, seeded
from jaxfair.privacy._rational import rational

__all__ = ["BitSource", "discrete_gaussian", "discrete_laplace", "seeded"]

# Noise of this size leaves int64 with a probability below exp(-2^20).
LARGEST = 2**40
LARGEST_VALUE = 2**62


def discrete_gaussian(
  value: ArrayLike, *, sigma: float | Fraction, source: BitSource = os.urandom
) -> np.ndarray:
  """Adds independent discrete Gaussian noise to integers.

  Pr[noise = n] proportional to exp(-n^2 / (2 sigma^2))

  Args:
    value: array of integers, |value| at most 2^62.
    sigma: int, float or `Fraction`, taken at its exact value; at most 2^40.
      The standard deviation is never above it. Short numbers (50, 12.5) are
      several times as fast as long ones (0.1), which need long integers.
    source: source of random bits; the operating system by default.

  Returns:
    int64 array of the same shape.

  Privacy:
    If neighbors move the integers by at most D in L2, the release is
    D^2/(2 sigma^2)-zCDP, hence (a, a D^2/(2 sigma^2))-RDP for every a > 1.
    How long a draw takes depends on the noise, never on the value.

  Reference:
    Canonne, Kamath & Steinke (2020), Theorem 4 and Algorithm 3.
  """
  exact = _parameter("sigma", sigma)
  return _add(value, lambda count: _gaussian(source, exact**2, count))


def discrete_laplace(
  value: ArrayLike, *, scale: float | Fraction, source: BitSource = os.urandom
) -> np.ndarray:
  """Adds independent discrete Laplace noise to integers.

  Pr[noise = n] = (1 - q) / (1 + q) q^|n|,  q = exp(-1 / scale)

  Args:
    value: array of integers, |value| at most 2^62.
    scale: int, float or `Fraction`, taken at its exact value; at most 2^40.
    source: source of random bits; the operating system by default.

  Returns:
    int64 array of the same shape.

  Privacy:
    D/scale-DP if neighbors move the integers by at most D in L1, exactly.
    How long a draw takes depends on the noise, never on the value.

  Reference:
    Canonne, Kamath & Steinke (2020), Algorithm 2; Ghosh, Roughgarden & Sundararajan (2012).
  """
  exact = _parameter("scale", scale)
  return _add(value, lambda count: _laplace(source, exact, count))


def _laplace(source: BitSource, scale: Fraction, count: int) -> np.ndarray:
  """[count] discrete Laplace draws."""
  result = np.zeros(count, np.int64)
  open_ = np.arange(count if scale else 0)
  top, bottom = scale.numerator, scale.denominator
  while open_.size:
    # X = top V + U has Pr[X = x] proportional to exp(-x / top), and X / bottom
    # rounded down is geometric with the ratio exp(-1 / scale).
    remainder = _exact_coins.below(source, top, open_.size)
    kept = _exact_coins.bernoulli_exp(source, remainder, top)
    quotient = _exact_coins.geometric(source, int(kept.sum()))
    most = top * (int(quotient.max(initial=0)) + 1)
    if max(most, bottom).bit_length() > _exact_coins.INT64_BITS:
      remainder, quotient = remainder.astype(object), quotient.astype(object)
    magnitude = (remainder[kept] + top * quotient) // bottom
    negative = _exact_coins.random_bits(source, 1, magnitude.size) == 1
    # Zero would count twice, once with each sign.
    once = ~(negative & (magnitude == 0))
    kept[kept] = once
    signed = np.where(negative, -magnitude, magnitude)
    result[open_[kept]] = signed[once].astype(np.int64)
    open_ = open_[~kept]
  return result


def _gaussian(source: BitSource, variance: Fraction, count: int) -> np.ndarray:
  """[count] discrete Gaussian draws, by rejection from discrete Laplace."""
  result = np.zeros(count, np.int64)
  open_ = np.arange(count if variance else 0)
  top, bottom = variance.numerator, variance.denominator
  scale = math.isqrt(top // bottom) + 1
  while open_.size:
    drawn = _laplace(source, Fraction(scale), open_.size)
    # Accept with exp(-(|y| - sigma^2 / scale)^2 / (2 sigma^2)).
    distance = np.abs(drawn)
    most = (int(distance.max()) + 1) * scale * bottom + top
    if 2 * most.bit_length() > _exact_coins.INT64_BITS:
      distance = distance.astype(object)
    distance = distance * (scale * bottom) - top
    kept = _exact_coins.bernoulli_exp(source, distance * distance, 2 * top * bottom * scale**2)
    result[open_[kept]] = drawn[kept]
    open_ = open_[~kept]
  return result


def _parameter(name: str, value: float | Fraction) -> Fraction:
  exact = rational(name, value)
  checks.require(
    exact <= LARGEST,
    f"{name}={float(exact):g} is above 2^40, and noisy counts are int64; count in larger units",
  )
  return exact


def _add(value: ArrayLike, draw: Any) -> np.ndarray:
  checks.require(
    checks.concrete(value),
    "value is traced; exact noise is drawn on the host, after the compiled "
    "program (noise.discrete_gaussian and discrete_laplace run inside it)",
  )
  array = np.asarray(value)
  checks.require(
    array.dtype.kind in "iu",
    f"value holds {array.dtype} numbers; exact noise is for integers: round "
    "to a grid first and count in its steps",
  )
  if array.size:
    checks.number(
      "value",
      [array.min(), array.max()],
      low=-LARGEST_VALUE,
      high=LARGEST_VALUE,
      remedy="noisy counts are int64",
    )
  return array.astype(np.int64) + draw(array.size).reshape(array.shape)
