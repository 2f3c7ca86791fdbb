"""Plans of answers: as many as can be had, within the margin, and none of it by chance."""

import numpy as np
import pytest

from jaxfair import checks, fairness
from jaxfair.fairness import _answer_plan


def answered(counts, targets):
  """People who can be answered with these shares, of the smoothed counts: [...] for [..., C]."""
  people = np.asarray(counts) + _answer_plan.UNSEEN
  return sum((row / np.maximum(targets, 1e-12)).min(axis=-1) for row in people)


def test_two_groups_by_hand():
  # Of 75 + 25 and 25 + 75 people, equal shares of classes allow 133: all of one group, and of the
  # other 25 of the class that it lacks with 25 / 3 of the other one.
  counts = np.array([[7500.0, 2500.0], [2500.0, 7500.0]])
  targets = _answer_plan.planned_targets(counts)
  assert sorted(targets) == pytest.approx([0.25, 0.75], abs=1e-3)
  assert answered(counts, targets) == pytest.approx(13333, rel=1e-3)


@pytest.mark.parametrize(("groups", "classes"), [(2, 2), (3, 2), (5, 2), (2, 3), (3, 3), (4, 3)])
def test_no_other_shares_allow_more(groups, classes):
  rng = np.random.default_rng(groups + 10 * classes)
  grid = [np.linspace(0, 1, 1001 if classes == 2 else 101)] * (classes - 1)
  free = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, classes - 1)
  every = np.concatenate([free, 1 - free.sum(axis=1, keepdims=True)], axis=1)
  every = every[every[:, -1] >= 0]
  for _ in range(5):
    counts = rng.integers(5, 100, (groups, classes))
    found = answered(counts, _answer_plan.planned_targets(counts))
    best = answered(counts, every).max()
    assert best * (1 - 1e-9) <= found <= best * (1.01 if classes == 2 else 1.1)


def test_groups_alike_are_answered_wholly_and_empty_cells_are_planned():
  targets = _answer_plan.planned_targets([[40, 60], [400, 600]])
  np.testing.assert_allclose(targets, [0.4, 0.6], atol=2e-3)
  targets = _answer_plan.planned_targets([[40, 60, 0], [0, 0, 0]])
  assert targets.sum() == pytest.approx(1)
  assert (targets >= 0).all()
  with pytest.raises(checks.ArgumentError, match="groups, classes"):
    _answer_plan.planned_targets([1, 2])


def test_a_class_is_offered_up_to_its_share_and_the_margin():
  none, targets = np.zeros((2, 2), int), np.array([0.25, 0.75])
  labels, groups = np.zeros(8, int), np.zeros(8, int)
  shown, offered = _answer_plan.offer(labels, groups, targets, 0.05, none)
  # 0 <= 0.3 * 1 lets the first through; 1 > 0.3 * 2, and so on without a person of class 1.
  np.testing.assert_array_equal(shown, [0] + [-1] * 7)
  np.testing.assert_array_equal(offered, [[1, 0], [0, 0]])
  shown, _ = _answer_plan.offer(labels, groups, targets, 0.3, none)
  np.testing.assert_array_equal(shown, [0, 0] + [-1] * 6)  # 1 <= 0.55 * 2, 2 > 0.55 * 3
  shown, _ = _answer_plan.offer(np.array([1, 0, 0]), np.array([0, 1, 0]), targets, 0.05, none)
  np.testing.assert_array_equal(shown, [1, 0, 0])  # groups have offers of their own


def test_batches_are_offered_as_one_and_shares_are_met():
  rng = np.random.default_rng(0)
  groups, labels = rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)
  targets, none = np.array([0.2, 0.3, 0.5]), np.zeros((2, 3), int)
  whole, offered = _answer_plan.offer(labels, groups, targets, 0.01, none)
  first, middle = _answer_plan.offer(labels[:701], groups[:701], targets, 0.01, none)
  rest, last = _answer_plan.offer(labels[701:], groups[701:], targets, 0.01, middle)
  np.testing.assert_array_equal(np.append(first, rest), whole)
  np.testing.assert_array_equal(last, offered)
  rates = offered / offered.sum(axis=1, keepdims=True)
  assert (rates <= targets + 0.01 + 1 / offered.sum(axis=1, keepdims=True)).all()
  assert (whole >= 0).mean() > 0.6  # 2/3 at most: a third of them are of class 2


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
    "good": _answer_plan.planned_targets(public),
    "bad": np.array([0.05, 0.05, 0.9]),
  }
  covered = {}
  for name, targets in plans.items():
    gate = fairness.Abstainer(rule, num_groups=3, num_classes=3, targets=targets)
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
