"""The PATE study, end to end, on digits that need no file."""

import pathlib

import numpy as np
import pytest

from jaxfair import accounting, checks, experiments
from jaxfair.experiments import _config, _registry, _runs
from jaxfair.studies.pate import comparison

CONFIG = pathlib.Path(__file__).parents[3] / "configs" / "pate" / "adult.toml"
SMALL = [
  "data.name=colored_digits",
  "data.group=color",
  "teachers=[12]",
  "model=logistic",
  "seeds=5",
  "teacher_steps=100",
  "student_steps=100",
  "learning_rate=0.01",
  "sigma=2.0",
  "batch_size=200",
]


def plan(*sets):
  values = _config.read(CONFIG, sets=[*SMALL, *sets])
  return _runs.plan(_registry.find(values["study"]), values)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
  return experiments.execute(plan(), tmp_path_factory.mktemp("pate") / "run")


@pytest.mark.slow
def test_students_are_compared_seed_by_seed(table):
  everyone = table.where(group="everyone")
  assert len(everyone) == 3 * 5
  majority = everyone.where(labels=comparison.MAJORITY)
  assert majority["accuracy"].mean() > 0.5  # ten classes: chance is 0.1
  assert (majority["deviation"] == 0).all()
  for labels in (comparison.HARD, comparison.SOFT):
    noisy = everyone.where(labels=labels)
    assert (noisy["deviation"] > 0).all()
    np.testing.assert_allclose(noisy["accuracy_cost"], majority["accuracy"] - noisy["accuracy"])
  assert np.isnan(majority["accuracy_cost"]).all()


@pytest.mark.slow
def test_the_epsilon_is_that_of_all_labels(table):
  rho = 200 / 2.0**2
  expected = accounting.zcdp_epsilon(rho=rho, delta=1e-6)
  found = table.where(labels=comparison.HARD)["epsilon"]
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  assert np.isinf(table.where(labels=comparison.MAJORITY)["epsilon"]).all()


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("teachers=[0]", "teachers=0 must be at least 1"),
    ("sigma=0.0", "sigma=0.0 must be above 0"),
    ("batch_size=201", "batch_size=201 must be at least 1 and at most 200"),
    ("delta=1.0", "delta=1.0 must be in"),
  ],
)
def test_impossible_settings_are_refused(change, told):
  with pytest.raises(checks.JaxfairError, match=told):
    plan(change)
