"""The study of methods beside plain training: releases, and the quickstart, on digits."""

import json
import pathlib
import types

import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import accounting, checks, data, experiments, fairness, methods, report
from jaxfair.accounting import _dataset_ledger, _guarantee
from jaxfair.experiments import _config, _frontiers, _people, _reading, _registry, _releases, _runs
from jaxfair.studies import methods as study

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
CONFIG, QUICKSTART = CONFIGS / "train" / "dp_sgd_adult.toml", CONFIGS / "quickstart.toml"
TINY = [
  "data.name=colored_digits",
  "data.group=color",
  "network=logistic",
  "epsilons=[1.0, 8.0]",
  "delta=1e-5",
  "release_epsilon=4.0",
  "seeds=3",
  "settings.plain.steps=40",
  "settings.plain.learning_rate=0.03",
  "settings.dp_sgd.steps=40",
  "settings.dp_sgd.batch_size=64",
]


def plan(*sets, size="smoke", config=CONFIG):
  values = _config.read(config, size=size, sets=sets)
  return _runs.plan(_registry.find(values["study"]), values)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("train") / "run"
  table = experiments.execute(plan(*TINY), folder)
  return folder, table, report.write(_reading.read_run(folder)).read_text()


def test_there_is_a_row_for_every_training_seed_and_group(done):
  _, table, _ = done
  names = [study.MAJORITY, study.PLAIN, "dp_sgd", study.RELEASED]
  assert table.unique("method") == names
  assert table.where(method="dp_sgd").unique("epsilon") == [1, 8]
  groups = data.load("colored_digits").num_groups + 1
  for name, times in zip(names, (1, 1, 2), strict=False):
    assert len(table.where(method=name)) == 3 * groups * times
  assert len(table.where(method=study.RELEASED)) == groups
  assert np.isfinite(table["accuracy"]).all()


def test_costs_are_differences_on_the_same_split(done):
  _, table, _ = done
  for seed in (0, 2):
    for group in table.unique("group"):
      own = {"seed": seed, "group": group}
      plain = table.where(method=study.PLAIN, **own)["accuracy"][0]
      noisy = table.where(method="dp_sgd", epsilon=1, **own)
      assert noisy["accuracy_cost"][0] == pytest.approx(plain - noisy["accuracy"][0])
  assert np.isnan(table.where(method=study.PLAIN)["loss_cost"]).all()
  # The released model is on the split of the first seed.
  assert table.where(method=study.RELEASED).unique("seed") == [0]
  assert np.isfinite(table.where(method=study.RELEASED)["loss_cost"]).all()


def test_less_privacy_costs_less(done):
  _, table, _ = done
  everyone = table.where(group="everyone")
  cost = [everyone.where(method="dp_sgd", epsilon=e)["loss_cost"].mean() for e in (1, 8)]
  assert cost[0] > cost[1] > 0


def test_the_released_model_has_a_ledger_and_predicts_what_was_measured(done):
  folder, table, _ = done
  model = methods.load(folder / "release")
  told = model.guarantee.guarantee
  assert (told.delta, told.relation) == (1e-5, accounting.Relation.ADD_OR_REMOVE_ONE)
  assert not model.guarantee.for_release  # made with a fixed seed
  ledgers = list(folder.rglob("ledger.jsonl"))
  assert len(ledgers) == 1
  spent = accounting.Ledger.read(ledgers[0]).guarantee(1e-5)
  assert 3.9 < spent.epsilon <= 4.0
  assert model.settings["batch_size"] == 64
  people = data.load("colored_digits")
  accuracy = np.mean(model.predict(people.examples.x) == people.examples.y)
  measured = table.where(method=study.RELEASED, group="everyone")["accuracy"][0]
  assert accuracy == pytest.approx(measured, abs=0.05)  # everybody, and the test part


def test_what_is_released_lies_apart_from_the_key_of_its_noise(done):
  folder, _, _ = done
  assert not list((folder / "release").rglob("*secret*"))
  assert (folder / "work" / "private" / "secret_key").exists()


def test_with_a_margin_what_is_shown_is_measured():
  people = data.load("colored_digits")
  rng = np.random.default_rng(0)
  test = people.examples.take(np.arange(400))
  test = test._replace(group=np.asarray(test.group, np.int32))
  logits = rng.normal(size=(400, 10)) + 2 * np.eye(10)[(test.y + 3 * test.group) % 10]
  predicted = logits.argmax(1)
  measured = experiments.measure_groups(jnp.asarray(logits), test, people)
  found = {}
  for rule in (None, fairness.CounterRule(0.05, 30)):
    own = types.SimpleNamespace(abstention=rule)
    told = study._with_margin(measured, jnp.asarray(logits), test, people, own)
    shown = np.ones(400, bool)
    if rule is not None:
      sizes = {"num_groups": people.num_groups, "num_classes": 10}
      shown = fairness.sequential_filter(predicted, test.group, rule, **sizes)
    gaps = []
    for group in range(people.num_groups):
      here = shown & (test.group == group)
      rest = shown & ~here
      gaps += [(predicted[here] == c).mean() - (predicted[rest] == c).mean() for c in range(10)]
    assert told.gaps["coverage"] == pytest.approx(shown.mean())
    assert told.gaps["gap"] == pytest.approx(max(gaps), abs=1e-6)
    assert told.overall.accuracy == pytest.approx((predicted == test.y)[shown].mean())
    found[rule is None] = float(told.gaps["gap"]), float(told.gaps["coverage"])
  assert found[True][1] == 1 > found[False][1]
  assert found[False][0] < found[True][0]


@pytest.mark.slow
def test_margins_are_points_of_a_frontier_and_can_be_released(tmp_path):
  swept = ('methods=["dp_sgd", "fair_soft_pate"]', "max_gaps=[0.02, 1.0]", "public_fraction=0.3")
  made = plan(*TINY[:5], "seeds=2", *swept, *TINY[7:], config=CONFIGS / "frontier" / "adult.toml")
  table = experiments.execute(made, tmp_path / "run").where(group="everyone")
  fair = table.where(method="fair_soft_pate")
  assert fair.unique("max_gap") == [0.02, 1.0]
  assert (fair.where(max_gap=0.02)["gap"] < fair.where(max_gap=1.0)["gap"]).all()
  assert fair.where(max_gap=1.0)["coverage"].tolist() == [1.0] * 4
  assert np.isnan(table.where(method="dp_sgd")["max_gap"]).all()
  found = _frontiers.read_frontier(tmp_path / "run")
  assert sorted(found.methods) == ["dp_sgd"] * 2 + ["fair_soft_pate"] * 4
  (number,) = (i for i, o in enumerate(found.settings) if (o["epsilon"], o["max_gap"]) == (8, 0.02))
  own = _releases.read_point(tmp_path / "run", number, {})
  assert (own.method, own.epsilon, own.settings["max_gap"]) == ("fair_soft_pate", 8.0, 0.02)


RELEASE = ("epsilons=[4.0]", "seeds=1", "seed=os")


@pytest.fixture
def csv(tmp_path, monkeypatch):
  """A file of people, and a state folder of its own."""
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  rng = np.random.default_rng(0)
  lines = ["age,sex,income,work"]
  for _ in range(400):
    age, sex, work = rng.integers(20, 60), rng.integers(2), rng.integers(2)
    lines.append(f"{age},{'mf'[sex]},{int(age > 40)},{'ab'[work]}")
  path = tmp_path / "people.csv"
  path.write_text("\n".join(lines))
  return path


def release(csv, folder, *sets, group="sex"):
  of = (f"data.csv={csv}", "data.label=income", f"data.group={group}")
  made = plan(*TINY[2:], *RELEASE, *of, "data.name=adult", *sets)
  experiments.execute(made, folder)
  return report.write(_reading.read_run(folder)).read_text()


@pytest.mark.slow
def test_releases_of_one_file_are_in_one_ledger(csv, tmp_path):
  """Whatever is asked of it; no key, checkpoint or half a file is left."""
  release(csv, tmp_path / "a")
  page = release(csv, tmp_path / "b", group="work")
  (book,) = _dataset_ledger.dataset_ledgers()
  (spent,) = book.spent(1e-5)
  assert spent.releases == 2
  assert 4 < spent.guarantee.epsilon < 8
  told = book.told(1e-5)
  assert told in page
  assert "2 releases" in told
  assert str(tmp_path / "state") not in page
  model = methods.load(tmp_path / "b" / "release")
  assert "2 releases" in " ".join(model.spending)
  assert model.guarantee.for_release
  for left in ("secret_key*", "step-*", "*.partial"):
    assert not list(tmp_path.rglob(left))


@pytest.mark.slow
def test_a_release_beyond_the_data_set_s_budget_is_refused_before_any_work(csv, tmp_path):
  book = accounting.DatasetLedger.of(data.csv_identity(csv), name="people")
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  book.set_budget((3.0, 1e-5), relation=relation)
  with pytest.raises(_guarantee.BudgetError, match="does not cover"):
    release(csv, tmp_path / "a")
  assert not (tmp_path / "a").exists()
  assert [spent.releases for spent in book.spent()] == [0]


@pytest.mark.slow
def test_a_release_can_be_kept_out_of_the_ledger_and_says_so(csv, tmp_path):
  page = release(csv, tmp_path / "a", "dataset_ledger=false")
  assert _dataset_ledger.dataset_ledgers() == []
  assert "not entered in the ledger of its data set" in page


def test_a_fixed_seed_is_no_release(done):
  _, _, page = done
  assert "All releases from this data set" not in page


def test_the_page_says_for_whom_the_figures_are(done):
  _, _, page = done
  assert "dp_sgd protects a person" in page
  assert "not for release" in page


def test_the_scaler_s_people_are_not_the_trained_ones():
  fractions = plan(*TINY).settings.fractions
  assert fractions == pytest.approx((0.05, 0.7, 0.25))


@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_the_sizes_are_configs(size):
  assert plan(size=size).size == size


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("epsilons=[0.0]", "epsilons"),
    ("delta=1.0", "delta=1.0"),
    ("release_epsilon=-2.0", "release_epsilon=-2.0"),
    ("public_fraction=0.9", "leave people to train on"),
    ("test_fraction=0.0", "test_fraction=0.0"),
    ("settings.dp_sgd.optimizer=lamb", "optimizer"),
    ("settings.dp_sgd.step=3", "unknown key"),
    ("settings.telepathy.steps=3", "telepathy"),
    ("methods=[telepathy]", "telepathy"),
    ("release_method=telepathy", "telepathy"),
  ],
)
def test_impossible_settings_are_refused(change, told):
  with pytest.raises(_config.ConfigError, match=told):
    plan(change)


def test_a_group_named_like_everybody_is_refused_before_any_work():
  made = _runs.plan(study.STUDY, {"data": {"name": "digits", "group": "all"}})
  with pytest.raises(checks.ArgumentError, match="a group of digits is named 'everyone'"):
    made.study.load_people(made.settings)


def test_a_budget_that_cannot_be_met_is_refused_before_any_work(tmp_path):
  made = plan(*TINY, "epsilons=[1e-6]", "settings.dp_sgd.batch_size=1000")
  with pytest.raises(checks.JaxfairError, match="reaches epsilon=1e-06"):
    experiments.execute(made, tmp_path / "r")
  assert list(tmp_path.iterdir()) == []


SMALL = [
  "seeds=2",
  "epsilons=[20.0]",
  "settings.pate.num_teachers=8",
  "settings.pate.teacher_steps=20",
  "settings.plain.steps=60",
]


def quickstart(*sets):
  named = 'methods=["dp_sgd", "fair_dp_sgd", "soft_pate", "pate"]'
  return plan(*SMALL, named, *sets, size=None, config=QUICKSTART)


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
  """A run on a machine without data and without a network."""
  folder = tmp_path_factory.mktemp("quickstart")
  said = []

  def fetch(name):
    raise data.DataError(f"{name}: no network")

  with pytest.MonkeyPatch.context() as patch:
    patch.delenv("JAXFAIR_DATA", raising=False)
    patch.setenv("JAXFAIR_CACHE", str(folder / "cache"))
    patch.setattr(data, "fetch", fetch)
    _people._load.cache_clear()
    table = experiments.execute(quickstart(), folder / "run", say=said.append)
    page = report.write(_reading.read_run(folder / "run"))
  _people._load.cache_clear()
  return folder / "run", table, said, page.read_text()


@pytest.mark.slow
def test_the_stand_in_is_said_where_it_matters(offline):
  folder, table, said, page = offline
  assert table.unique("data") == ["colored_digits"]
  assert len(said) == 1
  assert "stand-in colored_digits" in said[0]
  assert "stand-in colored_digits" in page
  record = json.loads((folder / "run.json").read_text())
  assert record["notes"] == said


@pytest.mark.slow
def test_every_method_is_beside_the_plain_model_and_the_majority_class(offline):
  _, table, _, _ = offline
  digits = data.load("colored_digits")
  private = ["dp_sgd", "fair_dp_sgd", "soft_pate", "pate"]
  assert table.unique("method") == ["majority_class", "plain", *private]
  assert len(table) == 6 * 2 * (digits.num_groups + 1)
  everyone = table.where(group="everyone")
  constant, plain = (everyone.where(method=name) for name in ("majority_class", "plain"))
  assert constant["one_class_share"].tolist() == [1, 1]
  np.testing.assert_allclose(constant["demographic_parity_difference"], 0, atol=1e-6)
  np.testing.assert_allclose(constant["balanced_accuracy"], 0.1)
  assert plain["accuracy"].min() > 0.6  # ten classes: chance is 0.1
  assert everyone.where(method="dp_sgd")["balanced_accuracy"].min() > 0.3
  # Costs are paired: the same test people in every cell.
  for name in ("dp_sgd", "pate"):
    own = everyone.where(method=name)
    np.testing.assert_allclose(own["accuracy_cost"], plain["accuracy"] - own["accuracy"], atol=1e-7)
    assert own["count"].tolist() == plain["count"].tolist()


@pytest.mark.slow
def test_reasons_belong_to_the_method(offline):
  _, table, _, _ = offline
  clipped = table.where(method="dp_sgd")
  assert ((clipped["clipped_rate"] >= 0) & (clipped["clipped_rate"] <= 1)).all()
  assert np.isnan(clipped["flip_rate"]).all()
  votes = table.where(method="pate")
  told = [votes.where(group="everyone")[name] for name in study.EPSILONS]
  assert (told[0] <= 20).all()
  assert (told[2] <= 1.1 * told[0]).all()
  assert np.isnan(clipped["epsilon_any_votes"]).all()
  assert np.isfinite(votes["flip_rate"]).all()
  assert votes["refused_rate"].tolist() == [0] * len(votes)
  assert np.isnan(votes["clipped_rate"]).all()


@pytest.mark.slow
def test_the_page_begins_with_the_answer(offline):
  folder, _, _, page = offline
  answer = page.index('class="answer"')
  assert page.index("</header>") < answer < page.index("<h2>")
  assert "What to try: " in page
  assert "differentially private stochastic gradient descent" in page
  assert len(page) < 200_000
  claims = json.loads((folder / "claims.json").read_text())
  assert [claim["name"] for claim in claims] == [c.name for c in study.STUDY.claims]
  assert all(claim["verdict"] != "not run" for claim in claims)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("methods=['tree']", r"methods\[0\]='tree' is not known|methods='tree' is not known"),
    ("methods=['plain']", "plain is a baseline with no guarantee"),
    ("seeds=0", "seeds=0 must be at least 1"),
    ("epsilons=[]", "epsilons is empty"),
    ("settings.tree.steps=3", "settings='tree' is not known"),
    ("settings.dp_sgd.steps=0", "steps=0 must be at least 1"),
    ("settings.dp_sgd.step=3", "step"),
    ("test_fraction=1.5", "test_fraction=1.5 must be in"),
    ("data.name=adlut", "mean adult"),
  ],
)
def test_impossible_settings_of_the_quickstart_are_refused(change, told):
  with pytest.raises(checks.JaxfairError, match=told):
    quickstart(change)


def test_a_method_that_these_people_are_too_few_for_leaves_nothing(tmp_path):
  made = quickstart(
    "data.name=colored_digits", "data.group=color", "settings.pate.num_teachers=900"
  )
  with pytest.raises(checks.ArgumentError, match="num_teachers=900"):
    experiments.execute(made, tmp_path / "r")
  assert list(tmp_path.iterdir()) == []


def test_every_private_method_may_be_named():
  assert set(study.PRIVATE) == {n for n, m in methods.METHODS.items() if m.protects}
