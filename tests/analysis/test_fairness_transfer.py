"""The transfer bounds: against simulation, and against measured violations."""

import numpy as np
import pytest
from scipy import stats

from jaxfair import analysis, checks, fairness
from jaxfair.analysis import _fairness_transfer as ft


def test_answers_have_the_probabilities_of_noisy_maxima():
  counts = np.array([[60, 40], [50, 50], [100, 0]])
  found = ft.answer_probabilities(counts, sigma=10.0)
  wanted = stats.norm.cdf(20 / (np.sqrt(2) * 10))
  np.testing.assert_allclose(found[0], [wanted, 1 - wanted], atol=1e-12)
  np.testing.assert_allclose(found[1], [0.5, 0.5], atol=1e-12)
  three = np.array([[30, 25, 45]])
  rng = np.random.default_rng(0)
  drawn = np.argmax(three + rng.normal(0, 10, (200_000, 3)), axis=1)
  share = np.bincount(drawn, minlength=3) / drawn.size
  found = ft.answer_probabilities(three, sigma=10.0)[0]
  np.testing.assert_allclose(found, share, atol=6 * 0.5 / np.sqrt(drawn.size))
  flips = analysis.flip_probability(three, sigma=10.0)
  np.testing.assert_allclose(1 - found[2], flips[0], rtol=1e-9)


def test_eta_is_the_distance_of_votes_from_shares():
  counts = np.array([[60, 40], [100, 0]])
  worst, mean = ft.vote_eta(counts, sigma=10.0)
  first = stats.norm.cdf(2 / np.sqrt(2)) - 0.6
  second = 1 - stats.norm.cdf(10 / np.sqrt(2))
  assert worst == pytest.approx(max(first, second))
  np.testing.assert_allclose(mean, (first + second) / 2)


def mismatch(group, voted, num_groups):
  """The share of people for whom exactly one of A = a and a~ = a holds: the realized eta."""
  ids = np.arange(num_groups)[:, None]
  return np.mean((group == ids) != (voted == ids), axis=1)


def people(seed, num_groups=3, n=500, wrong=0.15):
  rng = np.random.default_rng(seed)
  group = rng.choice(num_groups, n, p=[0.5, 0.3, 0.2])
  voted = np.where(rng.random(n) < wrong, rng.integers(0, num_groups, n), group)
  scores = rng.normal(size=(n, 2)).astype(np.float32)
  scores[:, 1] += rng.normal(size=num_groups)[group]
  return group, voted, scores


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_violation_exceeds_the_student_s_bound(seed):
  group, voted, scores = people(seed, wrong=0.02 * seed)
  notion = fairness.constraints.demographic_parity(3)
  y = np.zeros(len(group), np.int32)
  alpha = float(notion.largest(scores, y, voted.astype(np.int32)))
  truth = float(notion.largest(scores, y, group.astype(np.int32)))
  eta = mismatch(group, voted, 3)
  shares = np.bincount(voted, minlength=3) / len(voted)
  bound = ft.fair_student_bound(alpha, eta=eta, shares=shares)
  assert truth <= bound + 1e-6


def test_the_student_s_bound_is_needed():
  # Half of a small group is voted into the large one, and is all that differs.
  group = np.repeat([0, 1], [900, 100])
  voted = np.where(np.arange(1000) < 950, 0, 1)
  chosen = (np.arange(1000) >= 900) & (np.arange(1000) < 950)
  apart = chosen[group == 1].mean() - chosen.mean()
  alpha = abs(chosen[voted == 1].mean() - chosen.mean())
  eta = mismatch(group, voted, 2)
  bound = ft.fair_student_bound(alpha, eta=eta, shares=[0.95, 0.05])
  assert apart > alpha + 0.3
  assert apart <= bound


def test_the_student_s_bound_by_hand():
  shares = np.array([0.8, 0.2])
  found = ft.fair_student_bound(0.01, eta=0.05, shares=shares)
  assert found == pytest.approx(0.01 + 2 * 0.05 / 0.2)
  assert ft.fair_student_bound(0.0, eta=0.3, shares=[1.0, 0.0]) == np.inf
  assert ft.fair_student_bound(0.02, eta=0.0, shares=shares) == 0.02


def test_what_makes_no_sense_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"eta=1\.5"):
    ft.fair_student_bound(0.1, eta=1.5, shares=[0.5, 0.5])
  with pytest.raises(checks.ArgumentError, match="sigma=0"):
    ft.answer_probabilities(np.array([[3, 2]]), sigma=0.0)
