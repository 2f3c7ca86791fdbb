"""Which predictions to offer to the counter rule, planned on public people.

The rule alone answers whoever comes first. Where groups differ in their classes, it fills all
groups alike and then gets stuck, although it may pay to answer one group wholly and to thin out
another. Shares by group and predicted class that answer most people within the margin follow from
predictions for public people whose groups are known.
"""

import numpy as np

from jaxfair import checks
from jaxfair.fairness._counter import REFUSED
from jaxfair.types import ArrayLike

# Public people tell the shares of those who come only roughly. What a plan leaves of the margin is
# for the rule behind it.
PLANNED_PART = 0.8
UNSEEN = 0.5  # a cell that no public person is in may still be asked for
LITTLE = 1e-3  # weight of groups that a search does not begin with
MOST_STEPS = 50


def planned_shares(counts: ArrayLike, max_gap: float) -> np.ndarray:
  """[G, C] the share of each cell to offer, such that most people are answered within a margin.

  maximize sum_z M_z,  M_z = sum_k m(z, k),  0 <= m(z, k) <= n(z, k),
  q_k <= m(z, k) / M_z <= q_k + max_gap  for some q

  The groups' shares of a class then differ by `max_gap` at most between any two groups, hence also
  from the rest and from everybody, which are mixtures of groups.

  With p(z, k) = m(z, k) / M_z and c_z = n_z / M_z the constraints are linear,

  p(z, k) <= c_z n(z, k) / n_z,  sum_k p(z, k) = 1,  q_k <= p(z, k) <= q_k + max_gap,

  and sum_z n_z / c_z is convex, so its maximum is at a corner of that polyhedron. Replacing it by
  its tangent gives a linear program whose solution is no worse than where the tangent was taken;
  steps are repeated until nothing is gained, from all groups alike and from each of them first.
  The best of these corners is returned. It is the best of all in the cases that the tests
  enumerate; in general it is a local maximum.

  Args:
    counts: [G, C] public people by group and predicted class.
    max_gap: margin of the plan.

  Privacy:
    Reads groups of public people and predictions of a model that is released anyway: computed
    from a release and public data, so it is post-processing and costs nothing.
  """
  seen = np.asarray(counts, np.float64) + UNSEEN
  checks.require(seen.ndim == 2, f"counts has shape {seen.shape}; pass one row per group")
  checks.non_negative("counts", counts)
  checks.non_negative("max_gap", max_gap)
  sizes = seen.sum(axis=1)
  mix = seen / sizes[:, None]
  sizes /= sizes.sum()
  groups = len(sizes)
  alike, each = np.ones((1, groups)), np.eye(groups)
  starts = np.concatenate([alike, each + LITTLE, 3 * each + 1])
  found = [_climbed(mix, sizes, start, max_gap) for start in starts]
  rates, slowness = max(found, key=lambda one: float((sizes / one[1]).sum()))
  return np.clip(rates / (mix * slowness[:, None]), 0.0, 1.0)


def _climbed(
  mix: np.ndarray, sizes: np.ndarray, weights: np.ndarray, max_gap: float
) -> tuple[np.ndarray, np.ndarray]:
  """p and c of a corner that no tangent improves."""
  rates, slowness = _corner(mix, weights, max_gap)
  for _ in range(MOST_STEPS):
    better = _corner(mix, sizes / slowness**2, max_gap)
    if (sizes / better[1]).sum() <= (sizes / slowness).sum() + 1e-9:
      break
    rates, slowness = better
  return rates, slowness


def _corner(mix: np.ndarray, weights: np.ndarray, max_gap: float) -> tuple[np.ndarray, np.ndarray]:
  """p [G, C] and c [G] that minimize sum_z weights_z c_z."""
  from scipy import optimize

  groups, classes = mix.shape
  cells = groups * classes
  own = np.eye(cells)
  by_group = np.repeat(np.eye(groups), classes, axis=0)  # [cells, G]
  by_class = np.tile(np.eye(classes), (groups, 1))  # [cells, C]
  nothing = np.zeros((cells, groups))
  above = np.concatenate(
    [
      np.concatenate([own, -by_group * mix.reshape(-1, 1), 0 * by_class], axis=1),
      np.concatenate([own, nothing, -by_class], axis=1),
      np.concatenate([-own, nothing, by_class], axis=1),
    ]
  )
  limits = np.concatenate([np.zeros(cells), np.full(cells, max_gap), np.zeros(cells)])
  scaled = weights / weights.max()
  solved = optimize.linprog(
    np.concatenate([np.zeros(cells), scaled, np.zeros(classes)]),
    A_ub=above,
    b_ub=limits,
    A_eq=np.concatenate([by_group.T, np.zeros((groups, groups + classes))], axis=1),
    b_eq=np.ones(groups),
    bounds=[(0.0, 1.0)] * cells + [(1.0, None)] * groups + [(0.0, 1.0)] * classes,
  )
  found = np.asarray(solved.x)
  return found[:cells].reshape(groups, classes), found[cells : cells + groups]


def offered(
  labels: np.ndarray, groups: np.ndarray, shares: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """The labels that a plan offers to the rule, and how many came to each cell afterwards.

  Of the people who come to a cell, number i (from 0) is taken if floor((i + 1) share) exceeds
  floor(i share): at even distances in their order, without a draw.

  Args:
    labels: [n] predicted class ids.
    groups: [n] group ids.
    shares: [G, C] from `planned_shares`.
    seen: [G, C] people who came to each cell before.

  Returns:
    [n] labels, `REFUSED` where the plan leaves a person out; [G, C] people so far.

  Fairness:
    Whether a person is offered depends on their group, the prediction and the number of earlier
    people alike. The rule behind it judges each offer by the answers given so far, and what it
    keeps, it keeps for any sequence of offers: no disparity is pushed to the margin by an answer
    once its groups have left their cold start. Leaving people out changes the sequence, not the
    rule, so the margin holds as without a plan, however wrong the plan is for those who come.
  """
  cell = groups * shares.shape[1] + labels
  order = np.argsort(cell, kind="stable")
  ranked = cell[order]
  first = np.searchsorted(ranked, ranked)  # where the cell begins
  place = np.empty(len(cell), np.int64)
  place[order] = np.arange(len(cell)) - first
  place += seen.reshape(-1)[cell]
  share = shares.reshape(-1)[cell]
  taken = np.floor((place + 1) * share) > np.floor(place * share)
  came = seen + np.bincount(cell, minlength=seen.size).reshape(seen.shape)
  return np.where(taken, labels, REFUSED), came
