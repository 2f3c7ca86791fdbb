"""A point of a study's frontier is released as it was studied."""

import pytest

from helpers.pate_studies import write_people
from jaxfair import experiments
from jaxfair.experiments import _registry, _release_config, _releases, _runs
from jaxfair.methods import _released
from jaxfair.studies.fairpate.common import METHODS

SMALL = {
  "queries": 60,
  "test_people": 100,
  "teacher_steps": 10,
  "student_steps": 10,
  "batch_size": 20,
}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
  path = tmp_path_factory.mktemp("people") / "people.csv"
  write_people(path)
  return {"csv": str(path), "label": "label", "group": "group"}


def planned(name, values, at):
  made = _runs.plan(_registry.find(name), values)
  table = made.study.release(made.settings, at)
  if table is None:
    return None
  config = experiments._config.build(_release_config.ReleaseConfig, table)
  return _releases.plan_release(config)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_fairpate(people, method):
  values = SMALL | {"data": people, "num_teachers": 8, "private_people": 300, "threshold": 5.0}
  values |= {"sigma_threshold": 9.0, "sigma_answer": 3.0, "min_count": 5, "sgd_batch": 30}
  at = {"method": method, "epsilon": 20.0, "max_gap": 0.05, "lam": 2.0}
  known = METHODS[method]
  at["max_gap"] = 0.05 if known.fair_labels or known.abstains else None
  at["lam"] = 2.0 if known.has_lam else None
  found = planned("fairpate", values, at)
  # Students are changed after the fact, or nothing is private: no such method.
  if method in ("fairpate_calibrated", "plain"):
    assert found is None
    return
  plan = found.plan
  assert plan.sizes.public == 60
  assert len(found.parted.test.y) == 100
  assert plan.budget == (20.0, 1e-5)
  assert plan.method == ("dp_sgd" if method == "dp_sgd" else known.name)
  assert plan.network.name == "logistic"
  if "sgd" in method:
    assert plan.settings.batch_size == 30
  elif known.voted:
    rule = plan.config.rule
    assert (rule.threshold, rule.sigma_threshold, rule.sigma_answer) == (5.0, 9.0, 3.0)
  assert (plan.abstention is not None) == known.abstains
  if known.abstains:
    assert plan.abstention.max_gap == 0.05
  if known.has_lam:
    assert plan.settings.lam == 2.0
  assert getattr(plan.settings, "placement", known.placement) == known.placement
  assert getattr(plan.settings, "choice", known.choice) == known.choice


def test_points_of_plain_and_confident_pate(people):
  values = SMALL | {"sets": [people], "teachers": [8], "delta": 1e-5, "hidden": [4]}
  values |= {"sigma_threshold": 9.0}
  at = {"method": "x", "teachers": 8, "epsilon": 20.0, "sigma": 3.0, "threshold": 0.75}
  plan = planned("pate.frontier", values, at).plan
  rule = plan.config.rule
  assert plan.method == "confident_pate"
  assert (rule.threshold, rule.sigma_threshold, rule.sigma_answer) == (6.0, 9.0, 3.0)
  assert plan.network == _released.Network("mlp", 2, (4,))
  plain = planned("pate.frontier", values, {**at, "threshold": 0.0}).plan
  assert plain.method == "pate"
  assert plain.config.rule.sigma <= 3.0 * (1 + 1e-6)  # as many queries as this noise pays for
  assert plain.settings.queries <= 60
  assert planned("pate.frontier", values, {**at, "threshold": 0.0, "sigma": 0.1}) is None
