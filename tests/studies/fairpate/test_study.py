"""The frontier study on people of a CSV file, and its settings."""

import numpy as np
import pytest

from helpers.pate_studies import write_people
from jaxfair import experiments
from jaxfair.checks import JaxfairError
from jaxfair.experiments import _claims, _registry, _runs
from jaxfair.experiments._config import ConfigError, build
from jaxfair.studies import fairpate
from jaxfair.studies.fairpate import claims
from jaxfair.studies.fairpate.charging import PAPER, SOUND
from jaxfair.studies.fairpate.claims import PLACEMENTS

TINY = {
  "num_teachers": 8,
  "queries": 60,
  "private_people": 300,
  "test_people": 100,
  "threshold": 5.0,
  "sigma_threshold": 1.0,
  "sigma_answer": 0.8,
  "min_count": 5,
  "epsilon": [20.0, 60.0],
  "max_gap": [0.05, 0.2],
  "lam": 10.0,  # strong, so that where it is placed shows
  "teacher_steps": 10,
  "student_steps": 10,
  "sgd_steps": 5,
  "sgd_batch": 30,
  "batch_size": 20,
  "seeds": 2,
}


def run(folder, name="fairpate", **changes):
  path = folder / "people.csv"
  if not path.exists():
    write_people(path)
  people = {"csv": str(path), "label": "label", "group": "group"}
  values = TINY | {"data": people} | changes
  plan = _runs.plan(_registry.find(name), values)
  return experiments.execute(plan, folder / name, say=lambda text: None)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  methods = ["plain", "pate", "fairpate", "pate_s_pre", *PLACEMENTS]
  return run(tmp_path_factory.mktemp("fairpate"), method=methods)


@pytest.mark.slow
def test_one_row_per_setting_and_seed(done):
  # Teachers have two charges; PATE has no margin, and the plain model has no setting at all.
  assert len(done) == 2 * (1 + 2 * (2 * (1 + 2 * 2) + 2 * 2))
  keys = ("method", "charge", "epsilon", "max_gap", "lam", "seed")
  named_rows = {tuple(str(row[k]) for k in keys) for row in done.rows()}
  assert len(named_rows) == len(done)


@pytest.mark.slow
def test_objectives_are_what_they_say(done):
  judged = done["max_gap"] == done["max_gap"]
  for name in ("accuracy", "coverage", "raw_accuracy", "gap", "raw_gap"):
    known = done[name][~np.isnan(done[name])]
    assert ((known >= 0) & (known <= 1)).all()
  assert (done["coverage"][~judged] == 1).all()
  alike = ~judged & ~np.isnan(done["gap"])
  np.testing.assert_array_equal(done["gap"][alike], done["raw_gap"][alike])


@pytest.mark.slow
def test_where_nothing_is_refused_for_free_fairpate_is_filtered_pate(done):
  # The same votes, noise and students: the labels are the same ones.
  fair, pre = (done.where(method=m, charge=SOUND) for m in ("fairpate", "pate_s_pre"))
  assert (fair["answered"] >= pre["answered"]).all()
  same = fair["answered"] == pre["answered"]
  assert same.any()
  np.testing.assert_array_equal(fair["accuracy"][same], pre["accuracy"][same])


@pytest.mark.slow
def test_labels_grow_with_the_budget(done):
  for charge in (SOUND, PAPER):
    plain = done.where(method="pate", charge=charge)
    small, large = (plain.where(epsilon=e)["answered"] for e in (20.0, 60.0))
    assert (small <= large).all()
    assert small.min() > 0


@pytest.mark.slow
def test_the_two_places_of_the_penalty_are_two_models(done):
  after, inside = (done.where(method=m) for m in PLACEMENTS)
  assert (after["raw_gap"] != inside["raw_gap"]).any()


@pytest.mark.slow
def test_methods_that_only_abstain_by_a_margin_are_trained_once(done):
  for method in PLACEMENTS:
    tight, wide = (done.where(method=method, max_gap=m) for m in (0.05, 0.2))
    np.testing.assert_array_equal(tight["raw_gap"], wide["raw_gap"])
    assert (tight["coverage"] <= wide["coverage"]).all()
  config = build(fairpate.Config, {"lam": [1.0, 2.0], "max_gap": [0.1, 0.2]})
  wanted = config.points
  distinct, which = fairpate.trainings(wanted)
  # Of plain, pate, fairpate, pate_s_pre, pate_s_in, fair_soft_pate, dp_sgd and the placements.
  assert len(distinct) == 1 + 3 * (2 * (1 + 2 + 2 + 2) + 1 + 1 + 2 + 2)
  for point, place in zip(wanted, which, strict=True):
    taken = distinct[place]
    assert (taken.method, taken.epsilon) == (point.method, point.epsilon)
    np.testing.assert_equal(taken.lam, point.lam)
    if point.method == "fairpate":
      assert taken.max_gap == point.max_gap


def test_a_point_of_it_is_a_config_of_its_own():
  config = build(
    fairpate.Config,
    {"method": "pate_s_in", "epsilon": 3.0, "max_gap": 0.05, "lam": 1.0, "charge": PAPER},
  )
  [point] = config.points
  assert point == ("pate_s_in", 3.0, 0.05, 1.0, PAPER)


@pytest.mark.parametrize(
  ("values", "told"),
  [
    ({"method": "fairpat"}, "^method='fairpat' is not known.*mean fairpate"),
    ({"method": ["fairpat"]}, "^method='fairpat' is not known"),
    ({"epsilon": [1.0, 1.0]}, "epsilon=.* names something twice"),
    ({"epsilon": []}, "epsilon is empty"),
    ({"epsilon": [1.0, 0.0]}, "epsilon=0.0 must be above 0"),
    ({"epsilon": 0.0}, "epsilon=0.0 must be above 0"),
    ({"threshold": 500.0}, "no vote of so few teachers would reach it"),
    (
      {"num_teachers": 300, "private_people": 256},
      "^num_teachers=300 must be at most 256; every teacher learns from people",
    ),
    ({"guard": "all"}, "guard='all' is not known; use one of table, own"),
  ],
)
def test_wrong_settings_are_refused(values, told):
  with pytest.raises(ConfigError, match=told):
    build(fairpate.Config, values)


def test_more_people_than_there_are_are_refused(tmp_path):
  with pytest.raises(JaxfairError, match="lower private_people"):
    run(tmp_path, private_people=10_000)


def test_convolutions_need_images(tmp_path):
  with pytest.raises(JaxfairError, match=r"'convnet' needs images.*'mlp'"):
    run(tmp_path, network="convnet")


def test_the_best_lam_and_the_tightest_margin_are_picked():
  table = claims.derive(
    experiments.Table(
      {
        "method": ["pate_s_in"] * 4 + ["pate"],
        "lam": [1.0, 1.0, 5.0, 5.0, np.nan],
        "max_gap": [0.1, 0.2, 0.1, 0.2, np.nan],
        "accuracy": [0.5, 0.9, 0.7, 0.6, 0.8],
        "coverage": [0.5] * 5,
        "raw_accuracy": [0.5] * 5,
        "epsilon": [3.0] * 5,
        "gap": [0.05] * 5,
        "raw_gap": [0.3] * 5,
        "seed": [0] * 5,
      }
    )
  )
  tight = _claims.narrowed(table, {"max_gap": claims.TIGHTEST})
  assert tight["accuracy"].tolist() == [0.5, 0.7, 0.8]
  best = claims.best_lam("accuracy", "pate_s_in")
  assert best(tight)["accuracy"].tolist() == [0.7, 0.8]
  assert best(table)["accuracy"].tolist() == [0.5, 0.9, 0.8]


@pytest.mark.slow
def test_a_claim_about_methods_that_were_not_run_is_not_run(done):
  without = done.keep(done["method"] != PLACEMENTS[1])
  placed = [c for c in fairpate.STUDY.claims if "after the noise" in c.name]
  assert len(placed) == 3
  for claim in placed:
    assert claim.check(done).verdict != "not run"
    found = claim.check(without)
    assert found.verdict == "not run"
    assert "no rows with method=fair_dp_sgd_inside" in found.why
