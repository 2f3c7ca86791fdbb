"""RQ3: claims about the frontiers of two sets, on tables whose answer is known."""

import pytest

from helpers import frontier_runs
from jaxfair.experiments import Table
from jaxfair.studies import fairpate
from jaxfair.studies.fairpate.charging import PAPER


@pytest.fixture(scope="module")
def two():
  """The same frontier twice, the second at another level of accuracy."""
  first, second = (_asked_for(frontier_runs.table(data=name)) for name in ("one", "other"))
  second = second.plus(accuracy=second["accuracy"] - 0.1)
  return first, second


def _asked_for(table):
  """FairPATE's frontier: noise and threshold of plain PATE's are taken for margins."""
  many = len(table)
  margins = table["sigma"] + table["threshold"]
  return table.plus(method=["fairpate"] * many, charge=[PAPER] * many, max_gap=margins)


def claim(name):
  (found,) = (c for c in fairpate.STUDY.claims if c.name == name)
  return found.check


@pytest.mark.slow
def test_frontiers_at_another_level_have_the_same_shape(two):
  found = claim("same shape")(Table.concat(two))
  assert found.value == pytest.approx(1.0)
  # The same seeds are drawn anew for each set, so the interval has a width.
  assert found.low < found.value
  moved = claim("specified elsewhere")(Table.concat(two))
  assert moved.value == pytest.approx(0.0, abs=1e-12)
  assert moved.high < 0.02
  assert moved.verdict == "supported"


def test_a_frontier_turned_round_is_no_guide(two):
  first, second = two
  turned = second.plus(accuracy=0.9 - second["accuracy"])
  both = Table.concat([first, turned])
  assert claim("specified elsewhere")(both).verdict == "not supported"
  assert claim("same shape")(both).verdict == "not supported"


def test_one_set_cannot_be_compared(two):
  for name in ("same shape", "specified elsewhere"):
    found = claim(name)(two[0])
    assert found.verdict == "not run"
    assert "one data set" in found.why
