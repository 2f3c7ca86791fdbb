"""How many of those kept one person moves, by enumeration of data sets."""

import itertools

import numpy as np
import pytest

from jaxfair import accounting, fairness
from jaxfair.accounting import Relation, _composition

FIRST, LAST = -1.0, 99.0


def rows_kept(people, max_gap):
  """[n] who is kept; people are (x, label, group) in a fixed order."""
  x, labels, groups = map(np.array, zip(*people, strict=True))
  return fairness.ordered_filter(x[:, None], labels, groups, max_gap=max_gap, num_classes=2)


def moved(people, i, other, max_gap):
  """Rows that a trainer sees differently when person i becomes another."""
  before = rows_kept(people, max_gap)
  after = rows_kept([*people[:i], other, *people[i + 1 :]], max_gap)
  own = before[i] or after[i]  # another record, unless left out twice
  return int(own) + int(np.delete(before != after, i).sum())


def test_one_of_four_people_replaced_moves_three_at_gap_0():
  worst = 0
  kinds = list(itertools.product((0, 1), (0, 1)))  # label, group
  for others in itertools.product(kinds, repeat=3):
    people = [(0.5, 0, 0)]  # any other kind is this one under other names
    people += [(float(i), *kind) for i, kind in enumerate(others)]
    for kind, x in itertools.product(kinds, (FIRST, LAST)):
      worst = max(worst, moved(people, 0, (x, *kind), 0.0))
  assert worst == _composition.preprocessing_factor(0.0, relation=Relation.REPLACE_ONE)


@pytest.mark.parametrize("max_gap", [0.2, 0.5])
def test_one_replaced_moves_as_many_as_is_charged(max_gap):
  # One person less of the smaller group in the second class, and every way to
  # turn one person into another, at either end of the order.
  worst = 0
  for few, many in itertools.product(range(1, 4), range(1, 10)):
    people = [
      (float(i), label, group)
      for label in (0, 1)
      for group, size in enumerate((few - label, many))
      for i in range(size)
    ]
    for i in (0, few - 1, few, few + many - 1):
      for x, label, group in itertools.product((FIRST, LAST), (0, 1), (0, 1)):
        worst = max(worst, moved(people, i, (x, label, group), max_gap))
  assert worst == _composition.preprocessing_factor(max_gap, relation=Relation.REPLACE_ONE)


def test_randomized_response_behind_the_filter_is_covered():
  # Everybody kept tells a bit with epsilon 1, all others a coin: the largest
  # loss over all outcomes adds up over those who moved.
  epsilon, max_gap = 1.0, 0.2
  people = [(float(i), 0, 0) for i in range(2)]
  people += [(float(i), 0, 1) for i in range(6)]
  worst = 0
  for i in range(len(people)):
    rest = [p for j, p in enumerate(people) if j != i]
    before = np.delete(rows_kept(people, max_gap), i)
    worst = max(worst, 1 + (before != rows_kept(rest, max_gap)).sum())
  charged, _ = accounting.preprocessed_guarantee(epsilon=epsilon, delta=0.0, max_gap=max_gap)
  assert charged == worst * epsilon
