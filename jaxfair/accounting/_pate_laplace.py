"""Noisy-argmax labels with Laplace noise (LNMax), the older variant.

One vote moves two counts by one, 2 in L1, so a label is (2 / scale)-DP.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxfair.accounting import _votes
from jaxfair.accounting._data_dependent import marked

EDGE = 1e-9


def lnmax_log_q(counts: Any, *, scale: float) -> np.ndarray:
  """ln q, where q bounds the chance of another label than the plurality.

  q = sum_{i != i*} (2 + g_i) / (4 e^g_i),  g_i = (n_i* - n_i) / scale,
  at most 1 - 1/classes

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    scale: scale of the Laplace noise on each count (1 / gamma in the papers).

  Returns:
    [n] logarithms.

  Privacy:
    A function of the private votes: not for release.

  Reference:
    Papernot et al. (2017), Lemma 4.
  """
  table = _votes.vote_table(counts)
  return _log_q(table, _votes.noise_sigma(scale, name="scale"))


def lnmax_rdp(
  counts: Any, *, scale: float, orders: Sequence[float] | np.ndarray, data_dependent: bool = True
) -> np.ndarray:
  """The Renyi divergences of one LNMax label per query.

  With e = 2 / scale, without looking at the votes that of randomized response,
  the worst of all e-DP mechanisms:

    (a - 1) r_a = ln( (e^(a e) + e^((1 - a) e)) / (1 + e^e) )

  and where q < 1 / (1 + e^e), if smaller,

    (a - 1) r_a = ln( (1 - q) ((1 - q) / (1 - e^e q))^(a-1) + q e^(e (a-1)) )

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    scale: scale of the Laplace noise on each count.
    orders: a, each above 1.
    data_dependent: whether to look at the votes.

  Returns:
    [n, orders]; data-dependent ones are a `DataDependentRdp`.

  Privacy:
    As in `gnmax_rdp`.

  Reference:
    Papernot et al. (2017), Theorem 3, read as Renyi divergences.
  """
  table = _votes.vote_table(counts)
  scale = _votes.noise_sigma(scale, name="scale")
  a = _votes.renyi_orders(orders)
  epsilon = 2 / scale
  excess = a - 1
  flat = np.minimum(_response(epsilon, a) / excess, epsilon)
  out = np.tile(flat, (table.shape[0], 1))
  if not data_dependent:
    return out
  log_q = _log_q(table, scale)
  # A hair inside the condition: at its edge the bound is infinite anyway.
  rows = np.flatnonzero(log_q + np.logaddexp(0, epsilon) < -EDGE)
  log_rare = log_q[rows, None]
  log_likely = np.log1p(-np.exp(log_rare))
  usual = a * log_likely - excess * np.log1p(-np.exp(log_rare + epsilon))
  found = np.logaddexp(usual, log_rare + epsilon * excess) / excess
  out[rows] = np.minimum(out[rows], np.maximum(found, 0.0))
  return marked(out)


def _response(epsilon: float, a: np.ndarray) -> np.ndarray:
  """ln(cosh((a - 1/2) e) / cosh(e / 2)), without cancellation or overflow."""
  wide = (a - 0.5) * epsilon
  small = np.minimum(wide, 1.0)  # only to keep sinh in range
  scale = small / wide
  near = np.log1p(
    2
    * np.sinh(a * epsilon * scale / 2)
    * np.sinh((a - 1) * epsilon * scale / 2)
    / np.cosh(epsilon * scale / 2)
  )
  far = (a - 1) * epsilon + (np.log1p(np.exp(-2 * wide)) - np.log1p(np.exp(-epsilon)))
  return np.where(wide < 1, near, far)


def _log_q(table: np.ndarray, scale: float) -> np.ndarray:
  if table.shape[0] == 0:
    return np.zeros(0)
  gaps = (table.max(axis=1, keepdims=True) - table) / scale
  log_tails = np.log((2 + gaps) / 4) - gaps
  log_tails[np.arange(len(table)), table.argmax(axis=1)] = -np.inf
  union = np.logaddexp.reduce(log_tails, axis=1)
  return np.minimum(union, np.log1p(-1 / table.shape[1]))
