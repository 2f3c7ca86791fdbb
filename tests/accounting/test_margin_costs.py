import numpy as np
import pytest

from helpers import vote_references as reference
from jaxfair.accounting._margin_costs import (
  RUNGS_PER_VOTE,
  margin_ladder,
  margin_rungs,
  threshold_ladder,
)
from jaxfair.accounting._pate_gnmax import gnmax_rdp
from jaxfair.accounting._pate_threshold import threshold_rdp


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
  ("teachers", "classes", "sigma"),
  [(30, 2, 1.0), (12, 3, 0.7), (12, 3, 6.0), (8, 4, 2.0), (7, 5, 40.0)],
)
def test_one_vote_moves_the_rung_by_at_most_the_reach(teachers, classes, sigma, discrete):
  counts = reference.histograms(teachers, classes)
  ladder = margin_ladder(num_teachers=teachers, num_classes=classes, sigma=sigma, order=2.0)
  rungs = margin_rungs(counts, sigma=sigma, discrete=discrete)
  assert rungs.min() >= 0
  assert rungs.max() <= len(ladder.costs) - 1
  largest = 0
  for row, rung in zip(counts, rungs, strict=True):
    others = margin_rungs(np.array(reference.neighbors(row)), sigma=sigma, discrete=discrete)
    largest = max(largest, int(np.abs(others - rung).max()))
  # Two classes reach the bound; among more, one vote moves few of the gaps.
  least = 1.0 if classes == 2 else 0.5
  assert least * RUNGS_PER_VOTE <= largest <= ladder.reach


def test_two_classes_have_half_their_margin():
  counts = [[250, 0], [150, 100], [125, 125], [0, 250]]
  rungs = margin_rungs(np.array(counts), sigma=17.0)
  exact = RUNGS_PER_VOTE * (1 + np.array([125, 25, 0, 125]))
  assert np.all((rungs == exact) | (rungs == exact - 1))
  # Counted one vote shorter for discrete noise: half a vote of margin.
  shorter = margin_rungs(np.array(counts), sigma=17.0, discrete=True)
  assert np.all(np.abs(rungs - shorter - RUNGS_PER_VOTE // 2) <= 1)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("order", [1.5, 4.0, 40.0])
@pytest.mark.parametrize("classes", [2, 10])
def test_costs_are_bounds_and_close_to_those_of_the_votes(order, classes, discrete):
  teachers, sigma = 200, 20.0
  rng = np.random.default_rng(0)
  shares = rng.dirichlet(np.full(classes, 0.2), size=500)
  counts = rng.multinomial(teachers, shares)
  own = gnmax_rdp(counts, sigma=sigma, orders=[order], discrete=discrete)
  own = own.not_for_release[:, 0]
  ladder = margin_ladder(num_teachers=teachers, num_classes=classes, sigma=sigma, order=order)
  rungs = margin_rungs(counts, sigma=sigma, discrete=discrete)
  found = ladder.costs[rungs]
  # A rung is 1/32 of a vote, and q falls by e^(2 tau / sigma^2) per vote.
  # For discrete noise the ladder is up to half a vote on the safe side.
  votes = 2 / RUNGS_PER_VOTE + (0.5 if discrete else 0)
  step = np.exp(2 * (teachers / 2) / sigma**2 * votes)
  assert np.all(found >= own * (1 - 1e-9))
  assert np.all(found <= own * step * 1.05)
  assert np.all(np.diff(ladder.costs) <= 0)


def test_threshold_costs_are_those_of_the_test():
  ladder = threshold_ladder(num_teachers=50, threshold=30.0, sigma=4.0, order=8.0)
  top = np.arange(25, 51)
  counts = np.stack([top, 50 - top], axis=1)
  own = threshold_rdp(counts, threshold=30.0, sigma=4.0, orders=[8.0])
  assert np.array_equal(ladder.costs[top], own.not_for_release[:, 0])
  assert ladder.reach == 1
