"""The cost of Gaussian noise on a grid: discrete, and nearly continuous.

Discrete Gaussian noise is D^2 / (2 sigma^2)-zCDP. That bound is a few percent
above the exact curve of the continuous Gaussian, which a fine grid approximates:
the two distributions differ by a total variation of less than 1e-13, which is added to
delta.
"""

import math

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import _events
from jaxfair.accounting._gaussian import gaussian_sigma
from jaxfair.accounting._zcdp import discrete_gaussian_rho, discrete_gaussian_sigma


def grid_sigma(*, epsilon: float, delta: float, distance: float, sensitivity: float = 1.0) -> float:
  """The smallest noise on a grid that is (epsilon, delta)-DP, rounded up.

  Args:
    epsilon: above 0.
    delta: in (0, 1).
    distance: of the draws to rounded continuous ones; `privacy.grid.distance`.
    sensitivity: L2 sensitivity, with what rounding to the grid adds.

  Privacy:
    Laws within a distance t of those of an (epsilon, delta') mechanism are
    (epsilon, delta' + (1 + e^epsilon) t)-DP. Where epsilon is so large that
    this leaves nothing of delta, the zCDP bound of the discrete law is used.
  """
  checks.non_negative("distance", distance)
  discrete = discrete_gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
  left = delta - (1 + math.exp(min(epsilon, 700.0))) * distance
  if left <= 0.5 * delta:
    return discrete
  return min(discrete, gaussian_sigma(epsilon=epsilon, delta=left, sensitivity=sensitivity))


def grid_delta(*, noise_multiplier: float, distance: float) -> float:
  """What noise on a grid adds to a Gaussian event: the delta of (0, delta)-DP.

  Args:
    noise_multiplier: z, sigma over the sensitivity.
    distance: t, of the law drawn both to the rounded continuous one and to
      the discrete Gaussian.

  Returns:
    The delta d such that the release is dominated by
    `Composed((Gaussian(z), ApproxDp(0, d)))`.

  Proof:
    Let H(e) be the hockey-stick divergence of the Gaussian mechanism at
    epsilon e >= 0 and H'(e) that of the release, in either direction; both
    fall with e. The composition has d + (1 - d) H(e). The laws are within t,
    so H'(e) <= H(e) + (1 + exp(e)) t. Beyond any e*,
    H'(e) <= H'(e*) <= B(e*) + (1 + exp(e*)) t, where
    B(e) = exp(-(e - rho)^2 / (4 rho)) for e >= rho = 1 / (2 z^2) bounds the
    discrete Gaussian's (Bun & Steinke 2016, Proposition 1.3). With x the sum
    on the right, d = x / (1 - H(0)) is enough: H + x <= d + (1 - d) H wherever
    1 - H >= 1 - H(0) = 2 Phi(-1 / (2 z)). By Blackwell's theorem the release
    is then a function of the composition, and composes like it.
  """
  checks.positive("noise_multiplier", noise_multiplier)
  checks.non_negative("distance", distance)
  if distance == 0:
    return 0.0
  rho = 0.5 / noise_multiplier**2
  cut = rho + np.sqrt(rho) * np.linspace(0.0, 60.0, 601)  # e*
  with np.errstate(over="ignore"):
    sums = np.exp(-((cut - rho) ** 2) / (4 * rho))
    sums = sums + (1 + np.exp(cut)) * distance
  rest = special.erfc(1 / (noise_multiplier * math.sqrt(8)))
  with np.errstate(divide="ignore"):
    found = float(np.min(sums) / rest)
  return min(1.0, found * (1 + 1e-9))


def grid_gaussian(*, noise_multiplier: float, distance: float) -> _events.Event:
  """The event of one release of `privacy.grid.gaussian`.

  Args:
    noise_multiplier: z, sigma over the sensitivity.
    distance: `privacy.grid.distance` of the numbers released.

  Returns:
    A Gaussian event with the delta of `grid_delta`, or, with so little noise
    that the delta would be noticed, the zCDP of the discrete law.
  """
  extra = grid_delta(noise_multiplier=noise_multiplier, distance=distance)
  if extra > 1e-12:
    return _events.ZCdp(discrete_gaussian_rho(sigma=noise_multiplier))
  gaussian = _events.Gaussian(noise_multiplier)
  return _events.Composed((gaussian, _events.ApproxDp(0.0, extra)))
