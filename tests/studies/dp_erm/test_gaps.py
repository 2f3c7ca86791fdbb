"""Gaps before and after a remedy, by hand."""

import pytest

from jaxfair.experiments import Table
from jaxfair.studies.dp_erm.common import gap_ratio, mean_ratio, shrinks

# Two sets, two groups; R of all is 0. Gaps before: 2 and 4; after: 1 and 8.
AFTER = {("x", "a"): 1.0, ("x", "b"): -0.5, ("y", "a"): 3.0, ("y", "b"): -8.0}
BEFORE = {("x", "a"): 2.0, ("x", "b"): -1.0, ("y", "a"): 4.0, ("y", "b"): 1.0}


def table(seeds=3, of_all=0.0):
  rows = [
    {"data": name, "remedy": way, "group": group, "seed": seed}
    | {"excess_risk": risk + of_all, "excess_risk_of_all": of_all}
    for way, risks in (("no", BEFORE), ("yes", AFTER))
    for (name, group), risk in risks.items()
    for seed in range(seeds)
  ]
  return Table.from_rows(rows)


def claims():
  way = {"remedy": ("no", "yes")}
  return shrinks("data sets", **way) >= 0.75, mean_ratio("data sets", **way) < 1


def test_the_worst_group_counts_wherever_everybody_is():
  statistic = gap_ratio("ratio", "remedy", "yes", "no")
  for of_all in (0.0, 5.0):
    found = statistic.at(data="x").estimate(table(of_all=of_all), 0.95)
    assert found.value == pytest.approx(0.5)
  assert statistic.at(data="y").estimate(table(), 0.95).value == pytest.approx(2.0)


def test_min_and_max_choose_among_the_values_that_occur():
  statistic = gap_ratio("ratio", "remedy", max, min)  # "yes" over "no"
  assert statistic.at(data="x").estimate(table(), 0.95).value == pytest.approx(0.5)


def test_the_share_of_sets_must_be_three_of_four():
  share, _ = claims()
  found = share(table())
  assert (found.value, found.verdict) == (0.5, "not supported")
  assert "data sets" in found.statistic
  found = share(table().where(data="x"))
  assert (found.value, found.verdict) == (1.0, "supported")


def test_the_ratio_is_a_geometric_mean():
  _, ratio = claims()
  found = ratio(table())
  assert found.value == pytest.approx((0.5 * 2.0) ** 0.5)
  assert found.verdict == "not supported"
  assert ratio(table().where(data="x")).verdict == "supported"
