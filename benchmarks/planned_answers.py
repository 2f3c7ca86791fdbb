"""Which answers to offer to the counter rule, planned on public people.

The rule alone answers whoever comes first. Where groups differ in their classes, that fills both
groups alike, although it may pay to answer one group wholly and to thin out the other. Shares by
group and predicted class that answer most people within the margin follow from predictions for
public people, whose groups are known: post-processing of a released model, hence free. The rule
behind it keeps the margin for the people who really come.
"""

import numpy as np
from scipy import optimize

from jaxfair.fairness._counter import REFUSED

RATIOS = np.geomspace(0.2, 5.0, 41)  # answers to the second group, over those to the first


def shares(counts: np.ndarray, max_gap: float) -> np.ndarray:
  """[2, C] the share of each cell to answer, such that most are answered within the margin.

  maximize sum m,  0 <= m(z, k) <= counts(z, k),  |m(0, k) / M_0 - m(1, k) / M_1| <= max_gap

  A linear program for each ratio M_1 / M_0.

  Args:
    counts: [2, C] public people by group and predicted class.
    max_gap: margin of the plan.
  """
  groups, classes = counts.shape
  if groups != 2:
    raise ValueError(f"counts has {groups} rows; plans are for two groups")
  smoothed = counts + 0.5  # a cell that nobody is in may still be asked for
  bounds = [(0.0, float(most)) for most in smoothed.reshape(-1)]
  one, other = np.eye(2 * classes)[:classes], np.eye(2 * classes)[classes:]
  first, second = one.sum(axis=0), other.sum(axis=0)  # M_0 and M_1

  def solved(ratio: float) -> np.ndarray:
    apart = ratio * one - other - max_gap * ratio * first
    reverse = other - ratio * one - max_gap * ratio * first
    found = optimize.linprog(
      -np.ones(2 * classes),
      A_ub=np.concatenate([apart, reverse]),
      b_ub=np.zeros(2 * classes),
      A_eq=(second - ratio * first)[None],
      b_eq=[0.0],
      bounds=bounds,
    )
    return np.asarray(found.x)

  best = max((solved(ratio) for ratio in RATIOS), key=np.sum)
  return np.asarray(best.reshape(2, classes) / smoothed)


def offered(answers: np.ndarray, groups: np.ndarray, planned: np.ndarray) -> np.ndarray:
  """[n] the answers, `REFUSED` where the plan leaves a person out.

  People of a cell are taken at even distances in their order, without a draw.
  """
  place = np.zeros(len(answers))
  for cell in np.ndindex(planned.shape):
    own = (groups == cell[0]) & (answers == cell[1])
    place[own] = np.arange(own.sum())
  share = planned[groups, answers]
  taken = np.floor((place + 1) * share) > np.floor(place * share)
  return np.where(taken, answers, REFUSED)
