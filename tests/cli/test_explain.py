"""`jaxfair explain`, on a tiny training and on what is no such run."""

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from jaxfair import analysis, data, experiments, fairness, models
from jaxfair.cli import _explain as cli_explain
from jaxfair.experiments import Table
from jaxfair.experiments import _config as configs
from jaxfair.methods import _releasing
from jaxfair.studies import explanation

CONFIG = pathlib.Path(__file__).parents[2] / "configs" / "train" / "dp_sgd_adult.toml"
SETS = [
  "data.name=coloured_digits",
  "data.group=colour",
  "network=logistic",
  "settings.dp_sgd={learning_rate = 0.5, batch_size = 512, optimizer = 'sgd', row_norm = 0.0}",
  "epsilons=[8.0]",
  "release_epsilon=4.0",
]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  """A run directory as `train` leaves it, of a model that is no good."""
  folder = tmp_path_factory.mktemp("explain") / "run"
  folder.mkdir()
  values = experiments.read(CONFIG, size="smoke", sets=SETS)
  made = experiments.plan(experiments.find("train"), values)
  (folder / "config.toml").write_text(configs.dump(made.values))
  people = data.load("coloured_digits")
  rng = np.random.default_rng(0)
  params = {"w": 0.1 * rng.normal(size=(192, 10)), "b": np.zeros(10)}
  params = {name: v.astype(np.float32) for name, v in params.items()}
  scaler = data.fit_scaler(people.examples.x)
  parted, plan = made.settings.parted(people, "dp_sgd", 4.0, key=jax.random.key(0))
  _releasing.publish(
    plan, dataclasses.replace(parted.population, scaler=scaler), params, folder, for_release=False
  )
  table = Table.from_arrays(
    {"data": people.name, "training": "epsilon 8"},
    {"seed": range(3), "group": [*people.group_names, "everyone"]},
    {
      "loss_cost": [[0.1, 0.3, 0.2], [0.2, 0.35, 0.3], [0.1, 0.4, 0.2]],
      "accuracy_cost": np.full((3, 3), 0.05),
    },
  )
  (folder / "results.csv").write_text(table.to_csv())
  return folder, table, (params, scaler, plan)


def test_it_says_who_pays_why_and_what_to_try(jaxfair, done):
  folder, _, _ = done
  ended = jaxfair("explain", folder)
  assert ended.code == 0
  for begin in ("Who pays: ", "Through which term: ", "Through which factor: ", "Try first: "):
    assert sum(line.startswith(begin) for line in ended.out.splitlines()) == 1
  assert "not for release" in ended.out
  for name in data.load("coloured_digits").group_names:
    assert name in ended.out


def test_costs_are_the_run_s_and_terms_those_of_the_released_model(done):
  folder, table, (params, scaler, plan) = done
  found = explanation.explain_run(folder)
  people = data.load("coloured_digits")
  assert found.payer == people.group_names[1]
  for name, cost in found.costs.items():
    assert cost.loss == pytest.approx(table.where(group=name)["loss_cost"].mean())
  assert float(found.apart.estimate) == pytest.approx(0.65 / 3)
  # Softmax regression has a trace in closed form: (|x|^2 + 1) closeness.
  x = scaler.apply(people.examples.x).reshape(people.size, -1)
  logits = models.logistic(people.num_classes).apply(params, x)
  traces = analysis.closeness(logits) * (np.square(x).sum(1) + 1)
  expected = [traces[people.examples.group == g].mean() for g in (0, 1)]
  np.testing.assert_allclose(found.factors["trace"], expected, rtol=1e-3)
  # Noise: eta^2/2 Tr(H_a) (C sigma / batch)^2, by hand from the config.
  variance = (1.0 * float(plan.config.noise_multiplier) / 512) ** 2
  np.testing.assert_allclose(
    found.terms["noise"], 0.5 * 0.5**2 * variance * np.array(expected), rtol=1e-3
  )
  assert found.term == max(found.terms, key=lambda t: found.terms[t][1])


def made_up(**changes):
  """An explanation with two groups of whom the second pays."""
  ones = np.ones(2)
  base = explanation.NonPrivateExplanation(
    groups=("a", "b"),
    epsilon=1.0,
    costs={
      "a": explanation.Cost(0.1, 0.05, 0.15, 0.01),
      "b": explanation.Cost(0.3, 0.2, 0.4, 0.03),
    },
    payer="b",
    apart=fairness.seed_interval([0.1, 0.2, 0.3]),
    terms={"clipping": 0.2 * ones, "noise": 0.1 * ones},
    factors=dict.fromkeys(explanation.FACTORS, ones),
    of_all=dict.fromkeys(explanation.FACTORS, 1.0),
    clipped=0.5 * ones,
    term="clipping",
    factor="gradient_norm",
    large_gradient=7.0,
    l2_clip=0.5,
    note="",
  )
  return base._replace(**changes)


TWICE = {name: np.array([1.0, 2.0]) for name in explanation.FACTORS}


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({}, "a larger l2_clip: 0.5 is used, and a tenth of the gradients of b"),
    ({"factor": "input_norm", "factors": TWICE}, "scale the features"),
    (
      {"term": "noise", "factor": "closeness", "factors": TWICE},
      "training.risk_penalty on public people",
    ),
    ({"term": "noise", "factor": "closeness"}, "less noise per step"),
  ],
)
def test_advice_follows_the_term_and_the_factor(changes, told):
  lines = cli_explain.sentences(made_up(**changes))
  (advice,) = [line for line in lines if line.startswith("Try first: ")]
  assert told in advice


def test_a_difference_within_chance_is_said_to_be():
  level = fairness.seed_interval([-0.1, 0.1])
  lines = " ".join(cli_explain.sentences(made_up(apart=level)))
  assert "do not differ beyond chance" in lines


@pytest.mark.parametrize(
  ("write", "told"),
  [
    ({}, "is not a run directory"),
    ({"config.toml": 'study = "quickstart"\n'}, "a run of study 'quickstart'"),
    ({"config.toml": 'study = "train"\n'}, "holds no released model"),
    (
      {"config.toml": 'study = "train"\nrelease_epsilon = 1.0\n'},
      "has no results.csv: the run is not finished",
    ),
  ],
)
def test_another_folder_is_one_line(jaxfair, tmp_path, write, told):
  folder = tmp_path / "other"
  folder.mkdir()
  for name, text in write.items():
    (folder / name).write_text(text)
  ended = jaxfair("explain", folder)
  assert ended.code == 2
  assert told in ended.err
  assert len(ended.err.splitlines()) == 1
