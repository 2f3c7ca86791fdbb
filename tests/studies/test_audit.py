"""The audit study, end to end and small, and what it refuses."""

import json
import math
import pathlib

import numpy as np
import pytest

from jaxfair import accounting, experiments, report
from jaxfair.accounting import _gaussian
from jaxfair.experiments import _config, _reading, _registry, _runs
from jaxfair.studies import audit

CONFIG = pathlib.Path(__file__).parents[2] / "configs" / "audit" / "dp_sgd.toml"
TINY = [
  "epsilons=[4.0, 8.0]",
  "steps=10",
  "people=200",
  "canaries=200",
  "batch_size=40",
  "seeds=3",
  "runs=2000",
]


def plan(*sets, size=None):
  values = _config.read(CONFIG, size=size, sets=sets)
  return _runs.plan(_registry.find(values["study"]), values)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("audit") / "run"
  table = experiments.execute(plan(*TINY), folder)
  return folder, table, report.write(_reading.read_run(folder)).read_text()


def test_there_is_a_bound_for_every_budget_method_and_seed(done):
  _, table, _ = done
  bounds = table.where(row="bound")
  assert len(bounds) == 2 * 3 * 3
  for _, part in bounds.split("method", "epsilon"):
    assert part["seed"].tolist() == [0, 1, 2]
  assert np.isfinite(bounds["lower_bound"]).all()
  # Each level chooses its own test, so a single pair may come out reversed.
  assert bounds["joint_bound"].mean() < bounds["lower_bound"].mean()
  np.testing.assert_allclose(bounds["share"], bounds["lower_bound"] / bounds["claimed"])


def test_claims_are_the_accountant_s(done):
  _, table, _ = done
  for epsilon in (4.0, 8.0):
    whole = table.where(row="bound", method="canaries", epsilon=epsilon)
    assert 0.99 * epsilon < whole["claimed"][0] <= epsilon
    noise = accounting.calibrate_dp_sgd(epsilon=epsilon, delta=1e-5, sampling_rate=0.1, steps=10)
    step = table.where(row="bound", method="gaussian", epsilon=epsilon)
    exact = _gaussian.gaussian_epsilon(sigma=noise, delta=1e-5)
    # The cap on batches takes a thousandth of delta.
    assert step["claimed"][0] == pytest.approx(exact, rel=1e-3)


def test_the_library_keeps_its_promise_and_a_step_shows_most_of_it(done):
  folder, table, _ = done
  claims = json.loads((folder / "claims.json").read_text())
  verdicts = {claim["name"]: claim["verdict"] for claim in claims}
  assert verdicts["not caught"] == "supported"
  assert table.where(method="gaussian")["share"].min() > 0.5
  assert "not run" not in verdicts.values()


def test_guesses_that_are_right_stay_below_what_epsilon_allows(done):
  _, table, _ = done
  guesses = table.where(row="guess", epsilon=8.0)
  allowed = guesses.where(who="allowed")["right"]
  np.testing.assert_allclose(allowed, 1 / (1 + math.exp(-8)), atol=1e-4)
  everybody = guesses.where(who="attained", guesses=200)
  assert 0.5 < everybody["right"].mean() < 1
  assert guesses["guesses"].min() == 10


def test_a_bound_above_its_claim_is_said():
  table = experiments.Table(
    {"row": ["bound"] * 2, "claimed": [1.0, 1.0], "joint_bound": [0.5, 1.5]}
  )
  found = (audit.LARGEST <= 1)(table)
  assert (found.verdict, found.value) == ("not supported", 1.5)


def test_the_page_says_what_it_means(done):
  _, _, page = done
  assert "no proof of privacy" in page
  assert "not for release" in page
  assert page.count("class='chart'") == 2


def test_all_bounds_hold_together():
  config = plan(*TINY).settings
  alpha = 1 - config.joint_confidence
  assert alpha * 2 * 3 * 3 == pytest.approx(0.05)


@pytest.mark.slow
def test_people_of_a_named_set(tmp_path):
  sets = ["data.name=colored_digits", "hidden=[4]", "epsilons=[8.0]"]
  made = plan(*TINY[1:-1], "runs=64", *sets)
  table = experiments.execute(made, tmp_path / "r", say=lambda message: None)
  assert (table.where(row="bound")["claimed"] > 0).all()


@pytest.mark.parametrize("size", ["smoke", "small"])
def test_the_sizes_are_configs(size):
  assert plan(size=size).size == size


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("epsilons=[]", "epsilons is empty"),
    ("epsilons=[-1.0]", "epsilons=-1.0 must be above 0"),
    ("delta=0.0", "delta=0.0 must be in"),
    ("confidence=1.0", "confidence=1.0 must be in"),
    ("canaries=5", "canaries=5 must be at least 10"),
    ("runs=8", "runs=8 must be at least 32"),
    ("steps=0", "steps=0 must be at least 1"),
    ("hidden=[0]", "hidden=0 must be at least 1"),
    ("l2_clip=0.0", "l2_clip=0.0 must be above 0"),
    ("canary=3", "unknown key"),
  ],
)
def test_impossible_settings_are_refused(change, told):
  with pytest.raises(_config.ConfigError, match=told):
    plan(change)


def test_a_batch_larger_than_everybody_leaves_nothing(tmp_path):
  from jaxfair import checks

  with pytest.raises(checks.ArgumentError, match="batch_size=500"):
    experiments.execute(plan(*TINY, "batch_size=500"), tmp_path / "r")
  assert list(tmp_path.iterdir()) == []
