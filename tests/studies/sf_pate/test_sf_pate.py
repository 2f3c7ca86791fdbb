"""The SF-PATE studies on people of a small file: they run, and tell apart."""

import types

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, data, experiments, methods
from jaxfair.experiments import Table, _config, _registry, _runs
from jaxfair.studies.sf_pate import common, tradeoff

SETTINGS = {
  "network": "logistic",
  "num_teachers": 12,
  "queries": 60,
  "epsilons": [2.0],
  "train_people": 360,
  "test_people": 120,
  "teacher_steps": 10,
  "plain_steps": 20,
  "rounds": 2,
  "steps_per_round": 5,
  "batch_size": 60,
  "learning_rate": 0.05,
  "splits": 2,
}


def write_people(path, size=480):
  """Two groups, one of which is labeled 1 far less often."""
  rng = np.random.default_rng(0)
  group = rng.integers(0, 2, size)
  y = (rng.random(size) < np.where(group == 1, 0.2, 0.7)).astype(int)
  x = rng.normal(size=(size, 2)) + np.stack([2 * y, 3 * group], axis=1)
  lines = [
    f"{a:.4f},{b:.4f},{label},{'ab'[g]}" for (a, b), label, g in zip(x, y, group, strict=True)
  ]
  path.write_text("\n".join(["u,v,label,group", *lines]) + "\n")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
  path = tmp_path_factory.mktemp("people") / "people.csv"
  write_people(path)
  return {"csv": str(path), "label": "label", "group": "group"}


def run(name, people, folder, **changes):
  values = SETTINGS | {"sets": [people]} | changes
  made = _runs.plan(_registry.find(name), values)
  return experiments.execute(made, folder, say=lambda text: None)


def _people(csv):
  loaded = data.from_csv(csv["csv"], label=csv["label"], group=(csv["group"],))
  return methods.Population(loaded.examples, loaded.class_names, loaded.group_names)


@pytest.mark.slow
def test_methods_are_compared_on_the_same_splits(people, tmp_path):
  chosen = [common.SF_S, common.M, common.PLAIN, common.FAIR]
  table = run("sf_pate.tradeoff", people, tmp_path, methods=chosen)
  assert len(table) == 4 * 2
  assert set(table["method"]) == set(chosen)
  assert (table["accuracy"] > 0.5).all()
  assert np.isfinite(table["violation"]).all()
  assert (table.where(method=common.PLAIN)["balanced_accuracy"] > 0.6).all()
  plain = table.where(method=common.PLAIN)["violation"]
  fair = table.where(method=common.FAIR)["violation"]
  assert fair.mean() < plain.mean()


def test_noise_by_these_votes_costs_what_was_asked():
  """Every smaller noise would cost more."""
  counts, delta = np.array([[148, 2]] * 180 + [[76, 74]] * 20), 1e-5

  def planned(epsilon):  # noise in inverse proportion to epsilon
    return types.SimpleNamespace(config=types.SimpleNamespace(sigmas=(90 / epsilon,)))

  def cost(epsilon):
    return accounting.pate_diagnosis(counts, sigma=90 / epsilon, delta=delta).not_for_release

  found = common._any_votes(planned, counts, 1.2, delta)
  assert found > 1.2
  assert cost(found) <= 1.2
  assert all(cost(1.05**i * found) > 1.2 for i in range(1, 10))


def test_teachers_of_both_kinds_vote_on_what_they_are_asked(people):
  split = common.Repetition(common.Config(**SETTINGS), _people(people), None, jax.random.key(0))
  for name, asked in ((common.SF_S, "group"), (common.SF_T, "y")):
    [plan] = split.plans(name)
    found = methods.get(plan.method).votes(plan, split.people, key=split.key)
    assert found.counts.sum(axis=1).tolist() == [12] * 60
    truth = np.asarray(getattr(found.queries, asked))
    assert (found.counts.argmax(axis=1) == truth).mean() > 0.75


def test_coarse_noise_is_ten_times_as_large(people):
  config = common.Config(**SETTINGS)
  split = common.Repetition(config, _people(people), None, jax.random.key(0))
  [fine], [coarse] = (split.plans(name) for name in (common.PF_LD, common.PF_LD_COARSE))
  assert coarse.config.noise_multiplier == pytest.approx(10 * fine.config.noise_multiplier)
  assert coarse.config.dual_noise == fine.config.dual_noise


@pytest.mark.slow
def test_votes_are_right_as_often_as_they_should(people, tmp_path):
  table = run("sf_pate.votes", people, tmp_path, ensembles=[6, 12])
  kept = np.exp(2.0) / (np.exp(2.0) + 1)
  np.testing.assert_allclose(table.where(by="M")["right"], kept)
  voted = table.where(by="vote")
  assert len(voted) == 2 * 2
  assert (voted["right"] > 0.5).all()
  # Two groups: eta is the share that is wrong.
  np.testing.assert_allclose(voted["eta"], 1 - voted["right"], atol=1e-9)
  assert set(table["line"]) == {"6 teachers", "12 teachers", "M", "largest group"}


def table_of(ours, rival):
  rows = [
    ("x", "demographic_parity", name, seed, 1.0, value + 0.001 * seed)
    for name, value in ((common.SF_S, ours), (common.M, rival))
    for seed in range(3)
  ]
  names = ("data", "notion", "method", "seed", "epsilon", "violation")
  return Table(dict(zip(names, zip(*rows, strict=True), strict=True)))


@pytest.mark.parametrize(("ours", "verdict"), [(0.05, "supported"), (0.2, "not supported")])
def test_the_fairer_method_is_told(ours, verdict):
  name = f"{common.SF_S} has smaller violations than {common.M}, Fig. 2(a)"
  [claim] = [c for c in tradeoff.STUDY.claims if c.name == name]
  found = claim.check(table_of(ours, 0.1))
  assert found.verdict == verdict


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"methods": ["SF_S"]}, "did you mean SF_S-PATE"),
    ({"num_teachers": 100}, "use at most 36"),
    ({"queries": 400}, "queries=400"),
    ({"epsilons": [1.0, 1.0]}, "names something twice"),
    ({"notion": "parity"}, "demographic_parity"),
    ({"network": "resnet18", "methods": ["PF-LD"]}, "leave it out for a resnet"),
  ],
)
def test_impossible_settings_are_refused(people, tmp_path, changes, told):
  with pytest.raises(checks.JaxfairError, match=told):
    run("sf_pate.tradeoff", people, tmp_path, **changes)


def test_one_epsilon_is_timed(people, tmp_path):
  with pytest.raises(_config.ConfigError, match="must be a single one"):
    run("sf_pate.times", people, tmp_path, epsilons=[1.0, 2.0])
