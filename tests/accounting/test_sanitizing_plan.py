import math

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.accounting import Relation, pate_events, plan_sanitizing, sanitized_epsilon
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._guarantee import round_up
from jaxfair.accounting._sanitizing_plan import (
  SanitizingPlan,
  log_margin,
  max_beta,
  release_rdp,
  sanitizing_event,
)


def gaussian_divergence(mean, ratio, sigma, order):
  """Between N(0, sigma^2) and N(mean, (sigma ratio)^2), by quadrature."""
  # The integrand is a Gaussian of some width: equal steps are exact.
  x = np.linspace(-60 * sigma, 60 * sigma, 200_001)
  one = stats.norm.logpdf(x, 0, sigma)
  two = stats.norm.logpdf(x, mean, sigma * ratio)
  total = np.sum(np.exp(order * one - (order - 1) * two)) * (x[1] - x[0])
  return math.log(total) / (order - 1)


@pytest.mark.parametrize(("order", "beta", "sigma"), [(4.0, 0.05, 3.0), (8.0, 0.04, 6.0)])
def test_release_costs_the_worst_pair_of_neighbors(order, beta, sigma):
  plan = SanitizingPlan(order, beta, sigma, 1e6)
  found = release_rdp(plan, order)
  worst = 0.0
  for log_ratio in np.linspace(-beta, beta, 9):
    ratio = math.exp(log_ratio)  # S'/S; the cost moves by the smaller of both
    for share in (-1.0, 0.5, 1.0):
      move = share * min(1.0, ratio)
      worst = max(worst, gaussian_divergence(move, ratio, sigma, order))
  assert worst == pytest.approx(found, rel=1e-6)


def test_releasing_the_scale_is_a_gaussian_mechanism():
  one = SanitizingPlan(4.0, 0.05, 3.0, 10.0)
  other = SanitizingPlan(4.0, 0.05, 3.0, 1e9)
  extra = release_rdp(one, 4.0) - release_rdp(other, 4.0)
  assert extra == pytest.approx(4.0 / (2 * 10.0**2))


@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.999])
@pytest.mark.parametrize("step", [1e-4, 0.1, 1.0, 5.0])
def test_the_bound_on_the_cost_fails_as_often_as_is_said(confidence, step):
  """By quadrature over both draws: the cost's noise is below -m e^(step y)."""
  margin = log_margin(confidence, step)
  y = np.linspace(-12, 12, 200_001)
  density = stats.norm.pdf(y) * (y[1] - y[0])
  fails = np.sum(density * stats.norm.sf(np.exp(margin + step * y)))
  assert 0.99 * (1 - confidence) < fails <= 1 - confidence
  # Two quantiles that hold together by a union of failures leave more room than is needed.
  z = stats.norm.isf((1 - confidence) / 2)
  assert margin < math.log(z) + step * z


def test_event_lists_the_orders_that_exist():
  plan = SanitizingPlan(6.0, 0.05, 3.0, 10.0)
  event = sanitizing_event(plan)
  assert 6.0 in event.orders
  assert max(event.orders) < 1 / -math.expm1(-0.1)
  assert np.all(np.diff(event.values) > 0)
  assert min(event.values) > 0


def test_a_plan_looks_at_public_numbers_and_follows_the_guess():
  public = {
    "num_queries": 5000,
    "num_teachers": 250,
    "num_classes": 10,
    "sigma": 20.0,
    "delta": 1e-6,
  }
  plans = [plan_sanitizing(**public, consensus=c) for c in (0.7, 0.99)]
  assert plan_sanitizing(**public, consensus=0.7) == plans[0]
  # The surer one is of agreement, the higher the order that pays.
  assert plans[0].order < plans[1].order
  for plan in plans:
    assert plan.beta < max_beta(plan.order)


@pytest.mark.parametrize("overhead", [0.05, 0.1])
def test_a_wrong_guess_costs_no_more_than_the_overhead(overhead):
  public = {"sigma": 13.0, "delta": 1e-6}
  plan = plan_sanitizing(
    **public, num_queries=300, num_teachers=150, num_classes=2, max_overhead=overhead
  )
  alone = composed_epsilon(
    pate_events(sigma=13.0, num_queries=300), delta=1e-6, relation=Relation.REPLACE_ONE
  )
  contested = np.full((300, 2), 75)  # the guess was that nine of ten teachers agree
  for seed in range(3):
    shown = sanitized_epsilon(contested, **public, plan=plan, key=jax.random.key(seed))
    assert alone < shown.guarantee.epsilon <= (1 + overhead) * alone
    assert shown.epsilon <= round_up(shown.guarantee.epsilon)
  agreed = sanitized_epsilon(
    np.tile([150, 0], (300, 1)), **public, plan=plan, key=jax.random.key(0)
  )
  assert agreed.epsilon < 0.8 * alone


def test_no_plan_where_a_figure_would_not_be_lower():
  # Few teachers for the noise: votes cannot help, whatever they are.
  few = {"num_queries": 200, "num_teachers": 150, "num_classes": 2, "sigma": 50.0, "delta": 1e-6}
  assert plan_sanitizing(**few, consensus=0.9) is None
  many = few | {"num_teachers": 5000}
  assert plan_sanitizing(**many, consensus=0.9) is not None


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"order": 1.0}, "order"),
    ({"beta": 0.0}, "beta"),
    ({"beta": 0.2}, "use a beta below"),
    ({"sigma_cost": 0.0}, "sigma_cost"),
    ({"sigma_scale": -1.0}, "sigma_scale"),
    ({"confidence": 1.0}, "confidence"),
  ],
)
def test_bad_plans_are_named(change, told):
  given = {"order": 4.0, "beta": 0.1, "sigma_cost": 1.0, "sigma_scale": 1.0, **change}
  with pytest.raises(checks.ArgumentError, match=told):
    SanitizingPlan(**given)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"num_queries": 0}, "num_queries"),
    ({"num_teachers": 0}, "num_teachers"),
    ({"num_classes": 1}, "num_classes"),
    ({"consensus": 1.2}, "share of teachers"),
    ({"sigma": 0.0}, "sigma"),
    ({"threshold": 5.0}, "sigma_threshold"),
    ({"max_answers": 5}, "Confident-GNMax"),
    ({"delta": 0.0}, "delta"),
  ],
)
def test_bad_public_numbers_are_named(change, told):
  given = {
    "num_queries": 10,
    "num_teachers": 20,
    "num_classes": 2,
    "sigma": 3.0,
    "delta": 1e-5,
    **change,
  }
  with pytest.raises(checks.ArgumentError, match=told):
    plan_sanitizing(**given)
