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
