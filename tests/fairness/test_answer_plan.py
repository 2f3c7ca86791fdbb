"""Plans of answers: as many as can be had, within the margin, and none of it by chance."""

import numpy as np
import pytest

from jaxfair import checks, fairness
from jaxfair.fairness import _answer_plan


def answered(counts, max_gap):
  """[G, C] people of each cell whom the plan answers, of the smoothed counts."""
  return _answer_plan.planned_shares(counts, max_gap) * (counts + _answer_plan.UNSEEN)


def most_of_a_group(people, low, high):
  """[L] the largest M with shares m / M between low and high [L, C], by bisection."""
  top = np.min(people / np.maximum(low, 1e-12), axis=1).clip(max=people.sum())
  bottom = np.zeros(len(low))
  for _ in range(40):
    middle = (bottom + top) / 2
    fits = np.minimum(high * middle[:, None], people).sum(axis=1) >= middle * (1 - 1e-9)
    bottom, top = np.where(fits, middle, bottom), np.where(fits, top, middle)
  return bottom


def enumerated(counts, max_gap, steps):
  """The most people over a grid of lower ends q of the shares, group by group."""
  grid = [np.linspace(0, 1, steps)] * counts.shape[1]
  low = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, counts.shape[1])
  total = low.sum(axis=1)
  low = low[(total <= 1 + 1e-9) & (total + max_gap * low.shape[1] >= 1)]
  people = counts + _answer_plan.UNSEEN
  return sum(most_of_a_group(row, low, low + max_gap) for row in people).max()


def test_two_groups_by_hand():
  # Of 75 + 25 and 25 + 75 people, equal shares of classes allow 133: all of one group, and of the
  # other 25 of the class that it lacks with 25 / 3 of the other one.
  counts = np.array([[7500.0, 2500.0], [2500.0, 7500.0]])
  planned = answered(counts, 0.0)
  assert planned.sum() == pytest.approx(13333, rel=1e-3)
  rates = planned[:, 0] / planned.sum(axis=1)
  assert rates[0] == pytest.approx(rates[1], abs=1e-9)
  slack = answered(counts, 0.01)
  assert planned.sum() < slack.sum() < 1.03 * planned.sum()
  rates = slack[:, 0] / slack.sum(axis=1)
  assert abs(rates[0] - rates[1]) == pytest.approx(0.01, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "classes"), [(2, 2), (3, 2), (5, 2), (2, 3)])
def test_no_target_shares_allow_more(groups, classes):
  rng = np.random.default_rng(groups + 10 * classes)
  for max_gap in (0.05, 0.1):
    counts = rng.integers(5, 100, (groups, classes)).astype(float)
    planned = answered(counts, max_gap)
    steps = 201 if classes == 2 else 41
    best = enumerated(counts, max_gap, steps)
    assert best * (1 - 1e-9) <= planned.sum() <= best * (1.03 if classes == 2 else 1.15)
    rates = planned / planned.sum(axis=1, keepdims=True)
    assert np.ptp(rates, axis=0).max() <= max_gap + 1e-9


def test_groups_alike_are_answered_wholly_and_empty_cells_are_planned():
  shares = _answer_plan.planned_shares([[40, 60], [400, 600]], 0.01)
  np.testing.assert_allclose(shares, 1, atol=1e-2)
  shares = _answer_plan.planned_shares([[40, 60, 0], [0, 0, 0]], 0.01)
  assert ((shares >= 0) & (shares <= 1)).all()
  with pytest.raises(checks.ArgumentError, match="one row per group"):
    _answer_plan.planned_shares([1, 2], 0.1)


def test_people_are_taken_at_even_distances_over_batches():
  groups, labels = np.array([0, 0, 0, 1, 0, 1]), np.array([1, 1, 1, 0, 1, 0])
  shares = np.array([[1.0, 0.5], [0.0, 1.0]])
  none = np.zeros((2, 2), int)
  taken, seen = _answer_plan.offered(labels, groups, shares, none)
  np.testing.assert_array_equal(taken, [-1, 1, -1, -1, 1, -1])
  np.testing.assert_array_equal(seen, [[0, 4], [2, 0]])
  first, middle = _answer_plan.offered(labels[:2], groups[:2], shares, none)
  rest, last = _answer_plan.offered(labels[2:], groups[2:], shares, middle)
  np.testing.assert_array_equal(np.append(first, rest), taken)
  np.testing.assert_array_equal(last, seen)
  many = np.zeros(1000, int)
  taken, _ = _answer_plan.offered(many, many, np.array([[0.37]]), np.zeros((1, 1), int))
  positions = np.flatnonzero(taken == 0)
  assert len(positions) == 370
  assert set(np.diff(positions)) == {2, 3}


@pytest.mark.slow
def test_the_margin_holds_whatever_the_plan_and_a_good_one_answers_more():
  rng = np.random.default_rng(0)
  mixes = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])
  groups = rng.integers(0, 3, 3200)
  labels = (rng.random(3200)[:, None] > mixes.cumsum(axis=1)[groups]).sum(axis=1)
  rule = fairness.CounterRule(0.03, 100)
  public = np.stack([rng.multinomial(1000, mix) for mix in mixes])
  plans = {
    "none": None,
    "good": _answer_plan.planned_shares(public, 0.8 * 0.03),
    "bad": np.array([[0.1, 1.0, 1.0], [1.0, 0.1, 1.0], [1.0, 1.0, 0.1]]),
    "for others": _answer_plan.planned_shares(public[::-1], 0.8 * 0.03),
  }
  covered = {}
  for name, shares in plans.items():
    gate = fairness.Abstainer(rule, num_groups=3, num_classes=3, shares=shares)
    most, shown = np.inf, 0
    for rows in np.split(np.arange(3200), 50):
      shown += (gate.answer(labels[rows], groups[rows]) >= 0).sum()
      if (gate.counters.sum(axis=1) >= 100).all():
        # What the cold start left may only fall, and below the margin nothing reaches it.
        assert gate.gap < max(0.03, most), name
        most = gate.gap + 1e-6
    assert most < np.inf
    covered[name] = shown / 3200
  assert covered["good"] > covered["none"] + 0.05, covered
