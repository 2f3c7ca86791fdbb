"""The studies of notions and of the query phase."""

import jax
import numpy as np
import pytest

from helpers.pate_studies import write_people
from jaxfair import accounting, studies
from jaxfair.studies import protocol
from jaxfair.studies.config import ConfigError, build
from jaxfair.studies.fairpate import notions, queries


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
  folder = tmp_path_factory.mktemp("queries")
  write_people(folder / "people.csv")
  people = {
    "csv": str(folder / "people.csv"), "label": "label", "group": "group",
  }  # fmt: skip
  values = {
    "data": people,
    "teachers": 8,
    "queries": 150,
    "private_people": 200,
    "test_people": 50,
    "sigma_threshold": 2.0,
    "sigma_answer": 1.0,
    "thresholds": [3.0, 6.0],
    "max_gap": [0.02, 0.5],
    "epsilon": [40.0, 75.0],
    "min_count": 10,
    "teacher_steps": 10,
    "batch_size": 20,
    "seeds": 1,
  }
  plan = studies.plan(studies.find("fairpate.queries"), values)
  return studies.execute(plan, folder / "run", say=lambda text: None)


@pytest.mark.slow
def test_sound_runs_stay_within_their_budget(asked):
  sound = asked.where(charge=queries.SOUND)
  assert (sound["true_epsilon"] <= sound["epsilon"]).all()
  paper = asked.where(charge=queries.PAPER, choice="any")
  assert (paper["answered"] >= sound.where(choice="any")["answered"]).all()
  hidden = paper.where(max_gap=0.02)
  assert (hidden["true_epsilon"] > hidden["epsilon"]).any()


@pytest.mark.slow
def test_counts_add_up_to_the_cost(asked):
  for row in asked.rows():
    chosen = row["answered"] + row["unfair"]
    rho = row["asked"] / 8 + chosen
    cost = accounting.zcdp_epsilon(rho=rho, delta=1e-5)
    if row["choice"] == "any":
      np.testing.assert_allclose(row["true_epsilon"], cost, rtol=1e-6)
    else:  # a forced label is free
      assert row["unfair"] == 0
      assert row["true_epsilon"] <= cost * (1 + 1e-9)


def test_the_study_of_notions_counts_every_order(tmp_path):
  config = notions.Config(((30, 20), (10, 40)), 0.1, 5, 3)
  assert len(notions.cells(config)) == 6
  context = protocol.Context(
    jax.random.key(0), jax.random.key(1), False, tmp_path, print
  )
  cell = {"notion": "rest", "guard": "table"}
  table = notions.run(config, cell, context)
  assert len(table) == 3
  assert (table["answered"] <= 100).all()
  assert (table["room"] > 0).all()


def test_counts_of_uneven_rows_are_refused():
  with pytest.raises(ConfigError, match="rows of one length"):
    build(notions.Config, {"counts": [[1, 2], [3]]})
