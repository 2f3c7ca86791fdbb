"""Gaussian noise for real numbers that are released directly, computed on the host.

The last bits of a noisy float reveal something about its true value. Here numbers are rounded to a
public grid and exact discrete Gaussian noise is added in whole steps, so no digit of a value below
the grid's step remains. The grid is so fine that the cost is that of the continuous Gaussian.
Inside compiled programs, sums over people are released by `grid_sums`.
"""

import math
import os
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks
from jaxfair.privacy import exact
from jaxfair.privacy._exact_coins import BitSource

# Steps of the grid in one sigma; the largest that `exact` draws.
STEPS = 2**40


def gaussian(value: ArrayLike, *, sigma: ArrayLike, source: BitSource = os.urandom) -> np.ndarray:
  """Rounds real numbers to a public grid and adds discrete Gaussian noise.

  step (round(value / step) + N),  Pr[N = n] proportional to
  exp(-n^2 / (2 STEPS^2)),  step = sigma / STEPS

  Args:
    value: array of finite floats or integers of any length, at their exact values.
    sigma: standard deviation of the noise, above 0: one number, or one for
      each value. Public: the grid follows from it.
    source: source of random bits; the operating system by default.

  Returns:
    float64 array of the same shape. Each number is a function of a whole number of steps.

  Privacy:
    Let neighbors move value / sigma by at most 1 / z in L2. The whole
    numbers round(value / step) then move by at most D = STEPS / z + sqrt(n),
    because each of the n roundings moves by half a step at most; `sigma_for`
    makes room for it. The division and the rounding are exact. Everything
    after the noise is post-processing, so the release is that of discrete
    Gaussian noise on integers: (D / STEPS)^2 / 2-zCDP (Canonne, Kamath &
    Steinke 2020, Theorem 4).

    It is also within `distance(n)` in total variation of round(T + G) for the
    integers T and a continuous Gaussian G of deviation STEPS: a function of
    the Gaussian mechanism. `accounting.grid_sigma` and `grid_delta` price the
    release by the exact curve of that mechanism and add the distance.
  """
  array = np.asarray(value)
  sigmas = np.broadcast_to(np.asarray(sigma, np.float64), array.shape)
  checks.positive("sigma", sigmas)
  if array.dtype != object:
    checks.finite("value", array)
  steps = np.empty(array.size, object)
  for i, (one, scale) in enumerate(
    zip(array.ravel().tolist(), sigmas.ravel().tolist(), strict=True)
  ):
    steps[i] = round(Fraction(one) * STEPS / Fraction(scale))
  drawn = exact.discrete_gaussian(np.zeros(array.size, np.int64), sigma=STEPS, source=source)
  noisy = (steps + drawn.astype(object)) / STEPS
  return noisy.astype(np.float64).reshape(array.shape) * sigmas


def sigma_for(*, noise_multiplier: float, sensitivity: float, count: int) -> float:
  """The sigma of `gaussian` for a noise multiplier, with the grid counted.

  sigma = z (D + sqrt(n) step),  step = sigma / STEPS

  Args:
    noise_multiplier: z, sigma over what a neighbor may move on the grid.
    sensitivity: D, what a neighbor may move before the rounding, in L2.
    count: n, how many numbers are released.

  Returns:
    sigma, rounded up; above z D by a share of z sqrt(n) / 2^40.
  """
  checks.positive("noise_multiplier", noise_multiplier)
  checks.positive("sensitivity", sensitivity)
  checks.integer("count", count, low=0)
  share = noise_multiplier * math.sqrt(count) / STEPS
  checks.require(
    share <= 0.5,
    f"noise_multiplier={noise_multiplier:g} on {count} numbers is too much "
    "for the grid: rounding would be half of what a neighbor moves",
  )
  return noise_multiplier * sensitivity / (1 - share) * (1 + 2.0**-48)


def distance(count: int, *, steps: float = STEPS) -> float:
  """Total variation between n discrete Gaussians and rounded continuous ones.

  Args:
    count: n, how many numbers neighbors can differ in.
    steps: s, the standard deviation in steps.

  Returns:
    n / (10 s^2), an upper bound.

  Proof:
    Write p for the discrete law and q for that of a rounded N(0, s^2). Then
    q(n) is proportional to p(n) c(n), with c(n) the integral of
    cosh(n t / s^2) exp(-t^2 / (2 s^2)) over |t| <= 1/2. It is at least
    1 - 1/(24 s^2), and at most exp(n^2 / (24 s^4)), whose mean under p is at
    most (1 - 1/(12 s^2))^(-1/2), since p has no larger exponential moments
    than N(0, s^2). So E|c - 1| is at most 1/(12 s^2) up to terms in s^-4, and
    the distance, at most E|c - 1| / E c, is below 1/(10 s^2). Distances of
    independent draws add up; numbers that neighbors agree on cancel.
  """
  checks.integer("count", count, low=0)
  return count / (10.0 * steps**2)
