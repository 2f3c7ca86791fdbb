"""The studies of notions and of the query phase."""

import jax
import numpy as np
import pytest

from jaxfair import accounting, data, experiments, methods, pate
from jaxfair.accounting import _pate_gnmax, _pate_threshold, _rdp
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _frontiers, _study
from jaxfair.experiments._config import ConfigError, build
from jaxfair.pate import _fair
from jaxfair.studies.fairpate import charging, notions, queries
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
  phase = _fair.FairAnswers(
    np.where(outcome == pate.Outcome.ANSWERED, public.y, -1),
    outcome,
    np.zeros((2, 2)),
    outcome != pate.Outcome.REFUSED_FREE,
    np.isin(outcome, kinds[:2]),
  )
  votes = np.eye(2, dtype=int)[np.asarray(public.y)] * 10
  priced = charging.Charges(CONFIG, votes)
  return experiments.Table.from_rows(queries._rows(own, priced, phase, 5.0, "any"))


@pytest.mark.slow
def test_sound_runs_stay_within_their_budget(rows):
  sound, paper = (rows.where(charge=charge) for charge in (charging.SOUND, charging.FREE))
  assert (sound["true_epsilon"] <= sound["epsilon"]).all()
  assert (paper["true_epsilon"] > paper["epsilon"]).all()
  assert (paper["answered"] > sound["answered"]).all()
  assert (rows["accuracy"] == 1).all()


def test_counts_add_up_to_the_cost(rows):
  for row in rows.keep(rows["charge"] != charging.PAPER).rows():
    rho = row["asked"] / 8 + row["answered"] + row["unfair"]
    cost = accounting.zcdp_epsilon(rho=rho, delta=1e-5)
    np.testing.assert_allclose(row["true_epsilon"], cost, rtol=1e-6)
    claimed = row["asked"] / 8 + row["answered"]
    if row["charge"] == charging.FREE:
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
  sound = rows.where(charge=charging.SOUND)
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


@pytest.fixture
def votes():
  rng = np.random.default_rng(0)
  right = rng.integers(6, 13, 80)
  return np.stack([right, 12 - right], axis=1)


def phase(votes, max_rho=np.inf):
  found = pate.fair_gnmax(
    votes,
    np.arange(80) % 2,
    num_groups=2,
    threshold=6,
    sigma_threshold=4.0,
    sigma_answer=2.0,
    max_gap=0.05,
    min_count=3,
    max_rho=max_rho,
    key=jax.random.key(2),
  )
  return jax.tree.map(np.asarray, found)


CHARGED = queries.Config(sigma_threshold=4.0, sigma_answer=2.0)


@pytest.mark.parametrize("epsilon", [3.0, 8.0, 15.0])
def test_a_phase_that_is_cut_is_the_phase_within_the_budget(votes, epsilon):
  whole = phase(votes)
  assert (whole.outcome == pate.Outcome.UNFAIR).any()
  asked = charging.Charges(CHARGED, votes).asked(whole, 6.0, charging.SOUND)(epsilon)
  within = phase(votes, accounting.zcdp_budget(epsilon=epsilon, delta=1e-5))
  np.testing.assert_array_equal(np.where(asked, whole.labels, -1), within.labels)


def test_the_papers_charge_is_the_data_dependent_price_of_what_was_given(votes):
  whole, orders = phase(votes), _rdp.DEFAULT_ORDERS
  asked = charging.Charges(CHARGED, votes).asked(whole, 6.0, charging.PAPER)
  given = whole.outcome == pate.Outcome.ANSWERED

  def price(first):
    tested, kept = votes[:first][whole.tested[:first]], votes[:first][given[:first]]
    settings = {"orders": orders, "discrete": True}
    total = _pate_threshold.threshold_rdp(tested, threshold=6.0, sigma=4.0, **settings).sum(axis=0)
    total = total + _pate_gnmax.gnmax_rdp(kept, sigma=2.0, **settings).sum(axis=0)
    return _rdp.rdp_to_epsilon(total.not_for_release, orders, delta=1e-5)

  last = int(asked(6.0).sum())
  assert asked(6.0)[:last].all()
  assert price(last) <= 6.0 < price(last + 1)
