"""Allotments and rules by hand, composed, compiled and mapped; refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, decisions
from jaxfair.decisions import _problems

KEY = jax.random.key(0)
RELEASE = decisions.LaplaceRelease.for_epsilon(0.1)


def test_title_one_by_hand():
  found = _problems.title_one(jnp.array([1.0, 3.0]), weights=[2.0, 1.0])
  np.testing.assert_allclose(found, [2 / 5, 3 / 5])


def test_the_language_rule_at_its_edges():
  s = jnp.array([1000.0, 1000.0, 1e6, 1e6, 1000.0, 0.0])
  sp = jnp.array([51.0, 50.0, 10_001.0, 10_000.0, 600.0, 0.0])
  spe = jnp.array([1.0, 10.0, 200.0, 200.0, 7.0, 0.0])
  found = _problems.minority_language(s, sp, spe)
  # 51 > 5% and 1 / 51 > 1.31%; 5% exactly is not above it; above 10,000; not;
  # 7 / 600 is 1.17%; nobody.
  assert found.tolist() == [True, False, True, False, False, False]


def test_the_language_rule_is_its_ratios_for_positive_counts():
  rng = np.random.default_rng(0)
  s = rng.integers(10, 300_000, 5000).astype(np.float64)
  sp = np.ceil(s * rng.uniform(0, 0.2, 5000)) + 1
  spe = np.floor(sp * rng.uniform(0, 0.05, 5000))
  expected = ((sp / s > 0.05) | (sp > 1e4)) & (spe / sp > 0.0131)
  np.testing.assert_array_equal(np.asarray(_problems.minority_language(s, sp, spe)), expected)


def test_compositions_follow_their_truth_tables():
  x = jnp.array([0.0, 1.5, 3.0])
  either = _problems.either(lambda x: x < 1, lambda x: x >= 2)
  assert jax.jit(either)(x).tolist() == [True, False, True]
  assert jax.vmap(either)(jnp.stack([x, x])).shape == (2, 3)


def test_a_ratio_is_floored_where_a_floor_is_given():
  assert _problems.ratio(2.0, 4.0) == 0.5
  assert _problems.ratio(jnp.array(2.0), -1.0, floor=1.0) == 2.0


def simulate(problem, counts):
  return decisions.simulate(problem, counts, release=RELEASE, draws=4, key=KEY)


@pytest.mark.parametrize(
  ("problem", "told"),
  [
    (lambda counts: "large", "return one number"),
    (lambda counts: counts + 1j, "complex"),
    (lambda counts: counts.sum(), "shape \\(\\)"),
    (lambda counts: (counts, counts), "returns tuple"),
  ],
)
def test_a_rule_that_returns_neither_numbers_nor_booleans_is_refused(problem, told):
  with pytest.raises(checks.ArgumentError, match=told):
    simulate(problem, np.array([1.0, 2.0]))


def test_missing_counts_name_their_rows():
  counts = np.array([1.0, np.nan, 2.0, np.nan])
  with pytest.raises(checks.ArgumentError, match=r"missing or .* row 1, 3"):
    simulate(lambda x: x, counts)
  with pytest.raises(checks.ArgumentError, match="in Ur, Uruk; drop"):
    _problems.check_counts(counts, names=["Eridu", "Ur", "Kish", "Uruk"])
  with pytest.raises(checks.ArgumentError, match="negative in row 0"):
    _problems.check_counts(np.array([-1.0, 2.0]))


def test_weights_and_totals_are_checked():
  counts = np.array([1.0, 2.0])
  with pytest.raises(checks.ArgumentError, match="weights are negative"):
    _problems.check_counts(counts, weights=np.array([1.0, -1.0]))
  with pytest.raises(checks.ArgumentError, match="total of 0"):
    _problems.check_counts(counts * 0, weights=counts)
  with pytest.raises(checks.ArgumentError, match=r"weights=-1\.0"):
    decisions.allotment([-1.0, 2.0])
  with pytest.raises(checks.ArgumentError, match="epsilon=0"):
    decisions.LaplaceRelease.for_epsilon(0)
