"""Epsilon from a requirement, against its closed form."""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair.checks import ArgumentError
from jaxfair.decisions import _requirement, _ways
from jaxfair.decisions._own_rules import OwnRule

KEY = jax.random.key(0)


def case_of(function, counts):
  return _ways.rule_case(OwnRule("rule", function, ("c",)), (counts,), key=KEY)


@pytest.mark.slow
def test_epsilon_is_that_of_the_closed_form():
  # Each of n places loses its own noise: (1 - exp(-loss epsilon) / 2)^n = probability.
  case = case_of(lambda c: c, np.linspace(100.0, 900.0, 20))
  found = _requirement.find_epsilon(
    case, "as-released", at_most=20, probability=0.9, draws=4000, key=KEY
  )
  exact = -np.log(2 * (1 - 0.9 ** (1 / 20))) / 20
  # Never less, and by no more than what a bound from 4,000 draws costs.
  assert exact <= found.epsilon <= 1.15 * exact
  assert found.low >= 0.9
  assert found.rises
  truth = (1 - 0.5 * np.exp(-20 * found.epsilon)) ** 20
  assert abs(found.chance - truth) < 5 * np.sqrt(truth * (1 - truth) / found.draws)


def test_a_chance_that_falls_is_told():
  falls = tuple((e, c) for e, c in zip((0.1, 0.2, 0.4), (0.5, 0.9, 0.7), strict=True))
  assert not _requirement._rises(falls, 1000)
  assert _requirement._rises(((0.1, 0.5), (0.2, 0.9), (0.4, 0.89)), 1000)


def test_bound_is_that_of_scipy():
  for count in (1, 950, 1000):
    low = stats.binomtest(count, 1000).proportion_ci(0.998, "exact").low
    assert _requirement.chance_bound(count, 1000, 0.001) == pytest.approx(low, abs=1e-9)
  assert _requirement.chance_bound(0, 10, 0.01) == 0


@pytest.mark.slow
def test_losses_are_counted_over_all_places_at_once():
  case = case_of(lambda c: c, np.full(50, 1000.0))
  way = case.way("as-released", 1.0)
  count = _requirement.kept(case, way, 3.0, 1000, KEY)
  chance = (1 - 0.5 * np.exp(-3.0)) ** 50
  assert abs(count / 1000 - chance) < 6 * np.sqrt(chance * (1 - chance) / 1000)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"at_most": -1.0}, "at_most"),
    ({"probability": 1.0}, "probability"),
    ({"probability": 0.999}, "draws=200 must be .*6905"),
    ({"at_most": 1e9}, "met at any epsilon"),
    ({"at_most": 0.0}, "not met by any epsilon"),
  ],
)
def test_refused(change, told):
  case = case_of(lambda c: c, np.array([100.0, 200.0]))
  asked = {"at_most": 5.0, "probability": 0.9, "draws": 200} | change
  with pytest.raises(ArgumentError, match=told):
    _requirement.find_epsilon(case, "as-released", key=KEY, **asked)


def test_three_digits_rounded_up():
  assert _requirement._rounded_up(0.28601) == 0.287
  assert _requirement._rounded_up(0.287) == 0.287
  assert _requirement._rounded_up(1234.5) == 1240
