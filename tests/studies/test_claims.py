"""Claims: intervals against SciPy, and when a check does not run."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from jaxfair.studies import Table, claims

VALUES = np.array([0.3, 0.5, 0.1, 0.4])


def table(**columns):
  return Table({"seed": range(4), "value": VALUES} | columns)


def test_mean_above_is_student_s_interval():
  finding = claims.mean_above("value")(table())
  low, high = stats.t.interval(
    0.95, 3, loc=VALUES.mean(), scale=stats.sem(VALUES)
  )
  np.testing.assert_allclose(
    [finding.value, finding.low, finding.high], [VALUES.mean(), low, high]
  )
  assert finding.holds
  assert finding.statistic == "mean value"


@pytest.mark.parametrize("above", [1e-9, -1e-9])
def test_the_lower_end_decides(above):
  low = claims.mean_above("value")(table()).low
  finding = claims.mean_above("value", low + above)(table())
  assert finding.holds == (above < 0)
  assert finding.verdict == ("supported" if above < 0 else "not supported")


def test_rows_of_one_seed_are_averaged_first():
  twice = Table.concat([table(), table(value=VALUES + 1)])
  finding = claims.mean_above("value")(twice)
  alone = claims.mean_above("value")(table(value=VALUES + 0.5))
  np.testing.assert_allclose(
    [finding.value, finding.low, finding.high],
    [alone.value, alone.low, alone.high],
  )


def test_difference_is_paired_by_seed():
  other = np.array([0.1, 0.2, 0.0, 0.3])
  # The second model's seeds come in another order.
  order = [2, 0, 3, 1]
  both = Table.concat(
    [
      table(model=["a"] * 4),
      Table({"seed": order, "value": other[order], "model": ["b"] * 4}),
    ]
  )
  finding = claims.difference_above(
    "value", 0.05, first={"model": "a"}, second={"model": "b"}
  )(both)
  alone = stats.ttest_rel(VALUES, other).confidence_interval(0.95)
  np.testing.assert_allclose([finding.low, finding.high], [*alone])
  assert finding.value == pytest.approx((VALUES - other).mean())
  assert "model=a minus model=b, paired" in finding.statistic


@pytest.mark.parametrize(
  ("check", "rows", "why"),
  [
    (claims.mean_above("none"), table(), "no column none"),
    (claims.mean_above("value", where={"m": 1}), table(), "no column m"),
    (
      claims.mean_above("value", where={"seed": 9}),
      table(),
      "no rows with seed=9",
    ),
    (
      claims.mean_above("value"),
      Table({"seed": [0, 0], "value": [1, 2]}),
      "at least 2 seeds",
    ),
    (
      claims.mean_above("value"),
      table(value=[math.nan] * 3 + [1]),
      "at least 2 seeds",
    ),
    (claims.mean_above("value"), table(value=[math.nan] * 4), "at least 2"),
    (claims.mean_above("value"), table(value=[math.inf, 1, 2, 3]), "infinite"),
    (claims.mean_above("value"), table(value=["a"] * 4), "holds no numbers"),
    (
      claims.difference_above(
        "value", first={"seed": (0, 1)}, second={"seed": (2, 3)}
      ),
      table(),
      "at least 2 seeds",
    ),
    (
      claims.difference_above("value", first={"seed": 0}, second={"seed": 9}),
      table(),
      "no rows with seed=9",
    ),
  ],
)
def test_a_check_that_cannot_run_says_why(check, rows, why):
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    finding = check(rows)
  assert finding.verdict == "not run"
  assert why in finding.why
  assert math.isnan(finding.value)


def test_a_seed_without_a_value_drops_out():
  finding = claims.mean_above("value")(table(value=[math.nan, 1, 2, 3]))
  assert finding.value == 2.0


def spread_table():
  """Two groups ten seeds, b pays 1 more than a; everyone pays a lot."""
  rng = np.random.default_rng(0)
  base = rng.normal(size=10)
  cost = np.concatenate([base, base + 1 + 0.01 * rng.normal(size=10), base + 9])
  return Table(
    {
      "group": ["a"] * 10 + ["b"] * 10 + ["everyone"] * 10,
      "seed": [*range(10)] * 3,
      "cost": cost.tolist(),
    }
  )


def test_a_spread_is_paired_and_leaves_the_whole_out():
  check = claims.spread_above("cost", between="group", without="everyone")
  found = check(spread_table())
  assert found.statistic == "cost: b minus a, paired"
  assert found.value == pytest.approx(1.0, abs=0.02)
  assert found.verdict == "supported"
  # Pairs share their seed's noise, so the interval is far below it.
  assert found.high - found.low < 0.1


def test_a_spread_needs_two():
  check = claims.spread_above("cost", between="group", without="everyone")
  one = spread_table().where(group="a")
  assert check(one).why == "fewer than two groups"


def along(values, seeds=3):
  """Rows of several seeds at the places 0, 1, 2, ..."""
  return Table.concat(
    [
      Table({"seed": [s] * len(row), "place": range(len(row)), "value": row})
      for s, row in enumerate([values] * seeds)
    ]
  )


@pytest.mark.parametrize(
  ("values", "rises", "holds"),
  [
    ([1, 2, 3, 5], True, True),
    ([1, 2, 3, 5], False, False),
    ([5, 3, 2, 1], False, True),
    ([1, 3, 2, 0], True, False),
  ],
)
def test_a_trend_is_a_rank_correlation(values, rises, holds):
  finding = claims.trend("value", "place", rises=rises)(along(values))
  assert finding.holds is holds
  expected = stats.spearmanr(range(4), values).statistic
  assert finding.value == pytest.approx(expected)


def test_a_trend_s_interval_is_over_seeds():
  rows = Table.concat(
    [along([1, 2, 3, 4], 1), along([1, 3, 2, 4], 1).plus(seed=[1] * 4),
     along([1, 2, 4, 3], 1).plus(seed=[2] * 4)]
  )  # fmt: skip
  finding = claims.trend("value", "place", rises=True)(rows)
  each = [1.0, 0.8, 0.8]
  low, _ = stats.t.interval(0.95, 2, loc=np.mean(each), scale=stats.sem(each))
  assert finding.low == pytest.approx(low)
  assert finding.high == 1  # no correlation is larger


def test_a_trend_needs_two_places():
  finding = claims.trend("value", "place", rises=True)(along([1]))
  assert finding.holds is None
  assert finding.why == "place has one value only"


def test_ranks_agree_with_scipy_on_ties():
  rng = np.random.default_rng(1)
  first, second = rng.integers(0, 5, (2, 40))
  expected = stats.spearmanr(first, second).statistic
  assert claims.rank_correlation(first, second) == pytest.approx(expected)
  assert math.isnan(claims.rank_correlation(first, np.ones(40)))
  a, b = rng.normal(size=(2, 9, 4))
  each = [stats.spearmanr(a[:, i], b[:, i]).statistic for i in range(4)]
  np.testing.assert_allclose(claims.rank_correlation(a, b), each, atol=1e-12)


def test_in_each_needs_all_and_lists_them():
  good, bad = table(data=["a"] * 4), table(value=-VALUES, data=["b"] * 4)
  check = claims.in_each("data", claims.mean_above("value"))
  assert check(good).holds
  both = check(Table.concat([good, bad]))
  assert both.holds is False
  assert both.value == pytest.approx(-VALUES.mean())
  assert both.statistic == "mean value: a 0.325, b -0.325"
  unknown = table(value=[np.nan] * 4, data=["c"] * 4)
  missing = check(Table.concat([good, unknown]))
  assert missing.holds is None
  assert missing.why.endswith("(data c)")
