"""The disclosure study, end to end, on a small table of its own."""

import pathlib

import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import checks, experiments
from jaxfair.disclosure import _questionnaire
from jaxfair.experiments import _config, _registry, _runs
from jaxfair.studies import disclosure

CONFIGS = pathlib.Path(__file__).parents[2] / "configs" / "disclosure"
SMALL = {
  "columns": [3],
  "deltas": [0.0, 0.1],
  "people": 64,
  "seeds": 2,
  "draws": 20,
  "steps": 60,
  "batch_size": 64,
}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
  path = tmp_path_factory.mktemp("people") / "loans.csv"
  rng = np.random.default_rng(0)
  x = cases.people(300)
  noise = 0.5 * rng.normal(size=300)
  paid = (x[:, 0] + x[:, 4] - x[:, 5] + noise > 0).astype(int)
  lines = ["age,job,pay,debt,sex,paid"]
  for row, label in zip(x, paid, strict=True):
    word = "abc"[int(np.argmax(row[1:4]))]
    sex = "f" if rng.uniform() < 0.5 else "m"
    lines.append(f"{row[0]},{word},{row[4]},{row[5]},{sex},{label}")
  path.write_text("\n".join(lines))
  return {"csv": str(path), "label": "paid", "positive": 1, "group": "sex"}


def plan(people, changes=None):
  values = {"study": "disclosure", "data": people} | SMALL | (changes or {})
  return _runs.plan(_registry.find("disclosure"), values)


def check(people, changes):
  made = plan(people, changes)
  made.study.load_people(made.settings)


@pytest.mark.slow
def test_the_study_compares_procedures_and_saves_a_questionnaire(people, tmp_path):
  folder = tmp_path / "run"
  table = experiments.execute(plan(people), folder)
  everyone = table.where(group="everyone")
  certain = everyone.where(delta=0.0)
  agreement = certain["agreement"]
  assert (agreement[~np.isnan(agreement)] == 1).all()
  mean = {
    method: np.nanmean(certain.where(method=method)["leakage"])
    for method in certain.unique("method")
  }
  assert mean[disclosure.OPTIMUM] <= min(mean.values())
  assert max(mean.values()) <= 3
  paper = everyone.where(method=disclosure.ENTROPY)
  assert np.nanmean(paper.where(delta=0.1)["leakage"]) <= mean[disclosure.ENTROPY]
  shares = paper.where(delta=0.0)
  shares = shares["people"][~np.isnan(shares["people"])]
  np.testing.assert_allclose(shares.reshape(2, 4).sum(axis=1), 1.0, atol=1e-5)
  np.testing.assert_allclose(paper.where(revealed=3.0)["people_up_to"], 1.0, atol=1e-5)
  assert set(table.unique("group")) == {"f", "m", "everyone"}
  made = _questionnaire.Questionnaire.read(folder / _questionnaire.FILE)
  assert made.sensitive == ("age", "job", "pay", "debt")
  assert "sex" not in made.columns


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"columns": [5]}, "columns=5 must be at most 4"),
    ({"columns": []}, "columns is empty"),
    ({"deltas": [0.5]}, "deltas=0.5 must be in"),
    ({"sensitive": ["wage"]}, "'wage' is not a column"),
    ({"people": 0}, "people=0 must be at least 1"),
  ],
)
def test_impossible_settings_are_refused(people, change, told):
  with pytest.raises(checks.JaxfairError, match=told):
    check(people, change)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("[!_]*.toml")), ids=str)
@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_every_config_is_understood(path, size):
  values = _config.read(path, size=size)
  study = _registry.find(values["study"])
  names = {"study", "title", "seed", "size"}
  config = {k: v for k, v in values.items() if k not in names}
  experiments._config.build(study.config, config)
