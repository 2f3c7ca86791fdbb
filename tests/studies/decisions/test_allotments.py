"""The decision studies, end to end and small, and what they refuse."""

import json
import pathlib

import numpy as np
import pytest

from jaxfair import checks, experiments
from jaxfair.experiments import _config, _registry, _runs
from jaxfair.studies.decisions import allotments, places
from jaxfair.studies.decisions.places import Places

CONFIGS = pathlib.Path(__file__).parents[3] / "configs" / "decisions"


def plan(name, *sets, size="smoke"):
  values = _config.read(CONFIGS / f"{name}.toml", size=size, sets=sets)
  return _runs.plan(_registry.find(values["study"]), values)


def verdicts(folder):
  claims = json.loads((folder / "claims.json").read_text())
  return {claim["name"]: claim["verdict"] for claim in claims}


@pytest.mark.slow
def test_ratios_of_small_counts_are_more_biased(tmp_path):
  folder = tmp_path / "run"
  sets = ('parts=["ratios"]', "epsilons=[0.1]", "draws=2000", "seeds=4")
  table = experiments.execute(plan("rules", *sets), folder)
  found = verdicts(folder)
  assert found["ratio bias"] == found["ratio spread"] == "supported"
  assert found["closed form"] == "supported"
  assert found["thresholds"] == found["linear SVM, bin_alpha"] == "not run"
  assert len(table) == 4 * 3


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("[!_]*.toml")), ids=lambda p: p.stem)
def test_every_config_has_three_sizes_and_a_plan(path):
  for size in _config.SIZES:
    made = plan(path.stem, size=size)
    assert made.size == size
  assert made.settings.draws == 10_000  # paper


def test_a_check_that_fails_says_so():
  rows = {
    "row": ["summary"] * 4,
    "method": ["non-negative"] * 4,
    "epsilon": [0.1, 0.1, 1.0, 1.0],
    "seed": [0, 1, 0, 1],
    "alpha": [0.1, 0.1, 0.2, 0.2],
  }
  [claim] = [c for c in allotments.STUDY.claims if c.name == "epsilon"]
  found = claim.check(experiments.Table(rows))
  assert found.verdict == "not supported"
  assert found.value == pytest.approx(0.5)


def test_new_york_and_vermont(data_root):
  new_york = places.load_districts(Places(name="title_one", state="New York"))
  assert len(new_york.counts) == 972
  assert new_york.share == pytest.approx(0.104, abs=0.001)
  vermont = places.load_districts(Places(name="saipe", state="Vermont"))
  assert np.ptp(vermont.weights) == 0
  assert "SAIPE" in vermont.note
  covered, both = map(places.load_jurisdictions, (places.COVERED, places.REAL))
  assert len(covered.names) == 214
  assert len(both.names) == len(both.counts[0]) > 214
  assert both.names[:214].tolist() == covered.names.tolist()


def test_a_temperature_for_the_true_counts_is_not_that_for_all_counts():
  counts = np.array([40.0, 500.0, 9000.0])
  public = allotments._temperature(allotments.BEST, 10.0, None)
  assert allotments._temperature(allotments.BEST, 10.0, counts) < public
  assert allotments._temperature("0.1", 10.0, counts) == pytest.approx(10.0)


@pytest.mark.parametrize(
  ("make", "told"),
  [
    (lambda: places.load_districts(Places(name="saipee")), "did you mean saipe"),
    (lambda: plan("allotments", "data.csv=no.csv"), "csv: unknown key"),
    (lambda: plan("allotments", "epsilons=[0.0]"), "epsilons=0.0 must be above 0"),
    (lambda: plan("allotments", 'methods=["magic"]'), "methods='magic' is not known"),
    (lambda: plan("rules", 'parts=["all"]'), r"parts\[0\]='all' is not known"),
  ],
)
def test_refused(make, told):
  with pytest.raises(checks.JaxfairError, match=told):
    make()
