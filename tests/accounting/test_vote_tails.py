"""Discrete noise, against sums over its whole mass."""

import itertools
import math

import jax
import mpmath
import numpy as np
import pytest
from scipy import special

from helpers import vote_references as reference
from jaxfair import checks
from jaxfair.accounting import _vote_tails, pate_diagnosis, plan_sanitizing, sanitized_epsilon
from jaxfair.accounting._pate_gnmax import _log_q, gnmax_rdp
from jaxfair.accounting._pate_threshold import log_answer_probability, threshold_rdp
from jaxfair.accounting._sanitizing_plan import SanitizingPlan


def masses(sigma, last=400):
  """The discrete Gaussian as {x: mass}, in 60 digits."""
  x = range(-last, last + 1)
  width = 2 * mpmath.mpf(sigma) ** 2
  raw = [mpmath.exp(-mpmath.mpf(v * v) / width) for v in x]
  total = sum(raw)
  return dict(zip(x, [v / total for v in raw], strict=True))


@pytest.mark.parametrize("sigma", [0.5, 1.3, 6.0])
def test_tails_of_a_difference_and_of_one(sigma):
  most = 60
  rival = _vote_tails.log_rival_tails(most, sigma=sigma, discrete=True)
  with mpmath.workdps(60):
    mass = masses(sigma)
    sums = [*itertools.accumulate(reversed(mass.values()))]
    tail = dict(zip(mass, reversed(sums), strict=True))
    for gap in (0, 1, 2, 17, most):
      total = sum(p * tail.get(x + gap, 0) for x, p in mass.items())
      assert rival[gap] == pytest.approx(float(mpmath.log(total)), rel=1e-12)
    short = np.array([-most, -3, 0, 1, 2, 30])
    reach = _vote_tails.log_reach(short, sigma=sigma)
    for j, found in zip(short, reach, strict=True):
      exact = float(mpmath.log(tail[int(j)]))
      assert found == pytest.approx(exact, rel=1e-12, abs=1e-50)


def labels(row, sigma, last=300):
  """ln Pr[label] of two classes; a tie goes to the first."""
  x = np.arange(-last, last + 1)
  mass = np.exp(-(x**2) / (2 * sigma**2))
  mass /= mass.sum()
  # Pr[second's noise - first's noise > row[0] - row[1]]
  rest = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
  above = np.clip(x + (row[0] - row[1]) + 1 + last, 0, rest.size - 1)
  second = np.sum(mass * rest[above])
  below = np.cumsum(mass)
  under = np.clip(x + (row[0] - row[1]) + last, 0, below.size - 1)
  first = np.sum(mass * below[under])
  return np.log([first, second])


def test_bounds_the_divergence_from_every_neighbor():
  sigma, orders = 3.0, np.array([1.5, 3.0, 10.0])
  counts = reference.histograms(30, 2)
  rdp = gnmax_rdp(counts, sigma=sigma, orders=orders, discrete=True)
  log_q = _log_q(counts, sigma, True)
  heavier = 0
  for row, bounds, q in zip(counts, rdp.not_for_release, log_q, strict=True):
    mine = labels(row, sigma)
    wrong = mine[1 - np.argmax(row)]
    assert wrong <= q + 1e-9
    continuous = special.log_ndtr(-abs(row[0] - row[1]) / (3 * math.sqrt(2)))
    heavier += wrong > continuous
    for other in reference.neighbors(row):
      for order, bound in zip(orders, bounds, strict=True):
        exact = reference.renyi(mine, labels(other, sigma), order)
        assert exact <= bound * (1 + 1e-9)
  # The bound for continuous noise would not have held.
  assert heavier > 10


def test_the_test_with_discrete_noise():
  counts = np.array([[80, 20], [60, 40], [59, 41], [50, 50]])
  given = {"threshold": 59.5, "sigma": 4.0, "discrete": True}
  found = log_answer_probability(counts, **given)
  short = np.array([-20, 0, 1, 10])  # votes to the next whole number, 60
  np.testing.assert_array_equal(found, _vote_tails.log_reach(short, sigma=4.0))
  orders = [2.0, 8.0]
  rdp = threshold_rdp(counts, orders=orders, **given).not_for_release
  for i, top in enumerate(counts[:, 0]):
    mine = bits(top)
    for other in (top - 1, top + 1):
      for j, order in enumerate(orders):
        exact = reference.renyi(mine, bits(other), order)
        assert exact <= rdp[i, j] * (1 + 1e-9)


def bits(largest):
  short = np.array([60 - largest, largest - 60 + 1])
  return _vote_tails.log_reach(short, sigma=4.0)


def test_diagnosis_and_sanitized_figure_cost_a_little_more():
  counts = np.random.default_rng(0).multinomial(100, [0.9, 0.05, 0.05], 500)
  test = {"threshold": 70.0, "sigma_threshold": 20.0}
  plan = plan_sanitizing(
    num_queries=500, num_teachers=100, num_classes=3, sigma=8.0, delta=1e-6, **test
  )
  own, shown = [], []
  for discrete in (False, True):
    given = {"sigma": 8.0, "delta": 1e-6, "discrete": discrete, **test}
    own.append(pate_diagnosis(counts, **given).not_for_release)
    shown.append(sanitized_epsilon(counts, plan=plan, key=jax.random.key(0), **given))
  assert own[0] < own[1] < 1.1 * own[0]
  assert shown[0].epsilon < shown[1].epsilon < 1.2 * shown[0].epsilon


def test_tiny_discrete_noise_cannot_be_sanitized():
  plan = SanitizingPlan(4.0, 0.1, 3.0, 3.0)
  with pytest.raises(checks.ArgumentError, match="too small"):
    sanitized_epsilon(
      [[3, 1]], sigma=0.3, delta=1e-5, plan=plan, key=jax.random.key(0), discrete=True
    )


@pytest.mark.parametrize("sigma", [0.5, 0.7, 1.0, 4.0, 40.0, 300.0])
def test_one_vote_shorter_covers_discrete_noise(sigma):
  gaps = np.arange(1001)
  exact = _vote_tails.log_rival_tails(1000, sigma=sigma, discrete=True)
  cover = special.log_ndtr(-(gaps - 1) / (math.sqrt(2) * sigma))
  assert np.all(exact <= cover)
  plain = _vote_tails.log_rival_tails(1000, sigma=sigma, discrete=False)
  assert np.all(plain < exact)
