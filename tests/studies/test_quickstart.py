"""The quickstart, end to end, on digits that need no file."""

import json
import pathlib

import numpy as np
import pytest

from jaxfair import checks, data, experiments, methods, report
from jaxfair.experiments import _config, _people, _reading, _registry, _runs
from jaxfair.studies import quickstart

CONFIG = pathlib.Path(__file__).parents[2] / "configs" / "quickstart.toml"
SMALL = [
  "seeds=2",
  "epsilons=[20.0]",
  "settings.pate.num_teachers=8",
  "settings.pate.teacher_steps=20",
  "settings.plain.steps=60",
]


def plan(*sets):
  values = _config.read(CONFIG, sets=[*SMALL, *sets])
  return _runs.plan(_registry.find(values["study"]), values)


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
    table = experiments.execute(plan(), folder / "run", say=said.append)
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
  assert table.unique("method") == ["majority_class", "plain", "dp_sgd", "fair_dp_sgd", "pate"]
  assert len(table) == 5 * 2 * (digits.num_groups + 1)
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
  assert [claim["name"] for claim in claims] == [c.name for c in quickstart.STUDY.claims]
  assert all(claim["verdict"] != "not run" for claim in claims)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("methods=['tree']", r"methods\[0\]='tree' is not known|methods='tree' is not known"),
    ("methods=['plain']", "'plain' is not known"),
    ("seeds=0", "seeds=0 must be at least 1"),
    ("epsilons=[]", "epsilons is empty"),
    ("settings.tree.steps=3", "settings='tree' is not known"),
    ("settings.dp_sgd.steps=0", "steps=0 must be at least 1"),
    ("settings.dp_sgd.step=3", "step"),
    ("test_fraction=1.5", "test_fraction=1.5 must be in"),
    ("data.name=adlut", "mean adult"),
  ],
)
def test_impossible_settings_are_refused(change, told):
  with pytest.raises(checks.JaxfairError, match=told):
    plan(change)


def test_a_method_that_these_people_are_too_few_for_leaves_nothing(tmp_path):
  made = plan("data.name=colored_digits", "data.group=color", "settings.pate.num_teachers=900")
  with pytest.raises(checks.ArgumentError, match="num_teachers=900"):
    experiments.execute(made, tmp_path / "r")
  assert list(tmp_path.iterdir()) == []


def test_every_private_method_may_be_named():
  assert set(quickstart.PRIVATE) == {n for n, m in methods.METHODS.items() if m.protects}
