"""Gaps before and after a remedy, by hand."""

import numpy as np
import pytest

from jaxfair.experiments import Table
from jaxfair.studies.dp_erm.gaps import gap_ratio, gap_shrinks, worst_gaps

# Two sets, two groups; R of all is 0. Gaps before: 2 and 4; after: 1 and 8.
AFTER = {("x", "a"): 1.0, ("x", "b"): -0.5, ("y", "a"): 3.0, ("y", "b"): -8.0}
BEFORE = {("x", "a"): 2.0, ("x", "b"): -1.0, ("y", "a"): 4.0, ("y", "b"): 1.0}


def table(seeds=3):
  rows = [
    (name, way, group, seed, risk, 0.0)
    for way, risks in (("no", BEFORE), ("yes", AFTER))
    for (name, group), risk in risks.items()
    for seed in range(seeds)
  ]
  names = ("data", "remedy", "group", "seed", "excess_risk",
           "excess_risk_of_all")  # fmt: skip
  return Table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_the_worst_group_counts():
  labels = [("x", "a"), ("x", "b"), ("y", "a")]
  gaps = worst_gaps(labels, np.array([[1.0], [-3], [2]]), np.ones((3, 1)))
  assert {name: gap.tolist() for name, gap in gaps.items()} == {
    ("x",): [4.0],
    ("y",): [1.0],
  }


@pytest.mark.parametrize(("at_least", "holds"), [(0.5, True), (0.75, False)])
def test_the_share_of_sets(at_least, holds):
  found = gap_shrinks("remedy", "no", "yes", at_least=at_least)(table())
  assert (found.value, found.holds) == (0.5, holds)
  assert "data sets" in found.statistic


def test_the_ratio_is_a_geometric_mean():
  found = gap_ratio("remedy", "no", "yes")(table())
  assert found.value == pytest.approx((0.5 * 2.0) ** 0.5)
  assert not found.holds
  assert gap_ratio("remedy", "no", "yes", below=1.01)(table()).holds
