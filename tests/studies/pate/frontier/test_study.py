"""Plain PATE's frontier, on a few made-up people."""

import numpy as np
import pytest

from helpers import pate_studies
from jaxfair import experiments
from jaxfair.experiments import ConfigError

GRID = {
  "epsilons": [3.0, 300.0],
  "sigmas": [6.0],
  "thresholds": [0.0, 0.9],
  "sigma_threshold": 3.0,
  "draws": 2,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs")
  return folder, pate_studies.run("pate.frontier", folder, **GRID)


@pytest.mark.slow
def test_rows_are_what_a_frontier_needs(table):
  folder, rows = table
  assert len(rows) == 4 * 2
  found = experiments.read_frontier(folder / "pate.frontier")
  assert found.points.values.shape[1:] == (2, 4)
  assert found.keys == ("threshold",)
  assert {"gnmax", "confident-gnmax"} >= set(found.methods)


@pytest.mark.slow
def test_a_large_budget_pays_for_all_and_a_test_refuses_some(table):
  _, rows = table
  plain = rows.where(threshold=0.0, epsilon=300.0)
  assert (plain["coverage"] == 1).all()
  assert (plain["answered"] == 40).all()
  tested = rows.where(threshold=0.9, epsilon=300.0)
  assert ((tested["coverage"] > 0) & (tested["coverage"] < 1)).all()
  small = rows.where(threshold=0.0, epsilon=3.0)
  assert (small["answered"] < 40).all()
  known = rows["accuracy"][~np.isnan(rows["accuracy"])]
  assert ((known >= 0) & (known <= 1)).all()


def test_wrong_settings_are_refused(tmp_path):
  for name, value in (("thresholds", [1.5]), ("sigmas", [0.0]), ("delta", 1.0)):
    with pytest.raises(ConfigError, match=name):
      pate_studies.plan("pate.frontier", tmp_path, **{name: value})
