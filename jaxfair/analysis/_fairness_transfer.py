"""How much fairness a private vote passes on (SF-PATE's two theorems).

Float64 on the host. Everything here is computed from private groups or votes
and is not for release.
"""

import math

import chex
import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import _votes
from jaxfair.types import ArrayLike, GroupsLike, LabelsLike, VotesLike

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
    alike, it is too small: `mismatch` knows the truth.
  """
  table = _votes.vote_table(counts).astype(np.float64)
  share = table / table.sum(axis=1, keepdims=True)
  apart = np.abs(answer_probabilities(counts, sigma=sigma) - share)
  return float(apart.max()), apart.mean(axis=0)


def mismatch(group: GroupsLike, voted: GroupsLike, num_groups: int) -> np.ndarray:
  """[G] share of people for whom exactly one of A = a and a~ = a holds: the realized eta.

  With this eta, `fair_student_bound` is a theorem about the people at hand.
  """
  checks.ids("group", group, num_groups)
  checks.ids("voted", voted, num_groups)
  group, voted = np.asarray(group), np.asarray(voted)
  chex.assert_rank(group, 1)
  chex.assert_equal_shape((group, voted))
  ids = np.arange(num_groups)[:, None]
  return np.mean((group == ids) != (voted == ids), 1)


def fair_student_bound(
  alpha: ArrayLike, *, eta: ArrayLike, shares: ArrayLike, bound: float = 1.0, of_votes: bool = True
) -> float:
  """Bounds the fairness violation on true groups of a model that is fair on voted groups.

  alpha' = alpha + max_a 2 B eta_a / Pr(a~ = a)
  alpha' = alpha + max_a 2 B eta_a / (Pr(A = a) - eta_a)

  Args:
    alpha: violation with respect to the voted groups.
    eta: how far votes are from groups: one number, or one for each group.
    shares: [G] Pr(a~ = a), or Pr(A = a) if `of_votes` is False.
    bound: B, the largest |h|.
    of_votes: which of the two shares are given.

  Returns:
    alpha'; infinite where a group is not larger than its eta.

  Reference:
    Tran et al. (2023), Theorem 1 and Corollary 1. They have the largest eta
    over all (x, y); the proof needs its mean only: with |h| <= B,
    |E h 1{A=a} - E h 1{a~=a}| <= B E|Pr(A=a | x, y) - Pr(a~=a | x, y)|.
  """
  checks.non_negative("alpha", alpha)
  checks.number("eta", eta, low=0.0, high=1.0)
  checks.number("shares", shares, low=0.0, high=1.0)
  shares = np.asarray(shares, np.float64)
  eta = np.broadcast_to(np.asarray(eta, np.float64), shares.shape)
  base = shares if of_votes else shares - eta
  safe = np.where(base > 0, base, 1.0)
  extra = np.where(eta == 0, 0.0, np.where(base > 0, 2 * eta / safe, np.inf))
  return float(alpha + bound * extra.max())


def fair_teachers_bound(
  counts: VotesLike,
  group: GroupsLike,
  num_groups: int,
  *,
  y: LabelsLike | None = None,
  bound: float = 1.0,
) -> float:
  """Bounds the fairness violation of a vote by how similar the groups' vote counts are.

  alpha' = B eta,  eta = max_a TV((n, Y) | A = a; (n, Y))

  Args:
    counts: [m, C] votes on the class.
    group: [m] true groups.
    num_groups: G.
    y: [m] labels, for notions that look at them; None for those of the
      prediction alone.
    bound: B, for h in [0, B].

  Returns:
    alpha'. Votes enter by their counts alone, which is all that the answer
    depends on. Total variation is that of these people; of few people or many
    teachers it is large whatever the truth.

  Reference:
    Tran et al. (2023), Theorem 2.
  """
  table = _votes.vote_table(counts)
  group = np.asarray(group)
  checks.ids("group", group, num_groups)
  columns = [table] if y is None else [table, np.asarray(y)[:, None]]
  _, kind = np.unique(np.hstack(columns), axis=0, return_inverse=True)
  kinds = int(kind.max()) + 1
  everybody = np.bincount(kind.ravel(), minlength=kinds) / len(group)
  apart = [0.0]
  for own in range(num_groups):
    inside = kind.ravel()[group == own]
    if inside.size:
      law = np.bincount(inside, minlength=kinds) / inside.size
      apart.append(0.5 * float(np.abs(law - everybody).sum()))
  return bound * max(apart)
