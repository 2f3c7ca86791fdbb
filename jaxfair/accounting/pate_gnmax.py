"""Noisy-argmax labels (GNMax) and noisy histograms of teacher votes.

One record lies in one teacher's part, so it changes one vote: two counts move
by one, sqrt(2) in L2. Gaussian noise of standard deviation sigma, continuous
or discrete, makes each release (a, a / sigma^2)-RDP.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import votes
from jaxfair.accounting.confident_bound import confident_rdp
from jaxfair.accounting.data_dependent import marked


def gnmax_log_q(counts: Any, *, sigma: float) -> np.ndarray:
  """ln q, where q bounds the chance of another label than the plurality.

  q = sum_{i != i*} Pr[N(0, 2 sigma^2) >= n_i* - n_i], at most 1 - 1/classes

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    sigma: standard deviation of the noise on each count.

  Returns:
    [n] logarithms, exact in the tails. Among tied classes i* is any: q is the
    same for all.

  Privacy:
    A function of the private votes: not for release.

  Reference:
    Papernot et al. (2018), Proposition 7.
  """
  table = votes.vote_table(counts)
  union = log_union(table, sigma=votes.noise_sigma(sigma))
  return np.minimum(union, np.log1p(-1 / table.shape[1]))


def gnmax_rdp(
  counts: Any,
  *,
  sigma: float,
  orders: Sequence[float] | np.ndarray,
  data_dependent: bool = True,
) -> np.ndarray:
  """The Renyi divergences of one GNMax label per query.

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    sigma: standard deviation of the noise on each count.
    orders: a, each above 1.
    data_dependent: whether to look at the votes. Then each entry is the
      smaller of a / sigma^2 and the bound that uses `gnmax_log_q`.

  Returns:
    [n, orders]. Data-dependent ones are a `DataDependentRdp`, which
    `rdp_to_epsilon` turns into a `DataDependentEpsilon`; the others are plain
    numbers that depend on sigma and the orders only.

  Privacy:
    The data-dependent bound is about these votes and one direction of the
    divergence, and is itself private. It survives post-processing of the
    label. It does *not* hold where more than the label is released: see
    `histogram_rdp`.

  Reference:
    Papernot et al. (2018), Theorem 6, Propositions 7, 8 and 10.
  """
  table = votes.vote_table(counts)
  sigma = votes.noise_sigma(sigma)
  a = votes.renyi_orders(orders)
  if not data_dependent:
    return np.tile(a / sigma**2, (table.shape[0], 1))
  log_q = np.minimum(
    log_union(table, sigma=sigma), np.log1p(-1 / table.shape[1])
  )
  return marked(confident_rdp(log_q, sigma=sigma, orders=a))


def histogram_rdp(
  counts: Any,
  *,
  sigma: float,
  orders: Sequence[float] | np.ndarray,
  data_dependent: bool = False,
) -> np.ndarray:
  """The Renyi divergences of a released noisy histogram (soft labels).

  r_a = a / sigma^2, for every pair of neighbours exactly

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    sigma: standard deviation of the noise on each count.
    orders: a, each above 1.
    data_dependent: refused. A consensus hides who voted how in a label, not
      in a histogram, whose mean moves by sqrt(2) however strong it is.

  Returns:
    [n, orders] plain numbers. Normalising, clipping and projecting the
    histogram afterwards is free, and so is any threshold computed from it.
  """
  table = votes.vote_table(counts)
  sigma = votes.noise_sigma(sigma)
  a = votes.renyi_orders(orders)
  checks.require(
    not data_dependent,
    "data_dependent=True does not hold for a released histogram, however "
    "strong the consensus; price soft labels with data_dependent=False",
  )
  return np.tile(a / sigma**2, (table.shape[0], 1))


def log_union(table: np.ndarray, *, sigma: float) -> np.ndarray:
  """[n] ln of the union bound on a wrong label, not cut at 1 - 1/classes."""
  if table.shape[0] == 0:
    return np.zeros(0)
  winner = table.argmax(axis=1)
  gaps = table.max(axis=1, keepdims=True) - table
  scale = np.sqrt(2) * sigma
  teachers = int(table[0].sum())
  if teachers < table.size:
    # Gaps are whole numbers up to k: few distinct tails, looked up.
    log_tails = special.log_ndtr(-np.arange(teachers + 1) / scale)[gaps]
  else:
    log_tails = special.log_ndtr(-gaps / scale)
  log_tails[np.arange(winner.size), winner] = -np.inf
  top = log_tails.max(axis=1)
  log_tails -= top[:, None]
  return top + np.log(np.exp(log_tails).sum(axis=1))
