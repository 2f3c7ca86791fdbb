"""The threshold test of Confident-GNMax: answer only where teachers agree.

One vote moves the largest count by at most one, so with noise of standard
deviation sigma the released bit is (a, a / (2 sigma^2))-RDP.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from jaxfair.accounting import _votes
from jaxfair.accounting._confident_bound import confident_rdp
from jaxfair.accounting._data_dependent import marked
from jaxfair.accounting._vote_tails import log_reach


def log_answer_probability(
  counts: ArrayLike, *, threshold: float, sigma: float, discrete: bool = False
) -> np.ndarray:
  """ln Pr[max_c n_c + N(0, sigma^2) >= threshold], exact in the tails.

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    threshold: T, in votes.
    sigma: standard deviation of the test's noise.
    discrete: whether the noise is discrete Gaussian.

  Returns:
    [n] logarithms.

  Privacy:
    A function of the private votes: not for release. Costs multiplied by it
    are expectations, not guarantees.
  """
  table, threshold, sigma = _checked(counts, threshold, sigma)
  largest = table.max(axis=1)
  if discrete:
    return log_reach(_shortfall(largest, threshold), sigma=sigma)
  return special.log_ndtr((largest - threshold) / sigma)


def threshold_rdp(
  counts: ArrayLike,
  *,
  threshold: float,
  sigma: float,
  orders: Sequence[float] | np.ndarray,
  discrete: bool = False,
) -> np.ndarray:
  """The Renyi divergences of one threshold test per query.

  Charged for every query whose votes were compared, answered or not.

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    threshold: T, in votes.
    sigma: standard deviation of the test's noise.
    orders: a, each above 1.
    discrete: whether the noise is discrete Gaussian.

  Returns:
    [n, orders] as a `DataDependentRdp`: each entry is the smaller of
    a / (2 sigma^2) and the bound that uses the probability of the less likely
    bit, computed in its own tail.

  Privacy:
    As in `gnmax_rdp`.

  Reference:
    Papernot et al. (2018), Theorem 6 with the test's own q.
  """
  table, threshold, sigma = _checked(counts, threshold, sigma)
  a = _votes.renyi_orders(orders)
  rdp = rdp_of_largest(
    table.max(axis=1), threshold=threshold, sigma=sigma, orders=a, discrete=discrete
  )
  return marked(rdp)


def rdp_of_largest(
  largest: np.ndarray, *, threshold: float, sigma: float, orders: np.ndarray, discrete: bool = False
) -> np.ndarray:
  """[n, orders] data-dependent divergences, from the largest counts alone."""
  if discrete:
    short = _shortfall(largest, threshold)
    log_q = log_reach(np.maximum(short, 1 - short), sigma=sigma)
  else:
    log_q = special.log_ndtr(-np.abs(largest - threshold) / sigma)
  return confident_rdp(log_q, sigma=np.sqrt(2) * sigma, orders=orders)


def _shortfall(largest: np.ndarray, threshold: float) -> np.ndarray:
  """Whole votes that the noise must make up for."""
  return math.ceil(threshold) - largest


def _checked(counts: ArrayLike, threshold: float, sigma: float) -> tuple[np.ndarray, float, float]:
  table = _votes.vote_table(counts)
  teachers = int(table[0].sum()) if table.shape[0] else 0
  threshold = _votes.vote_threshold(threshold, sigma, teachers)
  return table, threshold, _votes.noise_sigma(sigma)
