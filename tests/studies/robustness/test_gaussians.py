"""The theory's study: its numbers against the library, its claims' teeth."""

import numpy as np
import pytest

from jaxfair import experiments
from jaxfair.experiments import _config, _runs
from jaxfair.experiments._table import Table
from jaxfair.robustness import _gaussians
from jaxfair.studies.robustness import gaussians

CLAIMS = {claim.name: claim.check for claim in gaussians.STUDY.claims}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
  plan = _runs.plan(gaussians.STUDY, {"draws": 2000, "ratios": [5.0]})
  return experiments.execute(plan, tmp_path_factory.mktemp("run"))


def test_rows_are_the_library_s_numbers(table):
  rows = table.where(part="curves", epsilon=0.2, classifier="robust")
  at = _gaussians.robust_threshold(-1.0, 1.0, 5.0, 0.2)
  assert rows["threshold"][0] == pytest.approx(float(at))
  error = _gaussians.robust_error(at, -1.0, 1.0, 5.0, epsilon=0.2)
  assert rows["robust_error"][0] == pytest.approx(float(error))


def test_what_the_thesis_states_is_found(table):
  found = {name: check(table).verdict for name, check in CLAIMS.items()}
  assert found.pop("boundary errors, everywhere") == "not supported"
  found.pop("robust errors, everywhere")  # rare: 4 of 2,000 settings
  assert set(found.values()) == {"supported"}, found


def test_one_setting_out_of_order_is_enough(table):
  broken = table["order_thresholds"].copy()
  stated = np.flatnonzero(table["order_stated"] == 1)
  broken[stated[0]] = 0.0
  finding = CLAIMS["thresholds"](table.plus(order_thresholds=broken))
  assert finding.verdict == "not supported"
  assert finding.high < 1


def test_a_closed_form_that_is_off_is_seen(table):
  off = np.where(table["part"] == "curves", 1e-6, np.nan)
  assert CLAIMS["closed forms"](table.plus(off=off)).verdict == "not supported"


def test_no_random_settings_is_not_run():
  finding = CLAIMS["thresholds"](Table({"part": ["curves"]}))
  assert finding.verdict == "not run"


def test_pushes_beyond_the_means_are_refused():
  with pytest.raises(_config.ConfigError, match="1/2 of the distance"):
    _runs.plan(gaussians.STUDY, {"epsilons": [1.5]})
