"""Ways of deciding: biases against closed forms and against the compiled simulation."""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import decisions
from jaxfair.decisions import _bias, _ways
from jaxfair.decisions._own_rules import OwnRule

COUNTS = np.array([3.0, 12.0, 40.0, 400.0, 5000.0])
WEIGHTS = np.array([1.0, 0.8, 1.2, 1.0, 0.9])
KEY = jax.random.key(0)


def identity_case():
  return _ways.rule_case(OwnRule("heads", lambda c: c, ("c",)), (COUNTS,), key=KEY)


@pytest.mark.slow
def test_a_rule_of_ones_own_has_the_bias_of_the_closed_form():
  case = identity_case()
  regions = np.array([0, 0, 1, 1, 1])
  found, sums = _ways.simulate_way(
    case, case.way(_ways.USUAL, 0.1), draws=2000, key=KEY, regions=regions
  )
  exact = decisions.clipped_laplace_mean(COUNTS, scale=10.0) - COUNTS
  margin = 5 * found.standard_error + 1e-9
  assert np.all(np.abs(found.bias - exact) <= margin)
  np.testing.assert_allclose(sums.bias, [found.bias[:2].sum(), found.bias[2:].sum()], rtol=1e-9)
  # Both signs of each noise: what is linear cancels to rounding.
  linear, none = _ways.simulate_way(case, case.way("as-released", 0.1), draws=100, key=KEY)
  assert none is None
  assert np.abs(linear.bias).max() < 1e-9
  np.testing.assert_allclose(linear.error, 10, rtol=0.5)
  assert not _ways.clear_bias(linear).any()


@pytest.mark.slow
def test_shares_agree_with_the_compiled_simulation():
  case = _ways.sharing_case(COUNTS, WEIGHTS)
  ours, _ = _ways.simulate_way(case, case.way(_ways.USUAL, 0.1), draws=2000, key=KEY)
  shares = decisions.allotment(WEIGHTS)
  release = decisions.LaplaceRelease.for_epsilon(0.1)
  theirs = decisions.simulate(
    lambda c: shares(decisions.non_negative(c)), COUNTS, release=release, draws=4000, key=KEY
  )
  spread = np.hypot(ours.standard_error, theirs.standard_error)
  assert np.all(np.abs(ours.bias - theirs.bias) <= 6 * spread)
  np.testing.assert_allclose(ours.error, theirs.error, rtol=0.2)


def test_one_person_in_two_counts_doubles_the_noise():
  rule = OwnRule("first", lambda a, b: a + 0 * b, ("a", "b"))
  case = _ways.rule_case(rule, (COUNTS, COUNTS), key=KEY)
  way = case.way("as-released", 0.5)
  assert way.mechanism.event.epsilon == pytest.approx(0.5, rel=1e-6)
  found, _ = _ways.simulate_way(case, way, draws=1000, key=KEY)
  np.testing.assert_allclose(found.error, 4, rtol=0.25)  # mean of |noise|: 2 / 0.5


@pytest.mark.slow
def test_decisions_have_the_error_of_the_closed_form():
  counts = np.linspace(80.0, 120.0, 12)
  rule = OwnRule("due", lambda c: c >= 101, ("c",))
  case = _ways.rule_case(rule, (counts,), key=KEY)
  assert case.names[-1] == "piecewise-linear"
  found, _ = _ways.simulate_way(case, case.way("as-released", 0.2), draws=1000, key=KEY)
  exact = stats.laplace.cdf(-np.abs(counts - 101.0), scale=5.0)
  assert np.all(np.abs(found.error - exact) <= 6 * found.standard_error)
  stand_in, _ = _ways.simulate_way(case, case.way("piecewise-linear", 0.2), draws=100, key=KEY)
  assert stand_in.error.shape == (12,)


def bias(values, error, is_rule=False):
  values = np.array(values)
  spread = np.full(len(values), 0.01)
  return _bias.NonPrivateBias(
    np.ones(len(values)), values, spread, spread, np.full(len(values), error), 100, is_rule
  )


@pytest.mark.parametrize(
  ("other", "best"),
  [
    (bias([0.0, 0.0], 1.0), "tempered"),
    (bias([0.0, 0.0], 1.2), _ways.USUAL),  # fair, and errs too much
    (bias([-0.98, 1.0], 1.0), _ways.USUAL),  # not clearly better
  ],
)
def test_recommendations_for_amounts(other, best):
  assert _ways.recommend({_ways.USUAL: bias([-1.0, 1.0], 1.0), "tempered": other}) == best


def test_a_way_in_use_that_is_as_good_is_kept():
  fair = bias([0.0, 0.0], 1.0)
  found = {_ways.USUAL: bias([-1.0, 1.0], 1.0), "as-released": fair, "public-total": fair}
  assert _ways.recommend(found) == "as-released"
  assert _ways.recommend(found, now="public-total") == "public-total"
  found["noisy-shares"] = bias([0.0, 0.0], 3.0)
  assert _ways.recommend(found, now="noisy-shares") == "as-released"


@pytest.mark.parametrize(("error", "best"), [(0.1, "tempered"), (0.29, _ways.USUAL)])
def test_recommendations_for_decisions(error, best):
  usual = bias([-0.3, 0.3], 0.3, is_rule=True)
  other = bias([-error, error], error, is_rule=True)
  assert _ways.recommend({_ways.USUAL: usual, "tempered": other}) == best
