"""One small run on the digits that come along, and what is refused."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, experiments, models, training
from jaxfair.experiments import _config, _runs
from jaxfair.models import _losses
from jaxfair.studies.robustness import joint, networks, price
from jaxfair.types import Fit

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
  "networks": ["mlp"],
  "training": {"batch_size": 32, "warm_steps": 60, "steps": 20, "learning_rate": 1e-2},
}


def drawn(calls):
  """Trainers that draw instead: what a study makes of models is the same."""

  def one(model, loss, examples, config, *, key):
    return Fit(model.init(key, jnp.asarray(examples.x[0])), None)

  def many(model, loss, examples, config, *, keys, trainer, initial):
    calls.append((loss, config, trainer))
    scale = 1 + jnp.arange(len(keys)) + config.epsilon
    return Fit(jax.tree.map(lambda p: (p.T * scale).T, initial), None)

  return one, many


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  folder, calls = tmp_path_factory.mktemp("run"), []
  one, many = drawn(calls)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(training, "fit", one)
    patch.setattr(training, "fit_many", many)
    table = experiments.execute(_runs.plan(joint.STUDY, TINY), folder)
  claims = json.loads((folder / "claims.json").read_text())
  return table, {claim["name"]: claim for claim in claims}, calls


@pytest.mark.slow
def test_a_row_for_every_setting_attack_and_group(run):
  table, _, _ = run
  settings = 2 * 2 * 2  # seeds, defences, strengths
  assert len(table) == settings * (1 + 2) * 11  # clean and two epsilons
  assert len(table.where(group="everyone")) == settings * 3


@pytest.mark.slow
def test_the_robust_error_is_the_sum_of_its_parts(run):
  table, _, _ = run
  for _, rows in table.split("seed", "defence", "strength", "group"):
    natural = rows.where(attack="none")["natural_error"][0]
    under = rows.where(attack="PGD l_inf")
    np.testing.assert_allclose(under["robust_error"], natural + under["boundary_error"], atol=1e-6)


@pytest.mark.slow
def test_the_violation_is_the_largest_gap_of_natural_errors(run):
  table, _, _ = run
  for _, rows in table.where(attack="none").split("seed", "defence", "strength"):
    everyone = rows.where(group="everyone")
    groups = rows["natural_error"][rows["group"] != "everyone"]
    gap = np.abs(groups - everyone["natural_error"]).max()
    assert everyone["violation"][0] == pytest.approx(gap, abs=1e-6)


@pytest.mark.slow
def test_every_setting_is_trained_as_told(run):
  _, claims, calls = run
  assert len(calls) == 2 * 2  # seeds, defences; strengths are stacked
  for loss, config, trainer in calls:
    assert loss is models.cross_entropy
    assert trainer is training.fair_robust
    np.testing.assert_array_equal(config.penalty, TINY["strengths"])
    assert config.focus is None
    assert (config.adversary is not None) == (config.epsilon > 0)
    assert config.plain.steps == TINY["training"]["steps"]
  assert [config.epsilon for _, config, _ in calls] == [0.0, 0.1] * 2
  assert all(claim["verdict"] for claim in claims.values())


def test_the_focus_is_trained_as_told():
  made = _runs.plan(price.STUDY, {**TINY, "method": "focus"}).settings
  calls = []
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(training, "fit_many", drawn(calls)[1])
    networks._train(made, None, _losses.ramp, None, 10, {"w": jnp.ones(2)}, 0.0, jax.random.key(0))
  [(loss, config, _)] = calls
  assert loss is _losses.ramp
  assert config.penalty == 0.0
  np.testing.assert_array_equal(config.focus, TINY["strengths"])


@pytest.mark.slow
def test_seeds_are_their_own_splits(run):
  table, _, _ = run
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
    ({"networks": ["vgg16"]}, "did you mean vgg13"),
  ],
)
def test_configs_that_cannot_run_are_refused(change, told):
  with pytest.raises(_config.ConfigError, match=told):
    _runs.plan(price.STUDY, {**TINY, **change})


def test_more_people_than_there_are_is_refused_before_any_work():
  made = _runs.plan(price.STUDY, {**TINY, "train_people": 1_800})
  with pytest.raises(checks.ArgumentError, match="ask for fewer"):
    made.study.load_people(made.settings)


def test_features_that_are_no_pixels_are_refused_before_any_work(tmp_path):
  rows = ["a,g,y"] + [f"{i * i},{i % 2},{i % 2}" for i in range(60)]
  (tmp_path / "own.csv").write_text("\n".join(rows))
  own = {"csv": str(tmp_path / "own.csv"), "label": "y", "group": "g", "positive": 1}
  made = _runs.plan(price.STUDY, {**TINY, "data": own, "train_people": 40})
  with pytest.raises(checks.ArgumentError, match="declared input_range"):
    made.study.load_people(made.settings)
