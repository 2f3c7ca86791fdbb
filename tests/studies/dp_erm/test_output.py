"""Output perturbation on people whose second group has larger inputs."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import accounting, training
from jaxfair.experiments import _config
from jaxfair.studies.dp_erm import common

EPSILONS = (0.1, 1.0, 10.0)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("output") / "run"
  return dp_erm_runs.run(folder, "fig_3_1", "sets=['bank']", "seeds=200", "epsilons=[0.1, 1, 10]")


def test_there_is_a_row_for_every_epsilon_seed_and_group(done):
  table, _ = done
  assert len(table) == 3 * 200 * 2
  assert set(table["role"]) == {"majority", "minority"}
  assert (table.where(role="minority")["group"] == "group 1").all()


def test_the_group_with_larger_inputs_bends_more_and_pays_more(done):
  table, claims = done
  small, large = (table.where(role=r) for r in ("majority", "minority"))
  assert large["trace"][0] > 1.2 * small["trace"][0]
  for epsilon in EPSILONS:
    means = [t.where(epsilon=epsilon)["excess_risk"].mean() for t in (small, large)]
    assert means[1] > means[0] > 0
  assert claims["same order"]["verdict"] == "supported"
  assert claims["less at larger epsilon"]["verdict"] == "supported"


def test_the_excess_is_what_theorem_3_1_says(done):
  """Mirrored noise leaves the quadratic term: its variance is known.

  z' H z / 2 has mean s^2 Tr(H) / 2 and variance s^4 Tr(H^2) / 2, at most
  s^4 Tr(H)^2 / 2, so the mean of 200 is within 5 deviations of 1 / sqrt(100).
  """
  table, _ = done
  for role in ("majority", "minority"):
    rows = table.where(role=role, epsilon=10.0)
    ratio = rows["excess_risk"].mean() / rows["predicted"][0]
    assert ratio == pytest.approx(1, abs=0.5)
    assert ratio != 1


def test_sigma_is_the_mechanism_s_own(done):
  table, _ = done
  release = training.OutputPerturbationConfig(row_norm=2 * 3**0.5, tolerance=1e-7)
  sensitivity = release.sensitivity(common.LOSS, 300)
  for epsilon in EPSILONS:
    expected = accounting.gaussian_sigma(epsilon=epsilon, delta=1e-5, sensitivity=sensitivity)
    np.testing.assert_allclose(table.where(epsilon=epsilon)["sigma"], expected, rtol=1e-6)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("sets=[]", "sets is empty"),
    ("sets=['bnak']", "mean bank"),
    ("epsilons=[0.0]", "epsilons"),
    ("row_norm=0", "row_norm"),
    ("delta=2.0", "delta"),
    ("max_people=3", "max_people=3"),
  ],
)
def test_impossible_settings_are_refused(change, told):
  with pytest.raises(_config.ConfigError, match=told):
    dp_erm_runs.plan("fig_3_1", change)
