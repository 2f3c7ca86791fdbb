"""One setting of DP-SGD at a time, at the same privacy."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import training
from jaxfair.experiments import _config


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("hyperparameters") / "run"
  return dp_erm_runs.run_untrained(
    folder, "hyperparameters", "sets=['bank']", "training.hidden=3", "depths=[1, 2]"
  )


def test_every_end_of_every_knob_is_a_cell(done):
  table, claims = done
  assert len(table) == 3 * 2 * 2 * 2  # knobs, ends, seeds, groups
  assert set(table["knob"]) == {"batch size", "learning rate", "depth"}
  assert np.isfinite(table["trace"]).all()
  assert np.isfinite(table["top_eigenvalue"]).all()
  assert set(claims) == {"batch size", "learning rate", "depth", "spectrum"}


def test_all_trainings_cost_the_same(done):
  table, _ = done
  used = dp_erm_runs.plan("hyperparameters").settings.training.private()
  for batch in (16, 128):
    own = training.DpSgdConfig(steps=used.steps, batch_size=batch, l2_clip=used.l2_clip)
    expected = training.calibrate(own, 300, epsilon=2.0, delta=1e-5).noise_multiplier
    found = table.where(knob="batch size", value=batch)["noise_multiplier"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
  rates = table.where(knob="learning rate")["noise_multiplier"]
  assert len(np.unique(rates)) == 1


def test_one_value_is_no_comparison():
  with pytest.raises(_config.ConfigError, match="at least two values"):
    dp_erm_runs.plan("hyperparameters", "rates=[0.1]")
