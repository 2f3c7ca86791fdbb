"""Slopes of unfairness by epsilon, measured and predicted."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import experiments
from jaxfair.studies.dp_erm import slopes


def table(power, level=1.0, kind=slopes.OUTPUT):
  """Two groups whose deviations are level / epsilon^power; predicted are 1 / epsilon^2."""
  rows = [
    {
      "kind": kind,
      "data": "made up",
      "epsilon": epsilon,
      "seed": seed,
      "group": group,
      "deviation": sign * level * epsilon**-power * (1 + 0.01 * seed),
      "predicted": sign * epsilon**-2.0,
    }
    for epsilon in (0.01, 0.1, 1.0)
    for seed in range(5)
    for group, sign in (("a", -0.5), ("b", 1.0))
  ]
  return experiments.Table.from_rows(rows)


@pytest.mark.parametrize("power", [1.0, 2.0, 2.5])
def test_a_slope_is_compared_with_the_predicted_one(power):
  found = slopes.SLOPES.estimate(table(power), 0.95)
  assert found.value == pytest.approx(2 - power)
  assert found.low <= 2 - power + 1e-9


def test_a_level_is_that_of_the_largest_epsilon():
  found = slopes.LEVEL.estimate(table(1.0, level=3.0), 0.95)
  assert found.value == pytest.approx(3 * 1.02)  # mean over seeds


def test_claims_are_judged_on_their_own_mechanism():
  claims = {claim.name: claim.check for claim in slopes.STUDY.claims}
  same = claims["output perturbation"](table(2.0))
  assert same.verdict == "supported"
  assert claims["output perturbation"](table(1.0)).verdict == "not supported"
  assert claims["allotment"](table(2.0)).verdict == "not run"
  assert claims["DP-SGD"](table(1.0, kind=slopes.SGD)).verdict == "supported"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("slopes") / "run"
  sets = ("sets=['bank']", "training.hidden=3", "sgd_epsilons=[1.0, 4.0]", "seeds=3")
  return dp_erm_runs.run_untrained(folder, "slopes", *sets)


def test_all_three_mechanisms_are_in_one_table(done):
  found, claims = done
  assert set(found["kind"]) == {slopes.OUTPUT, slopes.SGD, slopes.ALLOTMENT}
  assert np.isfinite(found["deviation"]).all()
  for kind, slope in ((slopes.SGD, None), (slopes.ALLOTMENT, -2.0)):
    own = found.where(kind=kind)
    worst = [np.abs(part["predicted"]).max() for _, part in own.split("epsilon")]
    assert np.all(np.diff(worst) < 0)
    if slope is not None:  # Laplace noise has a variance of 2 / epsilon^2
      assert np.log(worst[1] / worst[0]) / np.log(10) == pytest.approx(slope, abs=1e-6)
  assert claims["allotment"]["verdict"] != "not run"


def test_predicted_gaps_are_those_of_the_theorem(done):
  found, _ = done
  own = found.where(kind=slopes.OUTPUT, seed=0)
  for _, part in own.split("epsilon"):
    half = 0.5 * part["sigma"] ** 2
    share = np.array([2 / 3, 1 / 3])  # of the groups
    np.testing.assert_allclose(
      part["predicted"], half * (part["trace"] - part["trace"] @ share), rtol=1e-4
    )
