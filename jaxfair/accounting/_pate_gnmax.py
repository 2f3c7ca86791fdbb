"""Noisy-argmax labels (GNMax) of teacher votes.

One record lies in one teacher's part, so it changes one vote: two counts move
by one, sqrt(2) in L2. Gaussian noise of standard deviation sigma, continuous
or discrete, makes each release (a, a / sigma^2)-RDP. The data-dependent bound differs
between the two.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jaxfair.accounting import _votes
from jaxfair.accounting._confident_bound import confident_rdp
from jaxfair.accounting._data_dependent import marked
from jaxfair.accounting._vote_tails import log_rival_tails

BLOCK = 8192  # rows at a time, so that the temporaries stay in the cache
LEAST_LOG = -600.0  # e^-600 and sums of it are numbers of full precision


def gnmax_rdp(
  counts: ArrayLike, *, sigma: float, orders: Sequence[float] | np.ndarray, discrete: bool = False
) -> np.ndarray:
  """The Renyi divergences of one GNMax label per query.

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    sigma: standard deviation of the noise on each count.
    orders: a, each above 1.
    discrete: whether the noise is discrete Gaussian, whose tails are heavier
      (`vote_tails`); a / sigma^2 holds for both.

  Returns:
    [n, orders] as a `DataDependentRdp`, which `rdp_to_epsilon` turns into a
    `DataDependentEpsilon`: each entry is the smaller of a / sigma^2 and the bound by
    the chance of another label than the plurality.

  Privacy:
    The data-dependent bound is about these votes and one direction of the
    divergence, and is itself private. It survives post-processing of the
    label. It does *not* hold where more than the label is released: a noisy
    histogram costs a / sigma^2 however strong the consensus.

  Reference:
    Papernot et al. (2018), Theorem 6, Propositions 7, 8 and 10.
  """
  table = _votes.vote_table(counts)
  sigma = _votes.noise_sigma(sigma)
  a = _votes.renyi_orders(orders)
  log_q = _log_q(table, sigma, discrete)
  return marked(confident_rdp(log_q, sigma=sigma, orders=a))


def log_union(table: np.ndarray, log_tails: np.ndarray) -> np.ndarray:
  """[n] ln of the sum over rivals of their tails, looked up by gap."""
  blocks = range(0, len(table), BLOCK)
  found = [_log_union(table[i : i + BLOCK], log_tails) for i in blocks]
  return np.concatenate([np.zeros(0), *found])


def _log_union(table: np.ndarray, log_tails: np.ndarray) -> np.ndarray:
  # Class by class, so that sums over classes run along memory.
  columns = np.ascontiguousarray(table.T)
  gaps = columns.max(axis=0) - columns
  tied = np.count_nonzero(gaps == 0, axis=0) - 1  # the winner is no rival
  if log_tails.min() > LEAST_LOG:
    tails = np.exp(log_tails)
    tie, tails[0] = tails[0], 0.0
    total: np.ndarray = np.log(tails[gaps].sum(axis=0) + tied * tie)
    return total
  lost = log_tails.copy()
  lost[0] = -np.inf
  terms = lost[gaps]
  top = np.where(tied > 0, log_tails[0], terms.max(axis=0))
  # A tie is the largest term there can be: e^(its log - top) is 1.
  total = top + np.log(np.exp(terms - top).sum(axis=0) + tied)
  return total


def _log_q(table: np.ndarray, sigma: float, discrete: bool) -> np.ndarray:
  """[n] ln q, where q bounds the chance of another label than the plurality.

  q = sum_{i != i*} Pr[N(0, 2 sigma^2) >= n_i* - n_i], at most 1 - 1/classes

  Among tied classes i* is any: q is the same for all. Ties of discrete noise
  count as another label (Papernot et al. 2018, Proposition 7).
  """
  most = int(table[0].sum()) if len(table) else 0
  log_tails = log_rival_tails(most, sigma=sigma, discrete=discrete)
  # Continuous noise has no ties, so the plurality wins most often.
  cap = 0.0 if discrete else np.log1p(-1 / table.shape[1])
  return np.minimum(log_union(table, log_tails), cap)
