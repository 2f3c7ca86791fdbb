"""Rank correlations and bootstraps over seeds, against SciPy and by hand."""

import numpy as np
import pytest
from scipy import stats

from jaxfair.experiments import Table, correlation, difference, mean, spread, trend
from jaxfair.experiments._statistics import least, of_points

RNG = np.random.default_rng(3)


def points(seeds=40, noise=0.1, sign=1.0):
  """Six points in two strata; y follows x, or runs against it."""
  axes = {"seed": range(seeds), "stratum": ["a", "b"], "point": [0, 1, 2]}
  x = np.broadcast_to([[0.0, 1, 2], [5, 4, 3]], (seeds, 2, 3))
  y = sign * x + noise * RNG.normal(size=x.shape)
  return Table.from_arrays({}, axes, {"x": x, "y": y})


NAMES = ("stratum", "point")


@pytest.mark.parametrize(("sign", "verdict"), [(1, True), (-1, False)])
def test_order_within_strata_decides(sign, verdict):
  check = correlation("x", "y", points=NAMES, within=("stratum",)) > 0
  rows = points(sign=sign)
  # Between the strata the order is the opposite, and must not count.
  rows = rows.plus(y=rows["y"] - 20 * sign * (rows["stratum"] == "b"))
  found = check(rows)
  assert (found.value, found.low, found.high) == (sign, sign, sign)
  assert found.verdict == ("supported" if verdict else "not supported")


def test_without_strata_all_points_are_compared():
  rows = points(noise=0.0)
  shifted = rows["y"] - 10 * (rows["stratum"] == "b")
  check = correlation("x", "y", points=NAMES) < 0
  found = check(rows.plus(y=shifted))
  expected = stats.spearmanr([0, 1, 2, 5, 4, 3], [0, 1, 2, -5, -6, -7])[0]
  assert found.value == pytest.approx(expected)
  assert found.verdict == "supported"


def test_the_bootstrap_of_a_mean_is_student_s_interval():
  value = RNG.normal(1.0, 2.0, size=200)
  rows = Table({"seed": range(200), "p": [0] * 200, "v": value})
  found = (of_points("mean", lambda labels, v: v[0], values=("v",), points=("p",)) > 0)(rows)
  low, high = stats.t.interval(0.95, 199, loc=value.mean(), scale=stats.sem(value))
  assert found.value == pytest.approx(value.mean())
  # A quantile of 1,000 draws has some 6% of a deviation's error.
  spread = 0.35 * stats.sem(value)
  np.testing.assert_allclose([found.low, found.high], [low, high], atol=spread)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    (lambda rows: rows.where(seed=0), "at least 2 seeds"),
    (lambda rows: rows.plus(y=np.full(len(rows), np.inf)), "not finite"),
    (lambda rows: Table({"x": rows["x"]}), "no column 'seed'"),
  ],
)
def test_a_check_that_cannot_run_says_why(change, told):
  found = (correlation("x", "y", points=NAMES) > 0)(change(points()))
  assert found.verdict == "not run"
  assert told in found.why


def test_at_least_lets_the_bound_itself_pass():
  rows = Table({"seed": range(3), "p": [0] * 3, "v": [0.75] * 3})
  options = {"values": ("v",), "points": ("p",)}
  share = of_points("share", lambda _, v: v[0], **options)
  assert (share >= 0.75)(rows).verdict == "supported"
  assert (share > 0.75)(rows).verdict == "not supported"


def test_a_stratum_with_a_constant_counts_as_none():
  rows = points(noise=0.0)
  flat = rows.plus(y=np.where(rows["stratum"] == "a", 1.0, rows["y"]))
  check = correlation("x", "y", points=NAMES, within=("stratum",)) > 0
  assert check(rows).value == pytest.approx(1)
  assert check(flat).value == pytest.approx(0.5)


@pytest.mark.parametrize(("over", "expected"), [(np.mean, 0.0), (np.min, -1.0), (np.max, 1.0)])
def test_one_stratum_against_the_order_is_the_least(over, expected):
  rows = points(noise=0.0)
  turned = rows.plus(y=np.where(rows["stratum"] == "a", -rows["y"], rows["y"]))
  statistic = correlation("x", "y", points=NAMES, within=("stratum",), over=over)
  found = (statistic > 0)(turned)
  assert found.value == pytest.approx(expected)
  assert found.statistic.endswith({-1.0: "least", 0.0: "stratum", 1.0: "largest"}[expected])


@pytest.mark.parametrize(("over", "expected"), [(np.min, 2.0), (np.max, 3.0)])
def test_strata_are_combined_as_asked(over, expected):
  rows = points(noise=0.0)  # the last x of stratum a is 2, that of b is 3
  statistic = of_points(
    "last x",
    lambda labels, x: x[[label[1] == 2 for label in labels]].sum(0),
    values=("x",),
    points=NAMES,
    within=("stratum",),
    over=over,
  )
  found = statistic.estimate(rows, 0.95)
  ends = (found.value, found.low, found.high)
  assert ends == pytest.approx((expected,) * 3, rel=1e-12)


def test_the_least_is_that_of_each_seed():
  value = [3.0, 1.0, 2.0, 5.0, 4.0, np.nan]
  rows = Table({"seed": [0, 0, 1, 1, 2, 2], "v": value})
  found = (least("v") > 0)(rows)
  assert found.value == pytest.approx(7 / 3)
  expected = stats.ttest_1samp([1, 2, 4], 0).confidence_interval()
  np.testing.assert_allclose([found.low, found.high], expected)


@pytest.mark.parametrize(
  ("statistic", "low", "high"),
  [
    (mean("rank_correlation").at(side="a"), -1.0, 1.0),
    (mean("accuracy").at(side="a"), 0.0, 1.0),
    (least("accuracy").at(side="a"), 0.0, 1.0),
    (spread("accuracy", "side"), -1.0, 1.0),
    (difference("accuracy", {"side": "a"}, {"side": "b"}), -1.0, 1.0),
    (difference("rank_correlation", {"side": "a"}, {"side": "b"}), -2.0, 2.0),
    (trend("accuracy", "step").at(side="a"), -1.0, 1.0),
  ],
)
def test_intervals_end_where_the_range_of_the_column_does(statistic, low, high):
  axes = {"seed": range(2), "side": ["a", "b"], "step": [0, 1]}
  values = np.array([[[1.0, 0.9], [0.0, 0.1]], [[0.1, 0.2], [1.0, 0.9]]])
  rows = Table.from_arrays({}, axes, {"accuracy": values, "rank_correlation": 2 * values - 1})
  found = statistic.estimate(rows, 0.95)
  assert (found.low, found.high) == (low, high)  # Student's of two seeds are wider
  wide = rows.plus(accuracy=3 * rows["accuracy"], rank_correlation=3 * rows["rank_correlation"])
  free = statistic.estimate(wide, 0.95)  # not a share, whatever its name says
  assert (free.low < low and free.high > high) or "rank correlation of" in free.words
