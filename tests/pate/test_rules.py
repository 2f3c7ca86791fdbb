"""Rules of release: their events, and their exact draws."""

import math

import numpy as np
import pytest

from jaxfair import checks, pate
from jaxfair.pate import _rules
from jaxfair.privacy.exact import seeded

DRAWS = 40_000
DEVIATIONS = 6.0


def rdp(event, order=7.0):
  return event.rho * order


def test_charges_are_those_of_the_sensitivities():
  # A vote that moves changes two counts by one, and the largest by one.
  assert rdp(pate.GnMax(5.0).answer) == pytest.approx(7 / 25, rel=1e-12)
  assert rdp(_rules.NoisyVotes(5.0).answer) == pytest.approx(7 / 25, rel=1e-12)
  confident = pate.ConfidentGnMax(30, 10.0, 4.0)
  assert rdp(confident.test) == pytest.approx(7 / 200, rel=1e-12)
  assert rdp(confident.answer) == pytest.approx(7 / 16, rel=1e-12)
  assert pate.LaplaceMax(20.0).answer.epsilon == pytest.approx(0.1, rel=1e-12)
  assert pate.LaplaceMax(20.0).answer.epsilon >= 0.1
  assert pate.GnMax(5.0).test is None


def test_ties_are_broken_fairly():
  values = np.tile([4, 9, 9, 2, 9], (DRAWS, 1))
  found = np.bincount(_rules.fair_argmax(values, seeded(0)), minlength=5) / DRAWS
  expected = np.array([0, 1, 1, 0, 1]) / 3
  margin = DEVIATIONS * math.sqrt(2 / 9 / DRAWS)
  assert np.abs(found - expected).max() < margin
  assert found[0] == found[3] == 0


def test_without_ties_no_bit_is_drawn():
  def refuse(count):
    raise AssertionError("nothing is tied")

  found = _rules.fair_argmax(np.array([[1, 5, 2], [7, 0, 3]]), refuse)
  np.testing.assert_array_equal(found, [1, 0])


@pytest.mark.parametrize("rule", [pate.GnMax(2.0), pate.LaplaceMax(2.5)])
def test_frequencies_are_exact(rule):
  """Two classes: the difference of two draws decides, a tie by a coin."""
  counts = np.tile([6, 4], (DRAWS, 1))
  grid = np.arange(-100, 101)
  weight = np.exp(-(grid**2) / 8.0) if rule.name == "gnmax" else np.exp(-np.abs(grid) / 2.5)
  weight /= weight.sum()
  both = np.convolve(weight, weight)  # of the difference; both are symmetric
  difference = np.arange(-200, 201) + 2
  expected = both[difference > 0].sum() + both[difference == 0].sum() / 2
  found = np.mean(rule.answers(counts, seeded(1)) == 0)
  margin = DEVIATIONS * math.sqrt(expected * (1 - expected) / DRAWS)
  assert abs(found - expected) < margin


@pytest.mark.parametrize("votes", [9, 14])
def test_the_test_has_its_frequency(votes):
  """Below the threshold some pass, and above it some fail."""
  rule = pate.ConfidentGnMax(11.5, 3.0, 1.0)
  counts = np.tile([votes, 3], (DRAWS, 1))
  grid = np.arange(-60, 61)
  weight = np.exp(-(grid**2) / 18.0)
  expected = weight[grid + votes >= 11.5].sum() / weight.sum()
  found = rule.passes(counts, seeded(2)).mean()
  margin = DEVIATIONS * math.sqrt(expected * (1 - expected) / DRAWS)
  assert abs(found - expected) < margin


def test_noisy_votes_are_counts_with_noise():
  counts = np.tile([60, 0, 0], (20_000, 1))
  noise = _rules.NoisyVotes(3.0).answers(counts, seeded(3)) - counts
  assert noise.dtype == np.int64
  assert abs(noise.mean()) < DEVIATIONS * 3 / math.sqrt(60_000)
  assert abs(noise.var() / 9 - 1) < DEVIATIONS * math.sqrt(2 / 60_000)


@pytest.mark.parametrize(
  ("make", "told"),
  [
    (lambda: pate.GnMax(0.0), "sigma=0.0 must be above 0"),
    (lambda: _rules.NoisyVotes(-1), "sigma=-1 must be above 0"),
    (lambda: pate.LaplaceMax(math.inf), "scale=inf must be above 0"),
    (lambda: pate.ConfidentGnMax(3, 0.0, 1.0), "sigma_threshold=0.0 must"),
    (lambda: pate.ConfidentGnMax(math.nan, 1.0, 1.0), "threshold=nan must"),
  ],
)
def test_rules_without_noise_are_refused(make, told):
  with pytest.raises(checks.ArgumentError, match=told):
    make()
