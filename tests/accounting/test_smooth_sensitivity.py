"""Brute force over every histogram of a few teachers, and its neighbors."""

import numpy as np
import pytest

from helpers import vote_references as reference
from jaxfair.accounting import _margin_costs
from jaxfair.accounting import _smooth_sensitivity as smooth

BETA = 0.3


def margin_case(teachers, classes, sigma, order):
  counts = reference.histograms(teachers, classes)
  ladder = _margin_costs.margin_ladder(
    num_teachers=teachers, num_classes=classes, sigma=sigma, order=order
  )
  return counts, ladder, _margin_costs.margin_rungs(counts, sigma=sigma)


def threshold_case(teachers, classes, sigma, order):
  counts = reference.histograms(teachers, classes)
  ladder = _margin_costs.threshold_ladder(
    num_teachers=teachers, threshold=0.7 * teachers, sigma=sigma, order=order
  )
  return counts, ladder, counts.max(axis=1)


CASES = [
  (margin_case, 24, 2, 2.0, 3.0),
  (margin_case, 24, 2, 2.0, 12.0),
  (margin_case, 10, 3, 0.8, 4.0),
  (margin_case, 7, 4, 0.5, 2.0),
  (threshold_case, 24, 2, 1.5, 6.0),
  (threshold_case, 10, 3, 0.8, 2.0),
]


def part_of(ladder, rungs, most=np.inf):
  """Queries on these rungs, of which so many count."""
  occupied, counts = np.unique(rungs, return_counts=True)
  return smooth.Part(ladder, occupied, counts.astype(float), most)


def log_smooth(ladder, rungs, most=np.inf, beta=BETA):
  """ln S of queries on these rungs, through the code under test."""
  part = part_of(ladder, rungs, most)
  totals, distances = smooth.totals_by_distance([part])
  return smooth.log_smooth_sensitivity(totals, distances, beta=beta)


def index_of(counts):
  return {tuple(row): i for i, row in enumerate(counts)}


@pytest.mark.parametrize("case", CASES)
def test_local_sensitivity_at_every_distance(case):
  counts, ladder, rungs = case[0](*case[1:])
  costs = ladder.costs[rungs]
  assert np.ptp(costs) > 0  # the votes matter
  ids = index_of(counts)
  near = [[ids[tuple(o)] for o in reference.neighbors(r)] for r in counts]
  exact = np.array([max(abs(costs[i] - costs[j]) for j in near[i]) for i in range(len(counts))])
  distances = np.arange(6)
  for d in distances:
    for i, rung in enumerate(rungs):
      part = smooth.Part(ladder, np.array([rung]), np.ones(1))
      bound = smooth.sensitivity_at_distance(part, distances[d : d + 1])
      assert exact[i] <= bound[0] * (1 + 1e-12)
    # The largest over everything within one more vote.
    exact = np.array([max(exact[i], *(exact[j] for j in near[i])) for i in range(len(counts))])


@pytest.mark.parametrize("case", CASES)
def test_neighbors_differ_by_a_factor_of_at_most_e_to_beta(case):
  counts, ladder, rungs = case[0](*case[1:])
  ids = index_of(counts)
  logs = np.array([log_smooth(ladder, rungs[i : i + 1]) for i in range(len(rungs))])
  assert np.ptp(logs) > 0.5 * BETA
  for row, mine in zip(counts, logs, strict=True):
    for other in reference.neighbors(row):
      assert abs(mine - logs[ids[tuple(other)]]) <= BETA + 1e-12


@pytest.mark.parametrize("most", [np.inf, 7, 1])
def test_many_queries_moved_by_one_teacher(most):
  rng = np.random.default_rng(0)
  teachers, classes, queries, sigma, order = 15, 3, 40, 1.2, 4.0
  cost, log_scale = [], []
  ladder = _margin_costs.margin_ladder(
    num_teachers=teachers, num_classes=classes, sigma=sigma, order=order
  )
  for _ in range(150):
    lean = rng.integers(classes, size=queries)
    votes = np.where(
      rng.random((teachers, queries)) < 0.8, lean, rng.integers(classes, size=(teachers, queries))
    )
    pair = []
    for changed in (False, True):
      if changed:
        votes[0] = rng.integers(classes, size=queries)
      counts = np.stack([np.bincount(column, minlength=classes) for column in votes.T])
      rungs = _margin_costs.margin_rungs(counts, sigma=sigma)
      total = part_of(ladder, rungs, most).cost
      largest = np.sort(ladder.costs[rungs])[-int(min(most, queries)) :]
      assert total == pytest.approx(largest.sum(), rel=1e-12)
      pair.append((total, log_smooth(ladder, rungs, most)))
    (one, mine), (two, theirs) = pair
    assert abs(mine - theirs) <= BETA + 1e-12
    assert abs(one - two) <= np.exp(min(mine, theirs)) * (1 + 1e-12)
    cost.append(one)
    log_scale.append(mine)
  assert np.std(cost) > 0
  assert np.std(log_scale) > 0


def test_window_maxima_are_those_of_a_loop():
  rng = np.random.default_rng(1)
  ladder = _margin_costs.Ladder(rng.random(57), 3)
  local = smooth.local_sensitivity(ladder)
  for j in range(57):
    near = ladder.costs[max(0, j - 3) : j + 4]
    assert local[j] == np.abs(near - ladder.costs[j]).max()
  rungs = np.array([0, 5, 31, 56])
  weights = np.array([1.0, 2.0, 0.5, 4.0])
  distances = np.arange(25)
  found = smooth.sensitivity_at_distance(smooth.Part(ladder, rungs, weights), distances)
  for d, total in zip(distances, found, strict=True):
    by_hand = sum(
      w * local[max(0, j - 3 * d) : j + 3 * d + 1].max()
      for j, w in zip(rungs, weights, strict=True)
    )
    assert total == pytest.approx(by_hand, rel=1e-14)


def test_a_cost_that_no_vote_moves_is_public():
  # Few teachers and much noise: the votes' own bound never applies.
  _, ladder, rungs = margin_case(9, 3, 50.0, 4.0)
  assert log_smooth(ladder, rungs) == -np.inf
  assert np.ptp(ladder.costs) == 0
