import mpmath
import numpy as np
import pytest

from helpers import vote_references as reference
from jaxfair import checks
from jaxfair.accounting import PureDp, Relation
from jaxfair.accounting._bridge import rdp_curve
from jaxfair.accounting._pate_laplace import lnmax_log_q, lnmax_rdp
from jaxfair.accounting._rdp import DEFAULT_ORDERS

ORDERS = np.array([1.01, 2.0, 8.5, 32.0, 300.0])


def test_q_is_the_tail_of_a_difference_of_laplace_draws():
  # Two classes: the union bound is exact.
  rng = np.random.default_rng(0)
  draws = rng.laplace(scale=5.0, size=(10**6, 2))
  [log_q] = lnmax_log_q([[12, 4]], scale=5.0)
  # Five standard errors: a false alarm in 1.7 million.
  share = np.mean(draws[:, 1] - draws[:, 0] > 8)
  assert share == pytest.approx(np.exp(log_q), abs=5 * np.sqrt(0.25 / 10**6))


@pytest.mark.parametrize("scale", [0.2, 3.0, 20.0, 1e4])
def test_agrees_with_exact_arithmetic(scale):
  counts = [[250, 0, 0], [140, 60, 50], [84, 83, 83]]
  found = lnmax_rdp(counts, scale=scale, orders=ORDERS).not_for_release
  flat = lnmax_rdp(counts, scale=scale, orders=ORDERS, data_dependent=False)
  with mpmath.workdps(700):
    e = 2 / mpmath.mpf(scale)
    for i, row in enumerate(counts):
      gaps = [mpmath.mpf(row[0] - v) / scale for v in row[1:]]
      q = sum((2 + g) / (4 * mpmath.exp(g)) for g in gaps)
      q = min(q, mpmath.mpf(2) / 3)
      for j, order in enumerate(map(mpmath.mpf, ORDERS)):
        ratio = mpmath.exp(order * e) + mpmath.exp((1 - order) * e)
        worst = mpmath.log(ratio / (1 + mpmath.exp(e))) / (order - 1)
        assert flat[i, j] == pytest.approx(float(worst), rel=1e-9)
        if q * (1 + mpmath.exp(e)) < 1:
          usual = (1 - q) / (1 - mpmath.exp(e) * q)
          total = (1 - q) * usual ** (order - 1)
          total += q * mpmath.exp(e * (order - 1))
          worst = min(worst, mpmath.log(total) / (order - 1))
        assert found[i, j] == pytest.approx(float(worst), rel=1e-8)
  assert np.all(found <= flat)


def test_without_looking_it_is_any_pure_mechanism():
  orders = tuple(a for a in DEFAULT_ORDERS if a >= 2)
  [mine] = lnmax_rdp([[3, 1]], scale=4.0, orders=orders, data_dependent=False)
  theirs = rdp_curve(PureDp(0.5), orders, Relation.REPLACE_ONE)
  np.testing.assert_allclose(mine, theirs, rtol=1e-6)
  assert np.all(mine <= 0.5)


def test_bounds_the_divergence_from_every_neighbor():
  scale, orders = 3.0, np.array([1.5, 4.0, 20.0])
  counts = reference.histograms(30, 2)
  rdp = lnmax_rdp(counts, scale=scale, orders=orders).not_for_release
  for row, bounds in zip(counts, rdp, strict=True):
    for other in reference.neighbors(row):
      pair = log_labels(row, scale), log_labels(other, scale)
      for order, bound in zip(orders, bounds, strict=True):
        assert reference.renyi(*pair, order) <= bound * (1 + 1e-12)


def log_labels(row, scale):
  gap = abs(row[0] - row[1]) / scale
  rare = (2 + gap) / 4 * np.exp(-gap)
  logs = np.array([np.log1p(-rare), np.log(rare)])
  return logs if row[0] >= row[1] else logs[::-1]


def test_bad_arguments_are_named():
  with pytest.raises(checks.ArgumentError, match=r"scale=0\.0"):
    lnmax_rdp([[3, 1]], scale=0.0, orders=[2.0])
