import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from helpers import vote_references as reference
from jaxfair import checks
from jaxfair.accounting._pate_gnmax import _log_q, gnmax_rdp
from jaxfair.accounting._rdp import DEFAULT_ORDERS

ORDERS = np.array([1.01, 1.5, 2.0, 4.3, 16.0, 32.0, 100.0, 1000.0])


def sample(seed, teachers, classes, rows):
  rng = np.random.default_rng(seed)
  shares = rng.dirichlet(np.full(classes, 0.2), size=rows)
  return rng.multinomial(teachers, shares)


@pytest.mark.parametrize(
  ("teachers", "classes", "sigma"),
  [(250, 10, 40.0), (5000, 10, 200.0), (30, 2, 3.0), (1000, 100, 4.0)],
)
def test_agrees_with_sixty_digits(teachers, classes, sigma):
  counts = sample(0, teachers, classes, 12)
  counts[0] = 0
  counts[0, 3 % classes] = teachers  # unanimous, all other classes empty
  counts[1] = teachers // classes  # a tie of all, or nearly
  counts[1, 0] += teachers - counts[1].sum()
  log_q = _log_q(counts, sigma, False)
  rdp = gnmax_rdp(counts, sigma=sigma, orders=ORDERS).not_for_release
  below = 0
  with mpmath.workdps(60):
    for i, row in enumerate(counts):
      q = reference.gnmax_q(row, sigma)
      assert log_q[i] == pytest.approx(float(mpmath.log(q)), rel=1e-12)
      for j, order in enumerate(ORDERS):
        exact = reference.confident_rdp(q, sigma**2, order)
        assert rdp[i, j] == pytest.approx(float(exact), rel=1e-9)
        below += exact < order / sigma**2
  assert below > 10  # the votes' own bound was in play


def test_tails_far_beyond_underflow():
  # ln q = ln Pr[N(0,1) >= 200 / sqrt 2] is about -10^4.
  [log_q] = _log_q(np.array([[200, 0]]), 1.0, False)
  with mpmath.workdps(60):
    exact = mpmath.log(mpmath.erfc(mpmath.mpf(100)) / 2)
    assert log_q == pytest.approx(float(exact), rel=1e-13)
    q = mpmath.exp(exact)
    order = 60.0  # where the rare outcome is what costs
    bound = float(reference.confident_rdp(q, 1.0, order))
  assert -1.01e4 < log_q < -1e4
  [[found]] = gnmax_rdp([[200, 0]], sigma=1.0, orders=[order]).not_for_release
  # 1e-8 of the divergence; its exponent is a difference of terms of 10^4.
  assert found == pytest.approx(bound, rel=1e-8)
  assert 0 < found < order


@pytest.mark.parametrize("classes", [2, 3, 1000])
def test_any_number_of_classes(classes):
  counts = np.zeros((3, classes), np.int32)
  counts[0, -1] = 2000
  counts[1] = 2000 // classes
  counts[1, 0] += 2000 - counts[1].sum()
  counts[2, :2] = 1000
  log_q = _log_q(counts, 50.0, False)
  assert log_q[0] == pytest.approx(
    math.log(classes - 1) + special.log_ndtr(-2000 / (50 * math.sqrt(2)))
  )
  # NumPy's log1p and the C library's differ in the last digit on some CPUs.
  assert np.all(log_q <= np.nextafter(math.log1p(-1 / classes), 0.0))
  rdp = gnmax_rdp(counts, sigma=50.0, orders=DEFAULT_ORDERS)
  assert rdp.shape == (3, len(DEFAULT_ORDERS))
  assert np.all(np.isfinite(rdp))
  flat = np.array(DEFAULT_ORDERS) / 2500
  assert np.array_equal(rdp.not_for_release[2], flat)  # a tie gains nothing
  assert np.all(rdp.not_for_release[0, :100] < 1e-6 * flat[:100])


@given(st.integers(1, 400), st.integers(2, 12), st.floats(0.05, 300.0), st.integers(0, 10**6))
def test_never_above_what_holds_for_all_votes(teachers, classes, sigma, seed):
  counts = sample(seed, teachers, classes, 5)
  rdp = gnmax_rdp(counts, sigma=sigma, orders=DEFAULT_ORDERS).not_for_release
  assert np.all(rdp <= np.array(DEFAULT_ORDERS) / sigma**2)
  assert np.all(rdp >= 0)


def test_bounds_the_divergence_from_every_neighbor():
  teachers, sigma = 40, 4.0
  orders = np.array([1.5, 2.0, 5.0, 10.0, 20.0])
  counts = reference.histograms(teachers, 2)
  rdp = gnmax_rdp(counts, sigma=sigma, orders=orders).not_for_release
  gained = 0
  for row, bounds in zip(counts, rdp, strict=True):
    mine = log_label_probabilities(row, sigma)
    for other in reference.neighbors(row):
      theirs = log_label_probabilities(other, sigma)
      for order, bound in zip(orders, bounds, strict=True):
        assert reference.renyi(mine, theirs, order) <= bound * (1 + 1e-12)
        gained += bound < 0.5 * order / sigma**2
  assert gained > 100


def log_label_probabilities(row, sigma):
  margin = (row[0] - row[1]) / (math.sqrt(2) * sigma)
  return special.log_ndtr([margin, -margin])


def test_order_and_grouping_of_queries_do_not_matter():
  counts = sample(1, 250, 10, 3000)
  whole = gnmax_rdp(counts, sigma=30.0, orders=ORDERS).not_for_release
  pick = np.random.default_rng(0).permutation(3000)[:50]
  for i in pick:
    one = gnmax_rdp(counts[i : i + 1], sigma=30.0, orders=ORDERS)
    np.testing.assert_allclose(whole[i], one.not_for_release[0], rtol=1e-13)


def test_no_queries_cost_nothing():
  rdp = gnmax_rdp(np.zeros((0, 10), int), sigma=1.0, orders=ORDERS)
  assert rdp.shape == (0, ORDERS.size)
  assert np.all(rdp.sum(axis=0) == 0)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"counts": [[1.5, 0.5]]}, r"counts\[0, 0\] is not a whole number"),
    ({"counts": [[3.0, 0], [math.nan, 3]]}, r"counts\[1, 0\]"),
    ({"counts": [[3, -1]]}, r"counts\[0, 1\] is negative"),
    ({"counts": [[3, 1], [2, 1]]}, "rows of 3 to 4 votes"),
    ({"counts": [[0, 0]]}, "at least one teacher"),
    ({"counts": [3, 1]}, "shape"),
    ({"counts": [[3], [3]]}, "two classes"),
    ({"counts": [["a", "b"]]}, "count the votes"),
    ({"sigma": 0.0}, "sigma=0.0 must be above 0"),
    ({"sigma": -1.0}, "sigma=-1.0 must be above 0"),
    ({"sigma": [1.0, 2.0]}, "sigma must be one number"),
    ({"orders": [1.0, 2.0]}, "orders=1.0 must be above 1"),
    ({"orders": 2.0}, "orders"),
  ],
)
def test_bad_arguments_are_named(change, told):
  given_ = {"counts": [[3, 1]], "sigma": 1.0, "orders": [2.0], **change}
  with pytest.raises(checks.ArgumentError, match=told):
    gnmax_rdp(given_.pop("counts"), **given_)
