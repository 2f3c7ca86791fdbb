"""Clip bounds on made-up people."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair.experiments import _config

pytestmark = pytest.mark.slow  # networks are trained here


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("clipping") / "run"
  return dp_erm_runs.run(
    folder,
    "fig_3_3",
    "sets=['bank']",
    "seeds=4",
    "clips=[0.01, 10.0]",
    "training.hidden=4",
    "training.steps=100",
    "training.plain_steps=200",
    "training.snapshots=2",
    "training.learning_rate=0.5",
    "training.noise_multiplier=0.1",
  )


def test_every_look_is_a_row(done):
  table, _ = done
  assert len(table) == 2 * 4 * 3 * 2
  assert table.unique("step") == [0, 50, 100]
  assert set(table.where(at_end="yes")["step"]) == {100}
  start = table.where(step=0)  # the start is the same whatever the bound
  np.testing.assert_allclose(
    start.where(clip=0.01)["gradient_norm"], start.where(clip=10.0)["gradient_norm"]
  )


def test_a_tight_bound_leaves_the_network_where_it_began(done):
  table, claims = done
  loose = table.where(clip=10.0)
  tight = table.where(clip=0.01)
  began = loose.where(step=0)["excess_risk"].mean()
  assert began > 0.05  # plain training is far better than the start
  assert loose.where(at_end="yes")["excess_risk"].mean() < 0.5 * began
  assert tight.where(at_end="yes")["excess_risk"].mean() > 0.5 * began
  assert claims["norms fall"]["verdict"] == "supported"
  assert claims["larger norms pay"]["verdict"] != "not run"


def test_everybody_s_risk_is_the_groups_mean(done):
  table, _ = done
  rows = table.where(step=100, clip=10.0, seed=1)
  mean = (
    2 * rows.where(role="majority")["excess_risk"] + rows.where(role="minority")["excess_risk"]
  ) / 3
  assert rows["excess_risk_of_all"][0] == pytest.approx(mean[0], rel=1e-4)


def test_one_bound_is_no_comparison():
  with pytest.raises(_config.ConfigError, match="at least two values"):
    dp_erm_runs.plan("fig_3_3", "clips=[1.0]")
