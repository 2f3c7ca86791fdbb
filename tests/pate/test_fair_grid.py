"""The grid is every run of `fair_gnmax`, all at once."""

import jax
import numpy as np
import pytest

from jaxfair import accounting, fairness, pate
from jaxfair.checks import ArgumentError
from jaxfair.pate import _fair_grid

QUERIES, GROUPS = 120, 3
SETTINGS = _fair_grid.FairQuerySettings(
  threshold=[10.0, 15.0, 18.0],
  sigma_threshold=[4.0, 8.0, 2.0],
  sigma_answer=3.0,
  max_gap=[0.05, 0.2, 0.1],
  min_count=[5, 5, 20],
  max_rho=[5.0, np.inf, 8.0],
)


@pytest.fixture(scope="module")
def people():
  rng = np.random.default_rng(0)
  groups = rng.integers(0, GROUPS, QUERIES)
  right = rng.binomial(20, rng.beta(3, 2, QUERIES))
  counts = np.stack([right, 20 - right], axis=1)
  return counts, groups


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["any", "allowed"])
def test_every_lane_is_a_run(people, choice):
  counts, groups = people
  keys = jax.random.split(jax.random.key(1), 2)
  grid = _fair_grid.fair_query_grid(
    counts, groups, SETTINGS, num_groups=GROUPS, keys=keys, choice=choice
  )
  assert grid.outcomes.shape == (3, 2, len(pate.Outcome))
  assert (grid.outcomes.sum(-1) == QUERIES).all()
  seen = np.asarray(grid.outcomes).sum((0, 1))
  assert (seen[[pate.Outcome.ANSWERED, pate.Outcome.NOT_CONFIDENT]] > 0).all()
  for s in range(3):
    one = {name: np.broadcast_to(value, 3)[s] for name, value in SETTINGS._asdict().items()}
    for r in range(2):
      run = pate.fair_gnmax(
        counts, groups, num_groups=GROUPS, key=keys[r], continuous=True, choice=choice, **one
      )
      np.testing.assert_array_equal(grid.counters[s, r], run.counters)
      found = np.bincount(run.outcome, minlength=len(pate.Outcome))
      np.testing.assert_array_equal(grid.outcomes[s, r], found)
      assert grid.answered[s, r] == (run.labels >= 0).sum()
      gap = fairness.demographic_disparity(run.counters).max()
      np.testing.assert_allclose(grid.gap[s, r], gap, rtol=1e-5)
      test, answer = (0.5 / one["sigma_threshold"] ** 2, one["sigma_answer"] ** -2)
      rho = run.tested.sum() * test + run.chosen.sum() * answer
      np.testing.assert_allclose(grid.spent[s, r], rho, rtol=1e-5)
      assert rho <= one["max_rho"]


def test_a_budget_in_epsilon_is_kept(people):
  counts, groups = people
  rho = accounting.zcdp_budget(epsilon=3.0, delta=1e-5)
  grid = _fair_grid.fair_query_grid(
    counts,
    groups,
    SETTINGS._replace(max_rho=rho),
    num_groups=GROUPS,
    keys=jax.random.split(jax.random.key(1), 2),
  )
  spent = accounting.zcdp_epsilon(rho=float(grid.spent.max()), delta=1e-5)
  assert 2.0 < spent <= 3.0


def test_a_budget_below_nothing_is_refused(people):
  counts, groups = people
  with pytest.raises(ArgumentError, match="max_rho=-1 must be 0 or above"):
    _fair_grid.fair_query_grid(
      counts,
      groups,
      SETTINGS._replace(max_rho=-1),
      num_groups=GROUPS,
      keys=jax.random.split(jax.random.key(1), 2),
    )


def test_lists_of_different_lengths_are_refused(people):
  counts, groups = people
  with pytest.raises(ArgumentError, match="lists of one length"):
    _fair_grid.fair_query_grid(
      counts,
      groups,
      SETTINGS._replace(max_rho=[1.0, 2.0]),
      num_groups=GROUPS,
      keys=jax.random.split(jax.random.key(1), 2),
    )
