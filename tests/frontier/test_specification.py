"""Limits, with and without confidence, and the rules of Table 1."""

import numpy as np
import pytest
from scipy import stats

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _objectives


def test_limits_hold_at_the_limit_and_leave_a_frontier(four):
  found = frontier.specify(four, {"epsilon": 1.0, "gap": 0.11})
  assert found.satisfied.tolist() == [True, True, False, True]
  assert found.on.tolist() == [True, True, False, False]
  found = frontier.specify(four, {"accuracy": 0.85})
  assert found.satisfied.tolist() == [False, False, True, False]
  assert frontier.specify(four, {}).on.tolist() == [True, True, True, False]


def test_confidence_asks_for_the_one_sided_bound(four):
  # Seeds differ by -0.01, 0, 0.01: a standard error of 0.01 / sqrt(3).
  bound = 0.88 - stats.t.ppf(0.95, 2) * 0.01 / np.sqrt(3)
  for limit, holds in ((bound - 1e-9, True), (bound + 1e-9, False)):
    found = frontier.specify(four, {"accuracy": limit}, confidence=0.95)
    assert found.satisfied[2] == holds
  # Epsilon is the same in all seeds, so it is known.
  found = frontier.specify(four, {"epsilon": 1.0}, confidence=0.999)
  assert found.satisfied.tolist() == [True, True, False, True]


def test_a_violation_rarely_passes():
  # 2,000 settings at the limit, 5 seeds: 5% pass, and 5 standard errors.
  rng = np.random.default_rng(0)
  gaps = rng.normal(0.1, 0.02, size=(2000, 5, 1))
  points = frontier.points(gaps, [_objectives.Objective("gap", "low")])
  passed = frontier.specify(points, {"gap": 0.1}, confidence=0.95).satisfied
  assert abs(passed.mean() - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 2000)


def test_the_rules_pick_what_they_say(four):
  assert frontier.select(four, "private") == 0
  assert frontier.select(four, "fair") == 1
  assert frontier.select(four, "accurate") == 2
  assert frontier.select(four, "fair", limit=0.11) == 0
  assert frontier.select(four, "fair", limit=0.2) == 2
  assert frontier.select(four, "accurate", limit=0.75) == 1
  assert frontier.select(four, "private", limit=0.5) is None
  assert frontier.select(four, "accurate", limit=0.88, confidence=0.9) is None


def test_ties_go_to_the_one_that_is_better_elsewhere(four):
  everywhere = np.ones(4, bool)
  assert frontier.best(four, everywhere, objective="coverage") == 0
  assert frontier.best(four, ~everywhere) is None


def test_what_cannot_be_asked_is_said(four):
  one = frontier.points(four.means)
  with pytest.raises(ArgumentError, match="at least 2 seeds"):
    frontier.specify(one, {"gap": 0.1}, confidence=0.95)
  with pytest.raises(ArgumentError, match="rule='cheap' is not known"):
    frontier.select(four, "cheap")
  with pytest.raises(ArgumentError, match="pass limit"):
    frontier.select(four, "fair", confidence=0.9)
  with pytest.raises(ArgumentError, match="is NaN"):
    frontier.specify(four, {"gap": np.nan})
  with pytest.raises(ArgumentError, match="objective='cost'"):
    frontier.specify(four, {"cost": 1.0})


@pytest.mark.parametrize(
  ("name", "limit", "told"),
  [
    ("epsilon", -1.0, "epsilon is never below 0; pass a number above 0"),
    ("epsilon", -np.inf, "epsilon is never below 0; pass a number above 0"),
    ("gap", -2.0, "gap is never below -1; write 5% as 0.05"),
    ("accuracy", 85.0, "accuracy is never above 1; write 85% as 0.85"),
    ("coverage", 1.5, "coverage is never above 1; write 85% as 0.85"),
  ],
)
def test_an_impossible_limit_is_refused_with_its_own_remedy(four, name, limit, told):
  with pytest.raises(ArgumentError) as caught:
    frontier.specify(four, {name: limit})
  assert str(caught.value).endswith(told)
  assert f"limit {name}={limit:g} cannot be met" in str(caught.value)


def test_other_objectives_are_told_their_own_bounds():
  cost = _objectives.Objective("cost", "low", least=3.0)
  speed = _objectives.Objective("speed", "high", most=9.0)
  points = frontier.points([[4.0, 5.0]], [cost, speed])
  for limits, told in (
    ({"cost": 2.0}, "never below 3; pass a number above 3"),
    ({"speed": 10.0}, "never above 9; pass at most 9"),
  ):
    with pytest.raises(ArgumentError, match=told):
      frontier.specify(points, limits)
  assert frontier.specify(points, {"cost": 4.0, "speed": 5.0}).satisfied.all()
