import math

import mpmath
import numpy as np
import pytest
from scipy import special

from helpers import vote_references as reference
from jaxfair import checks
from jaxfair.accounting._pate_threshold import log_answer_probability, threshold_rdp


def test_probabilities_in_both_tails():
  counts = [[5000, 0], [4500, 500], [4000, 1000]]
  found = log_answer_probability(counts, threshold=4500, sigma=10.0)
  with mpmath.workdps(60):
    exact = [float(reference.log_tail(mpmath.mpf(x))) for x in (-50, 0, 50)]
  np.testing.assert_allclose(found, exact, rtol=1e-13)


def test_a_certain_answer_still_costs():
  # 50 sigmas above: a price computed from 1 - Pr[answer] would be zero.
  rdp = threshold_rdp([[5000, 0]], threshold=4500, sigma=10.0, orders=[256.0])
  assert rdp.not_for_release[0, 0] == pytest.approx(0.0937, abs=5e-5)


def test_agrees_with_sixty_digits():
  orders = [1.1, 2.0, 17.5, 64.0]
  top = np.arange(150, 251, 5)
  counts = np.stack([top, 250 - top], axis=1)
  rdp = threshold_rdp(counts, threshold=200, sigma=15.0, orders=orders)
  below = 0
  with mpmath.workdps(60):
    for i, largest in enumerate(top):
      x = abs(mpmath.mpf(int(largest) - 200)) / 15
      q = mpmath.erfc(x / mpmath.sqrt(2)) / 2
      for j, order in enumerate(orders):
        exact = reference.confident_rdp(q, 2 * 15**2, order)
        found = rdp.not_for_release[i, j]
        assert found == pytest.approx(float(exact), rel=1e-9)
        below += exact < order / 450
  assert below > 10


def test_bounds_the_divergence_from_every_neighbor():
  orders = np.array([1.5, 3.0, 10.0, 30.0])
  largest = np.arange(60, 121)
  counts = np.stack([largest, 120 - largest], axis=1)
  rdp = threshold_rdp(counts, threshold=90, sigma=4.0, orders=orders).not_for_release
  for i, top in enumerate(largest):
    mine = log_bits(top)
    for other in (top - 1, top + 1):
      for j, order in enumerate(orders):
        exact = reference.renyi(mine, log_bits(other), order)
        assert exact <= rdp[i, j] * (1 + 1e-12)


def log_bits(largest):
  x = (largest - 90) / 4.0
  return special.log_ndtr([x, -x])


def test_at_the_threshold_it_is_a_gaussian_of_sensitivity_one():
  rdp = threshold_rdp([[3, 1]], threshold=3, sigma=2.0, orders=[4.0])
  assert rdp.not_for_release.item() == pytest.approx(4 / (2 * 4), rel=1e-12)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"sigma": 0.0, "threshold": 5.0}, "above the 4 teachers.*use at most 4"),
    ({"sigma": 0.0}, "sigma=0.0 must be above 0"),
    ({"sigma": -2.0}, "sigma"),
    ({"threshold": math.nan}, "threshold"),
    ({"counts": [[3, 1.5]]}, "counts"),
  ],
)
def test_bad_arguments_are_named(change, told):
  given = {"counts": [[3, 1]], "threshold": 3.0, "sigma": 1.0, **change}
  counts = given.pop("counts")
  with pytest.raises(checks.ArgumentError, match=told):
    log_answer_probability(counts, **given)
  with pytest.raises(checks.ArgumentError, match=told):
    threshold_rdp(counts, orders=[2.0], **given)
