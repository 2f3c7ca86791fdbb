"""Excess risk by input norm, on made-up people."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair.studies.dp_erm.inputs import GROUP, SHELL


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("inputs") / "run"
  return dp_erm_runs.run_untrained(
    folder, "fig_3_6", "sets=['bank']", "seeds=3", "shells=4", "training.hidden=4"
  )


def test_shells_are_equal_parts_in_order(done):
  table, claims = done
  assert len(table) == 3 * (2 + 4)
  shells = table.where(**SHELL, seed=0)
  assert (np.diff(shells["input_norm"]) > 0).all()
  assert table.where(**GROUP)["group"].tolist()[:2] == ["group 0", "group 1"]
  assert all(claim["verdict"] != "not run" for claim in claims.values())


def test_groups_and_shells_are_parts_of_the_same_people(done):
  """Equal shells: their mean risk is everybody's, and so is the groups'."""
  table, _ = done
  for seed in range(3):
    shells = table.where(**SHELL, seed=seed)["excess_risk"].mean()
    groups = table.where(**GROUP, seed=seed)["excess_risk"]
    assert shells == pytest.approx(groups @ [2 / 3, 1 / 3], rel=1e-3, abs=1e-5)
