"""Costs of a query as a function of one number that a vote hardly moves.

At a fixed order, the cost of a query is a function on a *ladder*: a finite
list of public costs, and a rung that the votes determine, such that one
changed vote moves the rung by at most `reach`.

For a threshold test the rung is the largest count: reach 1. For GNMax it is
the effective margin

  tau(n) = sigma erfc^-1(2 q(n) / (classes - 1)),

in [0, k/2], rounded down. It has Lipschitz constant 1: one changed vote moves
every gap by at most 2, so every u_i = gap_i / (2 sigma) by at most 1/sigma;
x -> erfc(erfc^-1(x) - 1/sigma) is concave, so by Jensen the mean of erfc(u_i)
moves at most as if all u_i were equal; and q is the least over all classes
taken as the winner, so a change of the plurality does no harm. Since any upper
bound on Pr[not the plurality] may be used for q, the cost at a lower rung is
valid at every higher one: costs on this ladder never rise.

Discrete noise has heavier tails, Pr[d >= g] <= Pr[N(0, 2 sigma^2) >= g - 1] for
sigma of 1/2 and more (see _vote_tails): with every gap counted one vote shorter
all of this holds for it as well.

The ladder is this package's own. Papernot et al. (2018), appendix B, iterate
the same shift of q, under conditions on the shape of the cost that have to be
checked for each sigma and order; here none are needed.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting._confident_bound import confident_rdp
from jaxfair.accounting._pate_gnmax import log_union
from jaxfair.accounting._pate_threshold import rdp_of_largest

RUNGS_PER_VOTE = 32
ROUNDING = 1e-6  # of a rung; far above that of tau
MIN_DISCRETE = 0.5


class Ladder(NamedTuple):
  """Costs at one order, by rung; public.

  Attributes:
    costs: [rungs] divergences.
    reach: rungs that one changed vote can move.
  """

  costs: np.ndarray
  reach: int


def margin_ladder(*, num_teachers: int, num_classes: int, sigma: float, order: float) -> Ladder:
  """GNMax costs by effective margin."""
  top = RUNGS_PER_VOTE * num_teachers // 2
  tau = np.arange(-RUNGS_PER_VOTE, top + 1) / RUNGS_PER_VOTE
  log_q = np.log(num_classes - 1) + special.log_ndtr(-math.sqrt(2) * tau / sigma)
  log_q = np.minimum(log_q, 0.0)
  costs = confident_rdp(log_q, sigma=sigma, orders=np.array([order]))[:, 0]
  # One rung of slack, so that no rounding of tau can exceed the reach.
  return Ladder(np.minimum.accumulate(costs), RUNGS_PER_VOTE + 1)


def margin_rungs(table: np.ndarray, *, sigma: float, discrete: bool = False) -> np.ndarray:
  """[n] rungs of the votes on `margin_ladder`; private."""
  checks.require(
    not discrete or sigma >= MIN_DISCRETE,
    f"sigma={sigma:g} is too small for a bound on discrete noise; use at least {MIN_DISCRETE}",
  )
  teachers = int(table[0].sum()) if len(table) else 0
  gaps = np.arange(teachers + 1) - (1 if discrete else 0)
  log_tails = special.log_ndtr(-gaps / (math.sqrt(2) * sigma))
  log_share = log_union(table, log_tails) - math.log(table.shape[1] - 1)
  tau = -sigma * special.ndtri_exp(log_share) / math.sqrt(2)
  # The lowest rung is at one vote below zero.
  rungs = np.floor(RUNGS_PER_VOTE * (tau + 1) - ROUNDING).astype(np.int64)
  return np.clip(rungs, 0, RUNGS_PER_VOTE * teachers // 2 + RUNGS_PER_VOTE)


def threshold_ladder(
  *, num_teachers: int, threshold: float, sigma: float, order: float, discrete: bool = False
) -> Ladder:
  """Costs of the threshold test by the largest count, its rung."""
  largest = np.arange(num_teachers + 1)
  costs = rdp_of_largest(
    largest, threshold=threshold, sigma=sigma, orders=np.array([order]), discrete=discrete
  )[:, 0]
  return Ladder(costs, 1)
