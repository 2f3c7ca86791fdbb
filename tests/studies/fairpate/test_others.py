"""The studies of notions and of the query phase."""

import jax
import numpy as np
import pytest

from jaxfair import accounting, data, experiments, methods, pate
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _frontiers, _study
from jaxfair.experiments._config import ConfigError, build
from jaxfair.pate import _fair
from jaxfair.studies.fairpate import notions, queries
from jaxfair.studies.fairpate.common import Repetition

SIZE = 200
CONFIG = queries.Config(epsilon=(30.0, 60.0), sigma_threshold=2.0, sigma_answer=1.0)


@pytest.fixture(scope="module")
def rows():
  """A query phase that refuses every third label, at two budgets."""
  people = data.two_gaussians((SIZE, SIZE), key=jax.random.key(0))
  public = jax.tree.map(lambda leaf: np.asarray(leaf)[::2], people.examples)
  population = methods.Population(public, ("no", "yes"), ("a", "b"), public=public)
  own = Repetition(CONFIG, people, population, public)
  kinds = [pate.Outcome.ANSWERED, pate.Outcome.UNFAIR]
  kinds += [pate.Outcome.NOT_CONFIDENT, pate.Outcome.REFUSED_FREE]
  outcome = np.resize([kinds[i] for i in (0, 0, 1, 2, 3)], SIZE)
  run = _fair.FairAnswers(
    np.where(outcome == pate.Outcome.ANSWERED, public.y, -1),
    outcome,
    np.zeros((2, 2)),
    outcome != pate.Outcome.REFUSED_FREE,
    np.isin(outcome, kinds[:2]),
  )
  return experiments.Table.from_rows(queries._rows(CONFIG, own, run, "any"))


@pytest.mark.slow
def test_sound_runs_stay_within_their_budget(rows):
  sound, paper = (rows.where(charge=charge) for charge in (queries.SOUND, queries.PAPER))
  assert (sound["true_epsilon"] <= sound["epsilon"]).all()
  assert (paper["true_epsilon"] > paper["epsilon"]).all()
  assert (paper["answered"] > sound["answered"]).all()
  assert (rows["accuracy"] == 1).all()


def test_counts_add_up_to_the_cost(rows):
  for row in rows.rows():
    rho = row["asked"] / 8 + row["answered"] + row["unfair"]
    cost = accounting.zcdp_epsilon(rho=rho, delta=1e-5)
    np.testing.assert_allclose(row["true_epsilon"], cost, rtol=1e-6)
    claimed = row["asked"] / 8 + row["answered"]
    if row["charge"] == queries.PAPER:
      rho = claimed
    budget = accounting.zcdp_budget(epsilon=row["epsilon"], delta=1e-5)
    assert rho <= budget < rho + 2 * 9 / 8


def test_only_sound_charges_are_points_of_a_frontier(rows, tmp_path):
  many = len(rows)
  table = rows.plus(method=["fairpate"] * many, seed=[0] * many)
  config = {"study": "fairpate.queries", "epsilon": [30.0, 60.0]}
  (tmp_path / "config.toml").write_text(configs.dump(config))
  (tmp_path / "results.csv").write_text(table.to_csv())
  found = _frontiers.read_frontier(tmp_path)
  sound = rows.where(charge=queries.SOUND)
  for column, name in enumerate(found.points.names):
    np.testing.assert_allclose(found.points.values[:, 0, column], sound[name])
  np.testing.assert_array_equal(sound["coverage"], sound["answered"] / SIZE)


@pytest.mark.slow
def test_the_study_of_notions_counts_every_order(tmp_path):
  config = notions.Config(((30, 20), (10, 40)), 0.1, 5, 3)
  assert len(notions.STUDY.cells(config)) == 6
  context = _study.Context(jax.random.key(0), jax.random.key(1), False, tmp_path, print)
  cell = {"notion": "rest", "guard": "table"}
  table = notions.run(config, cell, context)
  assert len(table) == 3
  assert (table["answered"] <= 100).all()
  assert (table["room"] > 0).all()


def test_counts_of_uneven_rows_are_refused():
  with pytest.raises(ConfigError, match="rows of one length"):
    build(notions.Config, {"counts": [[1, 2], [3]]})
