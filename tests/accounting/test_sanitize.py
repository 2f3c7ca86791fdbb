import dataclasses
import json

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.accounting import (
  PrivacyGuarantee,
  _sanitize,
  _smooth_sensitivity,
  pate_events,
  plan_sanitizing,
  sanitized_epsilon,
)
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._pate_gnmax import gnmax_rdp
from jaxfair.accounting._pate_threshold import threshold_rdp
from jaxfair.accounting._rdp import rdp_to_epsilon
from jaxfair.accounting._sanitize import SanitizedEpsilon
from jaxfair.accounting._sanitizing_plan import release_rdp, sanitizing_event

DELTA = 1e-6


def sample(rows=2000, teachers=250, classes=5):
  rng = np.random.default_rng(3)
  share = np.maximum(1 - 0.08 * rng.exponential(size=rows), 0.3)
  first = rng.binomial(teachers, share)
  rest = rng.multinomial(teachers - first, [1 / (classes - 1)] * (classes - 1))
  return np.concatenate([first[:, None], rest], axis=1)


COUNTS = sample()
PLAN = plan_sanitizing(num_queries=2000, num_teachers=250, num_classes=5, sigma=30.0, delta=DELTA)


def release(seed=0, **change):
  given = {"sigma": 30.0, "delta": DELTA, "plan": PLAN, **change}
  counts = given.pop("counts", COUNTS)
  return sanitized_epsilon(counts, key=jax.random.key(seed), **given)


def test_lies_between_the_diagnosis_and_what_holds_for_all():
  found = release()
  own = gnmax_rdp(COUNTS, sigma=30.0, orders=[PLAN.order]).not_for_release
  diagnosis = rdp_to_epsilon(own.sum(0), [PLAN.order], delta=DELTA)
  flat = composed_epsilon(pate_events(sigma=30.0, num_queries=2000), delta=DELTA)
  assert diagnosis < found.epsilon < 0.7 * flat
  assert isinstance(found.guarantee, PrivacyGuarantee)
  assert flat < found.guarantee.epsilon < 1.5 * flat


def test_a_cost_that_no_vote_moves_has_the_same_bits_for_all_votes():
  """Sums over occupied rungs would differ in their last bits."""
  rng, found = np.random.default_rng(0), set()
  for _ in range(50):
    first = rng.integers(0, 9, 30)
    counts = np.stack([first, 8 - first], axis=1)
    parts = [_sanitize._labels(counts, 9.7, PLAN.order, False)]
    scale = _smooth_sensitivity.log_smooth_sensitivity(
      *_smooth_sensitivity.totals_by_distance(parts), beta=PLAN.beta
    )
    assert scale == -np.inf
    bound = _sanitize._upper_bound(parts, np.ones(2), PLAN)
    assert bound == pytest.approx(parts[0].cost, rel=1e-12)
    found.add(bound)
  assert len(found) == 1


@pytest.mark.slow
def test_the_confidence_is_kept():
  # At confidence 0.6 a bound that is wrong by its noise would fail half the
  # time; counted over 200 keys.
  plan = dataclasses.replace(PLAN, confidence=0.6, sigma_scale=30.0)
  truth = gnmax_rdp(COUNTS, sigma=30.0, orders=[plan.order]).not_for_release
  exact = rdp_to_epsilon(truth.sum(0) + release_rdp(plan, plan.order), [plan.order], delta=DELTA)
  held = sum(release(seed, plan=plan).epsilon >= exact for seed in range(200))
  # Fewer than this has probability below 1e-6 if the chance is 0.6.
  assert held > stats.binom.ppf(1e-6, 200, 0.6)
  assert held < 200  # noise was added


@pytest.mark.slow
def test_the_margin_covers_the_noise_on_the_scale():
  plan = dataclasses.replace(PLAN, confidence=0.99, sigma_cost=1.0, sigma_scale=1.0 / PLAN.beta)
  parts = [_sanitize._labels(COUNTS, 30.0, plan.order, False)]
  cost = parts[0].cost
  draws = np.random.default_rng(0).normal(size=(600, 2))
  held = sum(_sanitize._upper_bound(parts, pair, plan) >= cost for pair in draws)
  # Fewer than this has probability below 1e-6 if the chance is 0.99.
  assert stats.binom.ppf(1e-6, 600, 0.99) < held < 600


def test_a_cap_on_answers_costs_less_than_all():
  # A wide test: it costs little, and labels count up to the cap.
  test = {"threshold": 220.0, "sigma_threshold": 100.0}
  some = release(max_answers=300, **test)
  whole = release(**test)
  assert (some.num_queries, some.max_answers) == (2000, 300)
  assert whole.max_answers is None
  assert some.epsilon < whole.epsilon
  assert some.guarantee.epsilon < whole.guarantee.epsilon
  own = gnmax_rdp(COUNTS, sigma=30.0, orders=[PLAN.order]).not_for_release
  own = np.sort(own, axis=0)[-300:].sum(0)
  own = own + threshold_rdp(
    COUNTS, threshold=220.0, sigma=100.0, orders=[PLAN.order]
  ).not_for_release.sum(0)
  assert some.epsilon > rdp_to_epsilon(own, [PLAN.order], delta=DELTA)


def test_never_above_the_guarantee_and_nothing_asked_is_cheap():
  tiny = release(counts=COUNTS[:3])
  assert tiny.epsilon <= tiny.guarantee.epsilon * 1.001
  none = release(counts=COUNTS[:0])
  alone = composed_epsilon([sanitizing_event(PLAN)], delta=DELTA)
  assert none.epsilon <= alone * 1.001


def test_same_key_same_figure():
  assert release(5) == release(5)
  assert release(5).epsilon != release(6).epsilon


def test_what_it_says_can_be_published():
  found = release()
  told = str(found)
  assert "sanitized" in told
  assert "confidence 0.999" in told
  json.dumps(dataclasses.asdict(found), default=str)
  assert {field.name for field in dataclasses.fields(SanitizedEpsilon)} == {
    "epsilon",
    "delta",
    "plan",
    "num_queries",
    "max_answers",
    "guarantee",
  }  # no vote, cost or sensitivity rides along


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"sigma": 0.0}, "sigma"),
    ({"delta": 1.5}, "delta"),
    ({"counts": [[1, 2], [3, 1]]}, "same sum"),
    ({"threshold": 10.0}, "go together"),
    ({"threshold": np.nan, "sigma_threshold": 1.0}, "threshold"),
    ({"max_answers": 5}, "Confident-GNMax"),
    ({"plan": None}, "plan is missing"),
  ],
)
def test_bad_arguments_are_named(change, told):
  with pytest.raises(checks.ArgumentError, match=told):
    release(**change)


def test_a_key_is_required():
  with pytest.raises(checks.ArgumentError, match="key"):
    sanitized_epsilon(COUNTS, sigma=30.0, delta=DELTA, plan=PLAN, key=0)
