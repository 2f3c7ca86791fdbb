"""Both filters, and by how much one person can change what is kept."""

import itertools

import numpy as np
import pytest

from jaxfair import accounting, fairness
from jaxfair.checks import ArgumentError


def kept_of(people, max_gap):
  """The multiset of (x, label, group) that the ordered filter keeps."""
  if not people:
    return {}
  x, labels, groups = map(np.array, zip(*people, strict=True))
  mask = fairness.ordered_filter(
    x[:, None], labels, groups, max_gap=max_gap, num_classes=2
  )
  return {person for person, kept in zip(people, mask, strict=True) if kept}


@pytest.mark.parametrize("max_gap", [0.0, 0.2, 1 / 3, 0.5, 0.6])
def test_the_ordered_filter_is_exactly_as_stable_as_theorem_1_says(max_gap):
  # All sets of one class up to 3 people of a group and 14 of the other, and
  # every place in the order where one more may stand.
  worst = 0
  for few, many in itertools.product(range(4), range(15)):
    people = [(2.0 * i + 1, 0, 0) for i in range(few)]
    people += [(2.0 * i + 1, 0, 1) for i in range(many)]
    before = kept_of(people, max_gap)
    for group, place in itertools.product((0, 1), (0, 2 * few, 2 * many)):
      after = kept_of([*people, (float(place), 0, group)], max_gap)
      worst = max(worst, len(set(before) ^ set(after)))
  assert worst == accounting.preprocessing_factor(max_gap)


def test_the_ordered_filter_balances_each_class_and_keeps_the_first():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(300, 2))
  labels = rng.integers(0, 2, 300)
  groups = (rng.random(300) < 0.2 + 0.5 * labels).astype(int)
  kept = fairness.ordered_filter(x, labels, groups, max_gap=0.1, num_classes=2)
  order = np.lexsort((x[:, 1], x[:, 0]))
  for k in (0, 1):
    sizes = [(kept & (labels == k) & (groups == z)).sum() for z in (0, 1)]
    a, b = sorted(sizes)
    assert (b - a) / (a + b) <= 0.1 < (b + 1 - a) / (a + b + 1)
    for z in (0, 1):  # nobody kept behind one that was dropped
      own = [i for i in order if labels[i] == k and groups[i] == z]
      assert not np.any(np.diff(kept[own].astype(int)) > 0)


def test_one_record_changes_many_in_the_sequential_filter():
  # The first answer decides which of two classes the groups may drift to.
  rng = np.random.default_rng(1)
  labels, groups = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
  rule = fairness.CounterRule(0.02, 1)
  sizes = {"num_groups": 2, "num_classes": 2}
  worst = 0
  for label, group in itertools.product((0, 1), (0, 1)):
    with_one = fairness.sequential_filter(
      np.append(label, labels), np.append(group, groups), rule, **sizes
    )[1:]
    without = fairness.sequential_filter(
      np.append(-1, labels), np.append(group, groups), rule, **sizes
    )[1:]
    worst = max(worst, (with_one ^ without).sum())
  assert worst > 100
  assert accounting.preprocessing_factor(0.02) == 3


def test_the_sequential_filter_is_the_counter_rule():
  rng = np.random.default_rng(2)
  labels, groups = rng.integers(0, 2, 601), rng.integers(0, 2, 601)
  rule = fairness.CounterRule(0.05, 20)
  kept = fairness.sequential_filter(
    labels, groups, rule, num_groups=2, num_classes=2
  )
  counts = fairness.prediction_counts(
    labels[kept], sensitive_features=groups[kept], num_groups=2, num_classes=2
  )
  assert fairness.demographic_disparity(counts).max() < 0.05
  assert 300 < kept.sum() < 601


def test_three_groups_are_refused():
  with pytest.raises(ArgumentError, match="groups has ids from 0 to 2"):
    fairness.ordered_filter(
      np.zeros((3, 1)), np.zeros(3, int), np.arange(3), max_gap=0.1,
      num_classes=2,
    )  # fmt: skip
