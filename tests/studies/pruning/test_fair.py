"""The study of fair pruning: its cells, and what its claims compare."""

import numpy as np
import pytest

from helpers import pruning_runs
from jaxfair.experiments._table import Table
from jaxfair.studies.pruning import fair


def made_up(after):
  """Gaps and accuracies of everyone; `after` of fair pruning."""
  rows = [("never", "none", seed, 0.9, "everyone", 0.8 + 0.01 * seed, 0.4) for seed in (0, 1)]
  rows += [
    ("after", "relaxed", seed, 0.9, "everyone", after[0], after[1] + 0.01 * seed) for seed in (0, 1)
  ]
  rows = [(*row, "the classes") for row in rows]
  names = ("method", "constraint", "seed", "rate", "group", "accuracy", "accuracy_gap", "groups")
  columns = zip(*rows, strict=True)
  return Table(dict(zip(names, map(list, columns), strict=True)))


def test_claims_are_on_the_right_side():
  claims = {claim.name: claim.check for claim in fair.STUDY.claims}
  better, worse = made_up((0.85, 0.1)), made_up((0.5, 0.6))
  assert claims["after is fairer"](better).verdict == "supported"
  assert claims["after is fairer"](worse).verdict == "not supported"
  assert fair.COMPARABLE["after"](better).verdict == "supported"
  assert fair.COMPARABLE["after"](worse).verdict == "not supported"
  assert claims["both is fairer"](better).verdict == "not run"  # no such rows


def test_only_the_first_cell_has_the_method_without_a_constraint():
  config = pruning_runs.plan("full_gender").settings
  assert fair.methods_of(config, "relaxed") == ["never", "after"]
  assert fair.methods_of(config, "full") == ["after"]
  assert [
    *map(
      dict,
      fair.STUDY.cells(
        pruning_runs.plan(
          "full_gender", *pruning_runs.DIGITS, "data.label=digit", "data.group=label"
        ).settings
      ),
    )
  ] == [{"constraint": "relaxed"}, {"constraint": "full"}]


@pytest.mark.slow
def test_a_run_has_every_method_and_never_has_no_constraint(tmp_path):
  table, claims = pruning_runs.run_untrained(
    tmp_path / "run",
    "fair_ethnicity",
    "data.label=digit",
    "data.group=label",
    'methods=["never", "before", "after"]',
    "rates=[0.5]",
  )
  found = set(zip(table["method"], table["constraint"], strict=True))
  assert found == {("never", "none"), ("before", "relaxed"), ("after", "relaxed")}
  assert len(table) == 3 * 2 * 2 * 11  # methods, seeds, rates, groups
  dense = table["dense_loss"]
  assert np.all(np.isnan(dense) == (table["rate"] > 0))
  # Only stages that are held together step their multipliers.
  losses = {
    method: table.where(method=method, rate=0.0, group="everyone")["dense_loss"]
    for method in ("never", "before", "after")
  }
  np.testing.assert_allclose(losses["after"], losses["never"], rtol=1e-5)
  assert np.all(losses["before"] != losses["never"])
  assert "the model has not learnt" in claims["after is fairer"]["why"]  # it was drawn
  checks = {claim.name: claim.check for claim in fair.STUDY.claims}
  assert checks["after is fairer"](table).verdict != "not run"
  assert checks["full is fairer"](table).verdict == "not run"
