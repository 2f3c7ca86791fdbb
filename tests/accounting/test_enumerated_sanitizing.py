"""The sanitized figure, against the exact law of what it is drawn from."""

import math

import jax
import numpy as np
import pytest

from helpers import enumerations as exact
from helpers import vote_references as reference
from jaxfair.accounting import _sanitize, sanitized_epsilon
from jaxfair.accounting import _smooth_sensitivity as smooth
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._sanitizing_plan import SanitizingPlan, sanitizing_event

DELTA = 1e-2
SIGMA, THRESHOLD, SIGMA_THRESHOLD = 1.5, 5.0, 2.0
# Little noise, so that the votes show as far as the price allows.
PLAN = SanitizingPlan(4.0, 0.03, 2.0, 2.0)
QUERIES = 3
TEACHERS = 8

# Two standard normal draws on a grid.
STEP = 0.1
FIRST, SECOND = np.meshgrid(*[np.arange(-8, 8, STEP)] * 2, indexing="ij")


def parts_of(row, cap):
  """Labels and tests of some queries with the same votes."""
  table = np.tile(row, (QUERIES, 1))
  labels = _sanitize._labels(table, SIGMA, PLAN.order, False)
  tests = _sanitize._tests(table, THRESHOLD, SIGMA_THRESHOLD, PLAN.order, False)
  return [labels._replace(most=cap), tests]


def secrets_of(row, cap=QUERIES):
  """The cost and the logarithm of its smooth sensitivity."""
  parts = parts_of(row, cap)
  totals, distances = smooth.totals_by_distance(parts)
  log_scale = smooth.log_smooth_sensitivity(totals, distances, beta=PLAN.beta)
  return sum(part.cost for part in parts), log_scale


def released_laws(mine, theirs):
  """Both laws of noisy cost and noisy scale, on a grid around the first."""
  cost, log_scale = mine
  spread = PLAN.sigma_cost * math.exp(log_scale)
  step = PLAN.sigma_scale * PLAN.beta
  shown = cost + spread * FIRST, log_scale + step * SECOND
  found = []
  for cost, log_scale in (mine, theirs):
    own = PLAN.sigma_cost * math.exp(log_scale)
    z = (shown[0] - cost) / own, (shown[1] - log_scale) / step
    density = np.exp(-(z[0] ** 2 + z[1] ** 2) / 2) / (2 * math.pi)
    found.append(density * (spread / own) * STEP**2)
  return found


def neighbors():
  for row in reference.histograms(TEACHERS, 2):
    for other in reference.neighbors(row):
      yield row, other


def test_cost_and_scale_are_priced_for_all_neighbors():
  epsilon = composed_epsilon([sanitizing_event(PLAN)], delta=DELTA)
  worst = lower = 0.0
  for row, other in neighbors():
    pair = released_laws(secrets_of(row), secrets_of(other))
    assert abs(pair[0].sum() - 1) < 1e-9
    worst = max(worst, exact.delta_of(*pair, epsilon))
    lower = max(lower, exact.delta_of(*pair, 0.7 * epsilon))
  assert worst <= DELTA < lower


@pytest.mark.slow
@pytest.mark.parametrize("cap", [1, None])
def test_labels_and_figure_together_keep_the_guarantee(cap):
  test = {"threshold": THRESHOLD, "sigma_threshold": SIGMA_THRESHOLD}
  worst = lower = 0.0
  for row, other in neighbors():
    if row[0] < row[1]:  # the same under other names
      continue
    shown = sanitized_epsilon(
      np.tile(row, (QUERIES, 1)),
      sigma=SIGMA,
      delta=DELTA,
      plan=PLAN,
      key=jax.random.key(0),
      max_answers=cap,
      **test,
    )
    laws = [exact.confident_law(votes, THRESHOLD, SIGMA_THRESHOLD, SIGMA) for votes in (row, other)]
    most = QUERIES if cap is None else cap
    answers = exact.capped_laws(*laws, QUERIES, most)
    figure = released_laws(secrets_of(row, most), secrets_of(other, most))
    pair = [np.outer(labels, law.ravel()) for labels, law in zip(answers, figure, strict=True)]
    worst = max(worst, exact.delta_of(*pair, shown.guarantee.epsilon))
    lower = max(lower, exact.delta_of(*pair, 0.4 * shown.guarantee.epsilon))
  assert worst <= DELTA < lower


@pytest.mark.parametrize("cap", [1, 3])
def test_the_figure_is_drawn_with_the_noise_that_is_priced(cap):
  parts = parts_of((7, 1), cap)
  cost, log_scale = secrets_of((7, 1), cap)

  def figure(*draws):
    return _sanitize._upper_bound(parts, np.array(draws), PLAN)

  spread = PLAN.sigma_cost * math.exp(log_scale)
  assert figure(1.0, 0.0) - figure(0.0, 0.0) == pytest.approx(spread)
  step = math.log((figure(0.0, 1.0) - cost) / (figure(0.0, 0.0) - cost))
  assert step == pytest.approx(PLAN.sigma_scale * PLAN.beta)
