"""Claims: intervals against SciPy, and when a check does not run."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

from jaxfair.experiments import Table, but, difference, mean, spread, trend
from jaxfair.experiments._claims import every, or_missing
from jaxfair.experiments._statistics import exact, rank_correlation

VALUES = np.array([0.3, 0.5, 0.1, 0.4])


def table(**columns):
  return Table({"seed": range(4), "value": VALUES} | columns)


def test_mean_above_is_student_s_interval():
  finding = (mean("value") > 0)(table())
  low, high = stats.t.interval(0.95, 3, loc=VALUES.mean(), scale=stats.sem(VALUES))
  np.testing.assert_allclose([finding.value, finding.low, finding.high], [VALUES.mean(), low, high])
  assert finding.verdict == "supported"
  assert finding.statistic == "mean value"


@pytest.mark.parametrize("above", [1e-9, -1e-9])
def test_the_lower_end_decides(above):
  low = (mean("value") > 0)(table()).low
  finding = (mean("value") > low + above)(table())
  assert finding.verdict == ("supported" if above < 0 else "undecided")


def test_rows_of_one_seed_are_averaged_first():
  twice = Table.concat([table(), table(value=VALUES + 1)])
  finding = (mean("value") > 0)(twice)
  alone = (mean("value") > 0)(table(value=VALUES + 0.5))
  np.testing.assert_allclose(
    [finding.value, finding.low, finding.high], [alone.value, alone.low, alone.high]
  )


def test_difference_is_paired_by_seed():
  other = np.array([0.1, 0.2, 0.0, 0.3])
  # The second model's seeds come in another order.
  order = [2, 0, 3, 1]
  both = Table.concat(
    [table(model=["a"] * 4), Table({"seed": order, "value": other[order], "model": ["b"] * 4})]
  )
  finding = (difference("value", {"model": "a"}, {"model": "b"}) > 0.05)(both)
  alone = stats.ttest_rel(VALUES, other).confidence_interval(0.95)
  np.testing.assert_allclose([finding.low, finding.high], [*alone])
  assert finding.value == pytest.approx((VALUES - other).mean())
  assert "model=a minus model=b, paired" in finding.statistic


@pytest.mark.parametrize(
  ("check", "rows", "why"),
  [
    ((mean("none") > 0), table(), "no column 'none'"),
    ((mean("value") > 0).at(**{"m": 1}), table(), "no column 'm'"),
    ((mean("value") > 0).at(**{"seed": 9}), table(), "no rows with seed=9"),
    ((mean("value") > 0), Table({"seed": [0, 0], "value": [1, 2]}), "at least 2 seeds"),
    ((mean("value") > 0), table(value=[math.nan] * 3 + [1]), "at least 2 seeds"),
    ((mean("value") > 0), table(value=[math.nan] * 4), "at least 2"),
    ((mean("value") > 0), table(value=[math.inf, 1, 2, 3]), "infinite"),
    ((mean("value") > 0), table(value=["a"] * 4), "holds no numbers"),
    ((difference("value", {"seed": (0, 1)}, {"seed": (2, 3)}) > 0), table(), "at least 2 seeds"),
    ((difference("value", {"seed": 0}, {"seed": 9}) > 0), table(), "no rows with seed=9"),
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
  finding = (mean("value") > 0)(table(value=[math.nan, 1, 2, 3]))
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
  check = (spread("cost", "group") > 0).at(group=but("everyone"))
  found = check(spread_table())
  assert found.statistic == "cost: b minus a, paired"
  assert found.value == pytest.approx(1.0, abs=0.02)
  assert found.verdict == "supported"
  # Pairs share their seed's noise, so the interval is far below it.
  assert found.high - found.low < 0.1


def test_a_spread_needs_two():
  check = (spread("cost", "group") > 0).at(group=but("everyone"))
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
  finding = (trend("value", "place") > 0 if rises else trend("value", "place") < 0)(along(values))
  assert finding.verdict == ("supported" if holds else "not supported")
  expected = stats.spearmanr(range(4), values).statistic
  assert finding.value == pytest.approx(expected)


def test_a_trend_s_interval_is_over_seeds():
  rows = Table.concat(
    [
      along([1, 2, 3, 4], 1),
      along([1, 3, 2, 4], 1).plus(seed=[1] * 4),
      along([1, 2, 4, 3], 1).plus(seed=[2] * 4),
    ]
  )
  finding = (trend("value", "place") > 0)(rows)
  each = [1.0, 0.8, 0.8]
  low, _ = stats.t.interval(0.95, 2, loc=np.mean(each), scale=stats.sem(each))
  assert finding.low == pytest.approx(low)
  assert finding.high == 1  # no correlation is larger


def test_a_trend_needs_two_places():
  finding = (trend("value", "place") > 0)(along([1]))
  assert finding.verdict == "not run"
  assert finding.why == "place has one value only"


def test_ranks_agree_with_scipy_on_ties():
  rng = np.random.default_rng(1)
  first, second = rng.integers(0, 5, (2, 40))
  expected = stats.spearmanr(first, second).statistic
  assert rank_correlation(first, second) == pytest.approx(expected)
  assert math.isnan(rank_correlation(first, np.ones(40)))
  a, b = rng.normal(size=(2, 9, 4))
  each = [stats.spearmanr(a[:, i], b[:, i]).statistic for i in range(4)]
  np.testing.assert_allclose(rank_correlation(a, b), each, atol=1e-12)


def test_in_each_needs_all_and_lists_them():
  good, bad = table(data=["a"] * 4), table(value=-VALUES, data=["b"] * 4)
  check = (mean("value") > 0).in_each("data")
  assert check(good).verdict == "supported"
  both = check(Table.concat([good, bad]))
  assert both.verdict == "not supported"
  assert both.value == pytest.approx(-VALUES.mean())
  assert both.statistic == "mean value: a 0.325, b -0.325"
  unknown = table(value=[np.nan] * 4, data=["c"] * 4)
  missing = check(Table.concat([good, unknown]))
  assert missing.verdict == "not run"
  assert missing.why.endswith("(data c)")


@pytest.mark.parametrize(
  ("bound", "above", "below"),
  [
    (0.0, "supported", "not supported"),
    (0.3, "undecided", "undecided"),
    (1.0, "not supported", "supported"),
  ],
)
def test_an_interval_that_holds_both_answers_decides_nothing(bound, above, below):
  assert (mean("value") > bound)(table()).verdict == above
  assert (mean("value") < bound)(table()).verdict == below


def test_one_undecided_value_leaves_the_claim_undecided():
  unclear = table(value=VALUES - 0.3, data=["b"] * 4)
  both = Table.concat([table(data=["a"] * 4), unclear])
  found = (mean("value") > 0).in_each("data")(both)
  assert found.verdict == "undecided"
  assert found.value == pytest.approx(VALUES.mean() - 0.3)


def test_between_two_bounds():
  assert mean("value").between(0.0, 1.0)(table()).verdict == "supported"
  assert mean("value").between(2.0, 3.0)(table()).verdict == "not supported"
  assert mean("value").between(0.3, 1.0)(table()).verdict == "undecided"


def test_rows_are_chosen_by_value_by_function_and_where_missing():
  rows = table(rate=[0.1, 0.2, 0.3, math.nan])
  ends = exact("ends", lambda t: float(t["value"].sum()))
  assert (ends > 0).at(rate=max)(rows).value == VALUES[2]
  assert (ends > 0).at(rate=(0.1, 0.2))(rows).value == VALUES[:2].sum()
  assert (ends > 0).at(rate=but(0.1))(rows).value == VALUES[1:3].sum()
  assert (ends > 0).at(rate=or_missing(max))(rows).value == VALUES[2:].sum()
  assert ends.at(rate=min).estimate(rows, 0.95).value == VALUES[0]
  assert (ends > 0).at(rate=9)(rows).why == "no rows with rate=9"


def test_every_check_of_a_table_must_hold():
  def neighbors(rows):
    names = rows.unique("model")
    pairs = itertools.pairwise(names)
    return {f"{a} {b}": difference("value", {"model": b}, {"model": a}) > 0 for a, b in pairs}

  check = every(neighbors)
  up = Table.concat([table(model=[name] * 4, value=VALUES + i) for i, name in enumerate("abc")])
  assert check(up).verdict == "supported"
  down = Table.concat([up, table(model=["d"] * 4, value=VALUES - 1)])
  assert check(down).verdict == "not supported"
  assert check(up.where(model="a")).why == "nothing to compare"
  assert check(table()).why == "the table has no column 'model'; use one of seed, value"
  assert every(neighbors, model="a")(up).why == "nothing to compare"


def test_a_relative_difference_is_divided_by_the_mean_of_the_second():
  rows = Table(
    {
      "seed": [0, 1, 2] * 2,
      "method": ["new"] * 3 + ["old"] * 3,
      "cost": [3.0, 4.0, 8.0, 2.0, 4.0, 6.0],
    }
  )
  sides = {"method": "new"}, {"method": "old"}
  found = (difference("cost", *sides, relative=True) > 0)(rows)
  plain = (difference("cost", *sides) > 0)(rows)
  assert found.value == pytest.approx(15 / 12 - 1)
  assert (found.low, found.high) == pytest.approx((plain.low / 4, plain.high / 4))
  free = rows.plus(cost=rows["cost"] * (rows["method"] == "new"))
  told = (difference("cost", *sides, relative=True) > 0)(free)
  assert told.verdict == "not run"
  assert "mean cost of method=old is not positive" in told.why


def levels_table(**shifts):
  """Four seeds of each data set, `VALUES` minus their mean plus a shift."""
  return Table.concat(
    [table(value=VALUES - VALUES.mean() + s, data=[d] * 4) for d, s in shifts.items()]
  )


def half_width(level):
  return stats.t.ppf((1 + level) / 2, 3) * stats.sem(VALUES)


WIDE, WIDER = half_width(0.95), half_width(1 - 0.05 / 3)
BETWEEN = (WIDE + WIDER) / 2  # above 0 at 95%, not at the corrected level


@pytest.mark.parametrize(
  ("shifts", "verdict"),
  [
    ({"a": -9, "b": 1.01 * WIDER, "c": -9}, "supported"),
    ({"a": -9, "b": BETWEEN, "c": -9}, "undecided"),
    ({"a": -9, "b": 0.0, "c": -9}, "undecided"),
    ({"a": -BETWEEN, "b": -BETWEEN, "c": -9}, "not supported"),  # each at its own 95%
    ({"a": -BETWEEN, "b": 0.0, "c": -9}, "undecided"),
  ],
)
def test_in_some_needs_one_at_the_corrected_level(shifts, verdict):
  found = (mean("value") > 0).in_some("data")(levels_table(**shifts))
  assert found.verdict == verdict
  if verdict != "not supported":
    np.testing.assert_allclose(found.high - found.low, 2 * WIDER)
    assert "in at least one of 3 (intervals at 98.33%): a -" in found.statistic


def test_in_some_does_not_mind_what_was_not_run_if_one_holds():
  rows = Table.concat([levels_table(a=1.0), levels_table(b=1.0).where(seed=0)])
  assert (mean("value") > 0).in_some("data")(rows).verdict == "supported"
  lost = (mean("value") < 0).in_some("data")(rows)
  assert (lost.verdict, lost.why) == ("not run", "an interval needs at least 2 seeds (data b)")


@pytest.mark.parametrize(
  ("shifts", "verdict"),
  [
    ((1, 1, -1), "supported"),
    ((1, 1, -1, -1), "not supported"),  # half is no majority
    ((1, 1, 0), "supported"),
    ((1, 0, -1), "undecided"),
    ((1, 1, 0, -1), "undecided"),
    ((0, -1, -1), "not supported"),
  ],
)
def test_in_most_counts_a_majority_each_at_its_own_level(shifts, verdict):
  rows = levels_table(**{f"d{i}": s * BETWEEN for i, s in enumerate(shifts)})
  found = (mean("value") > 0).in_most("data")(rows)
  assert found.verdict == verdict
  assert f"in {shifts.count(1)} of {len(shifts)}: d0" in found.statistic
  np.testing.assert_allclose(found.high - found.low, 2 * WIDE)


def test_in_most_needs_to_know_enough():
  unknown = levels_table(c=1.0).where(seed=0)
  check = (mean("value") > 0).in_most("data")
  assert check(Table.concat([levels_table(a=1.0, b=1.0), unknown])).verdict == "supported"
  assert check(Table.concat([levels_table(a=-1.0, b=-1.0), unknown])).verdict == "not supported"
  assert check(Table.concat([levels_table(a=1.0, b=-1.0), unknown])).verdict == "not run"


def test_the_level_reaches_what_is_nested():
  rows = Table.concat([levels_table(a=BETWEEN, b=BETWEEN, c=-9.0).plus(x=[x] * 12) for x in "pq"])
  assert (mean("value") > 0).in_each("x").in_some("data")(rows).verdict == "undecided"
  assert (mean("value") > 0).in_some("data").in_each("x")(rows).verdict == "undecided"
  assert (mean("value") > -0.3).in_each("x").in_some("data")(rows).verdict == "supported"


def test_a_false_can_is_rarely_called_true():
  # Five data sets without an effect: one of 400 tables at most 5% of the time, so under 36 of them
  # with a probability above 1 - 1e-4; without the correction about 12% (48) are called true.
  rng = np.random.default_rng(0)
  values = rng.normal(size=(400, 5, 4))
  half = stats.t.ppf(0.975, 3) * stats.sem(values, axis=-1)
  assert ((values.mean(-1) - half) > 0).any(-1).sum() > 36
  check, called = (mean("value") > 0).in_some("data"), 0
  for one in values:
    rows = {"seed": [*range(4)] * 5, "data": np.repeat(list("abcde"), 4), "value": one.ravel()}
    called += check(Table(rows)).verdict == "supported"
  assert called < 36
