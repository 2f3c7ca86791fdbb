"""Which predictions to offer to the counter rule, planned on public people.

The rule alone answers whoever comes first. Where groups differ in their classes, it fills all
groups alike until nearly every answer would raise some disparity. It goes further if all groups'
answers aim at common shares of the classes from the first answer on. Shares that let most people be
answered follow from predictions for public people whose groups are known.
"""

import numpy as np

from jaxfair import checks
from jaxfair.fairness._counter import REFUSED
from jaxfair.types import ArrayLike

UNSEEN = 0.5  # a cell that no public person is in may still be asked for
LITTLE = 1e-3  # weight of groups that a search does not begin with
MOST_STEPS = 50


def planned_targets(counts: ArrayLike) -> np.ndarray:
  """[C] common shares of the classes with which most people can be answered.

  maximize sum_z M_z(q),  M_z(q) = min_k n(z, k) / q_k,  sum_k q_k = 1

  M_z people of group z can be answered with shares q: the scarcest class decides. For a given q the
  groups do not depend on each other. With s(z, k) = n(z, k) / n_z and c_z = n_z / M_z,

  q_k <= c_z s(z, k),  sum_k q_k = 1

  is a polyhedron on which sum_z n_z / c_z is convex, so its maximum is at a corner. Replacing it by
  its tangent gives a linear program whose solution is no worse than where the tangent was taken;
  steps are repeated until nothing is gained, from all groups alike and from each of them first.
  The best of these corners is returned. It is the best of all in the cases that the tests
  enumerate; in general it is a local maximum.

  Args:
    counts: [G, C] public people by group and predicted class.

  Privacy:
    Reads groups of public people and predictions of a model that is released anyway: computed
    from a release and public data, so it is post-processing and costs nothing.
  """
  checks.require(
    np.ndim(counts) == 2, f"counts has shape {np.shape(counts)}; pass [groups, classes]"
  )
  checks.non_negative("counts", counts)
  seen = np.asarray(counts, np.float64) + UNSEEN
  sizes = seen.sum(axis=1)
  mix = seen / sizes[:, None]
  sizes /= sizes.sum()
  alike, each = np.ones((1, len(sizes))), np.eye(len(sizes))
  starts = np.concatenate([alike, each + LITTLE, 3 * each + 1])
  found = [_climbed(mix, sizes, start) for start in starts]
  return max(found, key=lambda targets: _answered(mix, sizes, targets))


def _answered(mix: np.ndarray, sizes: np.ndarray, targets: np.ndarray) -> float:
  """The share of all people that can be answered."""
  return float((sizes / np.max(targets / mix, axis=1)).sum())


def _climbed(mix: np.ndarray, sizes: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """q of a corner that no tangent improves."""
  targets = _corner(mix, weights)
  for _ in range(MOST_STEPS):
    slowness = np.max(targets / mix, axis=1)  # c
    better = _corner(mix, sizes / slowness**2)
    if _answered(mix, sizes, better) <= _answered(mix, sizes, targets) + 1e-9:
      break
    targets = better
  return targets


def _corner(mix: np.ndarray, weights: np.ndarray) -> np.ndarray:
  """q [C] that minimizes sum_z weights_z c_z."""
  from scipy import optimize

  groups, classes = mix.shape
  shares = np.tile(np.eye(classes), (groups, 1))
  bounds = -np.repeat(np.eye(groups), classes, axis=0) * mix.reshape(-1, 1)
  solved = optimize.linprog(
    np.concatenate([np.zeros(classes), weights / weights.max()]),
    A_ub=np.concatenate([shares, bounds], axis=1),
    b_ub=np.zeros(groups * classes),
    A_eq=np.concatenate([np.ones((1, classes)), np.zeros((1, groups))], axis=1),
    b_eq=np.ones(1),
    bounds=[(0.0, 1.0)] * classes + [(1.0, None)] * groups,
  )
  targets = np.clip(solved.x[:classes], 0.0, 1.0)
  return np.asarray(targets / targets.sum())


def offer(
  labels: np.ndarray, groups: np.ndarray, targets: np.ndarray, max_gap: float, offered: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """The labels that a plan offers to the rule, and the offers afterwards.

  A person of group z with label k is left out if o(z, k) > (q_k + max_gap) (o(z) + 1), where o are
  the offers so far: if the group's share of that class is beyond the common one by the margin.
  Some class of each group is always open, since its offers sum to o(z) and the bounds to more.

  Args:
    labels: [n] predicted class ids.
    groups: [n] group ids.
    targets: [C] from `planned_targets`.
    max_gap: margin of the rule.
    offered: [G, C] offers so far.

  Returns:
    [n] labels, `REFUSED` where the plan leaves a person out; [G, C] offers so far.

  Fairness:
    Whether a person is offered depends on their group, the prediction and earlier offers. The rule
    behind it judges each offer by the answers given so far, and what it keeps, it keeps for any
    sequence of offers: no answer pushes a disparity to the margin once its groups have left their
    cold start. Leaving people out changes the sequence and not the rule, so the margin holds as
    without a plan, however little the plan suits those who come.
  """
  table, totals = offered.tolist(), offered.sum(axis=1).tolist()
  most = (targets + max_gap).tolist()
  shown = np.full(len(labels), REFUSED, np.int32)
  for i, (k, z) in enumerate(zip(labels.tolist(), groups.tolist(), strict=True)):
    if table[z][k] <= most[k] * (totals[z] + 1):
      table[z][k] += 1
      totals[z] += 1
      shown[i] = k
  return shown, np.array(table, np.int64)
