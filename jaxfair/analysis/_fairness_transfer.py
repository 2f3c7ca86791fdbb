"""How much fairness a private vote passes on (SF-PATE's two theorems).

Float64 on the host. Everything here is computed from private groups or votes
and is not for release.
"""

import math

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import _votes
from jaxfair.types import ArrayLike, VotesLike

HALF_WIDTH, NUM_NODES = 9.0, 145  # as in `flips`


def answer_probabilities(counts: VotesLike, *, sigma: float) -> np.ndarray:
  """Pr[noisy label = c] of every class for each query, exactly.

  p_c = integral phi(z) prod_{b != c} Phi(z + (n_c - n_b) / sigma) dz

  Args:
    counts: [m, C] votes.
    sigma: standard deviation of the noise on each count, continuous.

  Returns:
    [m, C] probabilities.
  """
  checks.positive("sigma", sigma)
  table = _votes.vote_table(counts).astype(np.float64)
  z = np.linspace(-HALF_WIDTH, HALF_WIDTH, NUM_NODES)
  weight = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
  out = np.empty_like(table)
  for own in range(table.shape[1]):
    gaps = (table[:, own : own + 1] - table) / sigma
    gaps = np.delete(gaps, own, axis=1)
    log_kept = special.log_ndtr(z[:, None] + gaps[:, None, :]).sum(axis=2)
    out[:, own] = np.exp(log_kept) @ weight
  return out / out.sum(axis=1, keepdims=True)


def vote_eta(counts: VotesLike, *, sigma: float) -> tuple[float, np.ndarray]:
  """eta by the teachers' agreement: how far the vote is from their shares.

  eta = |Pr(a~ = a | x) - Pr(A = a | x)|,  the latter taken as n_a(x) / K

  Args:
    counts: [m, G] votes on the group.
    sigma: standard deviation of the noise.

  Returns:
    The largest over queries and groups, as the theorem has it; and the [G]
    means over queries, for which it holds as well.

  Assumptions:
    Teachers' shares are the groups' probabilities. Where teachers are biased
    alike, it is too small.
  """
  table = _votes.vote_table(counts).astype(np.float64)
  share = table / table.sum(axis=1, keepdims=True)
  apart = np.abs(answer_probabilities(counts, sigma=sigma) - share)
  return float(apart.max()), apart.mean(axis=0)


def fair_student_bound(alpha: ArrayLike, *, eta: ArrayLike, shares: ArrayLike) -> float:
  """Bounds the fairness violation on true groups of a model that is fair on voted groups.

  alpha' = alpha + max_a 2 eta_a / Pr(a~ = a),  for |h| <= 1

  Args:
    alpha: violation with respect to the voted groups.
    eta: how far votes are from groups: one number, or one for each group.
    shares: [G] Pr(a~ = a).

  Returns:
    alpha'; infinite where no vote is for a group.

  Reference:
    Tran et al. (2023), Theorem 1. They have the largest eta
    over all (x, y); the proof needs its mean only: with |h| <= 1,
    |E h 1{A=a} - E h 1{a~=a}| <= E|Pr(A=a | x, y) - Pr(a~=a | x, y)|.
  """
  checks.non_negative("alpha", alpha)
  checks.number("eta", eta, low=0.0, high=1.0)
  checks.number("shares", shares, low=0.0, high=1.0)
  shares = np.asarray(shares, np.float64)
  eta = np.broadcast_to(np.asarray(eta, np.float64), shares.shape)
  safe = np.where(shares > 0, shares, 1.0)
  extra = np.where(eta == 0, 0.0, np.where(shares > 0, 2 * eta / safe, np.inf))
  return float(alpha + extra.max())
