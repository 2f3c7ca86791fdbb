"""Margins and penalties by notions that read true labels, against their definitions."""

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _counter, _counter_sequence, _soft
from jaxfair.fairness._disparity import DISPARITY_KINDS
from jaxfair.fairness._known_labels import NOTIONS

CONDITIONED = [name for name in NOTIONS if name != "demographic_parity"]
METRICS = {
  "demographic_parity": fairness.demographic_parity_difference,
  "equalized_odds": fairness.equalized_odds_difference,
  "equal_opportunity": fairness.equal_opportunity_difference,
  "accuracy_parity": fairness.accuracy_parity_difference,
}


@functools.cache
def people(num_groups=2, num_classes=2, size=600):
  """True labels, groups and predictions that are worse for later groups."""
  rng = np.random.default_rng(num_groups * num_classes)
  group = rng.integers(0, num_groups, size)
  truth = rng.integers(0, num_classes, size)
  wrong = rng.random(size) < 0.1 + 0.6 * group / (num_groups - 1)
  guess = np.where(wrong, rng.integers(0, num_classes, size), truth)
  return truth, group, guess


def rates(notion, truth, group, guess, num_groups, num_classes):
  """{(stratum, category): [(hits, people) of each group]}, by the definitions in words."""
  sizes, everyone = range(num_classes), np.ones(len(truth), bool)
  if notion == "demographic_parity":
    told = {("all", k): (everyone, guess == k) for k in sizes}
  elif notion == "equalized_odds":
    told = {(y, k): (truth == y, guess == k) for y in sizes for k in sizes}
  elif notion == "equal_opportunity":
    told = {(y, "right"): (truth == y, guess == y) for y in (sizes if num_classes > 2 else [1])}
  else:
    told = {("all", "right"): (everyone, guess == truth)}
  for (y, k), (among, hit) in list(told.items()):
    if k == "right":
      told[y, "wrong"] = (among, ~hit)
  return {
    key: [
      (int((among & hit)[group == z].sum()), int(among[group == z].sum()))
      for z in range(num_groups)
    ]
    for key, (among, hit) in told.items()
  }


def largest_gap(counted, disparity):
  """Exactly, over strata, groups and categories."""
  worst = Fraction(-1)
  for groups in counted.values():
    for z, (hits, size) in enumerate(groups):
      others = [pair for j, pair in enumerate(groups) if j != z]
      if disparity == "overall":
        others = groups
      if disparity == "pairwise":
        against = [Fraction(h, n) for h, n in others]
      else:
        against = [Fraction(sum(h for h, _ in others), sum(n for _, n in others))]
      worst = max(worst, *(Fraction(hits, size) - rate for rate in against))
  return worst


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "disparity"), [((2, 2), "rest"), ((3, 3), "pairwise")])
@pytest.mark.parametrize("notion", CONDITIONED)
def test_the_margin_holds_for_the_notion(notion, disparity, shape):
  truth, group, guess = people(*shape)
  rule = fairness.CounterRule(0.1, 10, disparity, notion=notion)
  kept = fairness.sequential_filter(
    guess, group, rule, num_groups=shape[0], num_classes=shape[1], truth=truth
  )
  before = largest_gap(rates(notion, truth, group, guess, *shape), disparity)
  after = largest_gap(rates(notion, truth[kept], group[kept], guess[kept], *shape), disparity)
  assert before > Fraction(1, 10) > after
  assert 0.5 < kept.mean() < 1


@pytest.mark.slow
@pytest.mark.parametrize("notion", CONDITIONED)
def test_a_rule_is_that_of_parity_in_every_stratum(notion):
  # One table at a time, by the plain rule on categories, which is tested by itself.
  truth, group, guess = people(3, 3)
  given, counters = _counter_sequence.admit_in_order(
    guess,
    group,
    fairness.CounterRule(0.05, 5, notion=notion),
    num_groups=3,
    num_classes=3,
    truth=truth,
  )
  category = guess if notion == "equalized_odds" else (guess == truth).astype(int)
  strata = np.zeros(len(truth), int) if notion == "accuracy_parity" else truth
  for stratum, table in enumerate(counters):
    mine = strata == stratum
    plain = _counter_sequence.admit_in_order(
      category[mine],
      group[mine],
      fairness.CounterRule(0.05, 5),
      num_groups=3,
      num_classes=table.shape[1],
    )
    np.testing.assert_array_equal(given[mine] == _counter.REFUSED, plain.labels == _counter.REFUSED)
    np.testing.assert_array_equal(table, plain.counters)
  assert set(np.unique(strata)) == set(range(len(counters)))


def test_equal_opportunity_of_two_classes_leaves_the_negatives_alone():
  truth, group, guess = people()
  rule = fairness.CounterRule(0.02, 10, notion="equal_opportunity")
  kept = fairness.sequential_filter(guess, group, rule, num_groups=2, num_classes=2, truth=truth)
  assert kept[truth == 0].all()
  assert not kept[truth == 1].all()


def test_counters_are_continued():
  truth, group, guess = people(3, 3)
  rule = fairness.CounterRule(0.1, 10, notion="accuracy_parity")
  sizes = {"num_groups": 3, "num_classes": 3}
  whole = _counter_sequence.admit_in_order(guess, group, rule, **sizes, truth=truth)
  half = len(truth) // 2
  first, last = (slice(None, half), slice(half, None))
  begun = _counter_sequence.admit_in_order(
    guess[first], group[first], rule, **sizes, truth=truth[first]
  )
  ended = _counter_sequence.admit_in_order(
    guess[last], group[last], rule, **sizes, truth=truth[last], counters=begun.counters
  )
  assert begun.counters.shape == (1, 3, 2)
  np.testing.assert_array_equal(ended.counters, whole.counters)
  with pytest.raises(ArgumentError, match=r"shape \(3, 3\); pass \(1, 3, 2\)"):
    _counter_sequence.admit_in_order(
      guess, group, rule, **sizes, truth=truth, counters=np.zeros((3, 3))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
  ("notion", "shape"), [("equalized_odds", (2, 2)), *((name, (3, 3)) for name in NOTIONS)]
)
def test_the_soft_disparity_of_hard_predictions_is_the_metric(notion, shape):
  truth, group, guess = people(*shape)
  measure = functools.partial(
    _soft.soft_disparity,
    num_groups=shape[0],
    disparity="pairwise",
    temperature=1e-6,
    notion=notion,
    truth=truth,
  )
  found = jax.jit(measure)(np.eye(shape[1], dtype=np.float32)[guess], group)
  metric = METRICS[notion](truth, guess, sensitive_features=group)
  # Odds of three classes are one against the rest there: no more than a table of all.
  if notion == "equalized_odds" and shape[1] > 2:
    exact = largest_gap(rates(notion, truth, group, guess, *shape), "pairwise")
    assert found == pytest.approx(float(exact), abs=1e-5)
    assert found >= metric - 1e-5
  else:
    assert found == pytest.approx(float(metric), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "disparity"), [*zip(CONDITIONED, DISPARITY_KINDS, strict=True)])
def test_gradients_are_those_of_differences(notion, disparity):
  truth, group, _ = people(3, 3)
  rng = np.random.default_rng(0)
  scores, along = rng.normal(size=(2, 30, 3))

  @jax.jit
  @jax.value_and_grad
  def value(step):
    shares = jax.nn.softmax(jnp.asarray(scores + step * along))
    return _soft.soft_disparity(
      shares,
      group[:30],
      num_groups=3,
      disparity=disparity,
      temperature=0.1,
      notion=notion,
      truth=truth[:30],
    )

  with jax.enable_x64(True):
    slope = float(value(0.0)[1])
    ends = [float(value(step)[0]) for step in (-1e-4, 1e-4)]
  assert slope == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-5, abs=1e-8)
  assert abs(slope) > 1e-4


def test_demographic_parity_reads_no_labels():
  truth, group, guess = people()
  sizes = {"num_groups": 2, "num_classes": 2}
  rule = fairness.CounterRule(0.05, 5)
  given = [
    _counter_sequence.admit_in_order(guess, group, rule, **sizes, truth=t) for t in (None, truth)
  ]
  np.testing.assert_array_equal(given[0].labels, given[1].labels)
  assert given[1].counters.shape == (2, 2)


def test_unknown_labels_are_refused():
  truth, group, guess = people()
  sizes = {"num_groups": 2, "num_classes": 2}
  rule = fairness.CounterRule(0.1, 10, notion="equalized_odds")
  filtered = functools.partial(fairness.sequential_filter, guess, group, rule, **sizes)
  with pytest.raises(ArgumentError, match="there are none; give them, or use notion='demographic"):
    filtered()
  with pytest.raises(ArgumentError, match="1 of 600 are missing; give them, or use notion="):
    filtered(truth=np.r_[-1, truth[1:]])
  with pytest.raises(ArgumentError, match="true labels has ids from 0 to 2"):
    filtered(truth=np.r_[2, truth[1:]])
  with pytest.raises(ArgumentError, match=r"shape \(599,\); pass \(600,\)"):
    filtered(truth=truth[1:])
  with pytest.raises(ArgumentError, match="reads true labels; use sequential_filter"):
    _counter.allowed_classes(np.zeros((2, 2), np.int32), 0, rule)
  with pytest.raises(ArgumentError, match="nobody knows when a prediction is shown"):
    fairness.Abstainer(rule, **sizes)
  with pytest.raises(ArgumentError, match="notion='odds'"):
    fairness.CounterRule(0.1, 10, notion="odds").check()
