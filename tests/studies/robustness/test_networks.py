"""One small run on the digits that come along, and what is refused."""

import json

import numpy as np
import pytest

from jaxfair import checks, studies
from jaxfair.studies.robustness import joint, networks, price

TINY = {
  "data": {"name": "digits", "group": "label"},
  "seeds": 2,
  "train_people": 300,
  "test_people": 80,
  "strengths": [0.0, 2.0],
  "losses": ["cross_entropy"],
  "attacks": ["PGD l_inf"],
  "defences": [0.0, 0.1],
  "linf_epsilons": [0.05, 0.2],
  "attack_steps": 1,
  "training": {
    "network": "mlp", "batch_size": 32, "warm_steps": 60, "steps": 20,
    "learning_rate": 1e-2,
  },
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  table = studies.execute(studies.plan(joint.STUDY, TINY), folder)
  claims = json.loads((folder / "claims.json").read_text())
  return table, {claim["name"]: claim for claim in claims}


def test_a_row_for_every_setting_attack_and_group(done):
  table, _ = done
  settings = 2 * 2 * 2  # seeds, defences, strengths
  assert len(table) == settings * (1 + 2) * 11  # clean and two epsilons
  assert len(table.where(group="everyone")) == settings * 3


def test_the_robust_error_is_the_sum_of_its_parts(done):
  table, _ = done
  for _, rows in table.split("seed", "defence", "strength", "group"):
    natural = rows.where(attack="none")["natural_error"][0]
    under = rows.where(attack="PGD l_inf")
    np.testing.assert_allclose(
      under["robust_error"], natural + under["boundary_error"], atol=1e-6
    )


def test_the_violation_is_the_largest_gap_of_natural_errors(done):
  table, _ = done
  for _, rows in table.where(attack="none").split(
    "seed", "defence", "strength"
  ):
    everyone = rows.where(group="everyone")
    groups = rows["natural_error"][rows["group"] != "everyone"]
    gap = np.abs(groups - everyone["natural_error"]).max()
    assert everyone["violation"][0] == pytest.approx(gap, abs=1e-6)


def test_pgd_training_pays_off_under_attack(done):
  table, claims = done
  under = table.where(group="everyone", attack="PGD l_inf", epsilon=0.2)
  means = [under.where(defence=d)["robust_error"].mean() for d in (0.0, 0.1)]
  assert means[1] < means[0]
  assert all(claim["verdict"] for claim in claims.values())


def test_seeds_are_their_own_splits(done):
  table, _ = done
  plain = table.where(attack="none", defence=0.0, strength=0.0)
  a, b = (plain.where(seed=s)["natural_error"] for s in (0, 1))
  assert not np.array_equal(a, b)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"strengths": []}, "strengths is empty"),
    ({"strengths": [1.0, 1.0]}, "twice"),
    ({"linf_epsilons": [-0.1]}, "linf_epsilons"),
    ({"train_people": 8}, "a batch has"),
    ({"attacks": ["pgd"]}, r"attacks\[0\]='pgd' is not known"),
    ({"training": {"network": "vgg16"}}, "did you mean vgg13"),
  ],
)
def test_configs_that_cannot_run_are_refused(change, told):
  with pytest.raises(studies.ConfigError, match=told):
    studies.plan(price.STUDY, {**TINY, **change})


def test_more_people_than_there_are_is_refused_before_any_work():
  made = studies.plan(price.STUDY, {**TINY, "train_people": 1_800})
  with pytest.raises(checks.ArgumentError, match="ask for fewer"):
    networks.cells(made.settings)


def test_features_that_are_no_pixels_are_refused_before_any_work(tmp_path):
  rows = ["a,g,y"] + [f"{i},{i % 2},{i % 2}" for i in range(60)]
  (tmp_path / "own.csv").write_text("\n".join(rows))
  own = {
    "csv": str(tmp_path / "own.csv"), "label": "y", "group": "g",
    "positive": 1,
  }  # fmt: skip
  made = studies.plan(price.STUDY, {**TINY, "data": own, "train_people": 40})
  with pytest.raises(checks.ArgumentError, match="declared input_range"):
    networks.cells(made.settings)
