"""Arrays of a wrong shape are refused where they enter, not broadcast."""

import numpy as np
import pytest

from jaxfair.fairness import _counter, _gaps, _groups, _soft, rates

RULE = _counter.CounterRule(max_gap=0.1, min_count=5)
PEOPLE, COLUMN = np.zeros(6, int), np.zeros((6, 1), int)


@pytest.mark.parametrize(
  "call",
  [
    lambda: _groups.group_counts(COLUMN, 2),
    lambda: _groups.group_sums(np.zeros(5), PEOPLE, 2),
    lambda: _groups.group_sums(np.zeros(6), PEOPLE, 2, np.ones((6, 1))),
    lambda: _groups.group_means(np.zeros((6, 2)), COLUMN, 2),
    lambda: _soft.soft_disparity(np.zeros(6), PEOPLE, num_groups=2),
    lambda: _gaps.difference(np.float32(0.5)),
    lambda: _gaps.ratio(np.float32(0.5)),
    lambda: rates.accuracy(np.ones((2, 3))),
    lambda: rates.selection_rate(np.ones((2, 2, 3))),
    lambda: rates.true_positive_rate(np.ones((2, 3))),
    lambda: rates.false_negative_rate(np.ones((2, 3))),
    lambda: rates.false_positive_rate(np.ones((2, 3))),
    lambda: rates.true_negative_rate(np.ones((2, 3))),
    lambda: _counter.allowed_classes(np.zeros(3, int), np.int32(0), RULE),
  ],
)
def test_a_wrong_shape_is_refused(call):
  with pytest.raises(AssertionError, match=r"shape|rank"):
    call()
