"""Weights of the penalty by dual ascent on public people."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair.studies.dp_erm import dual
from jaxfair.studies.dp_erm.mitigation import BOTH, NONE


def test_weights_add_up_their_steps_and_are_not_negative():
  ways = np.array([[1.0, 2.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
  steps = np.zeros((3, 1, 3, 2, 2))  # ways, seeds, looks, kinds, terms
  steps[:, 0, 0] = 100.0  # of the start: not taken
  steps[:, 0, 1] = [[0.5, 0.25], [-1.0, -1.0]]
  steps[:, 0, 2] = [[0.5, 0.25], [0.3, 0.3]]
  first, second = dual._weights(ways, steps)[:, :, 0]
  np.testing.assert_allclose(first, [[1, 1, 1], [0, 0.5, 1.0], [0, 0, 0.3]])
  np.testing.assert_allclose(second, [[2, 2, 2], [0, 0.25, 0.5], [0, 0, 0.3]])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("dual") / "run"
  sets = ("sets=['bank']", "training.hidden=3", "training.steps=20", "training.snapshots=2")
  return dp_erm_runs.run(folder, "dual", *sets, "dual_rate=20.0", "public_people=80")


def test_the_dual_starts_without_weights_and_fixed_ones_stay(done):
  table, claims = done
  assert len(claims) == 8
  assert set(table.where(penalty=BOTH)["gamma1"]) == {1.0}
  for way in (dual.BY_TERM, dual.BY_RISK):
    assert not table.where(penalty=way, step=0)["gamma2"].any()
    assert (table.where(penalty=way, step=20)["gamma2"] > 0).all()
  risk = table.where(penalty=dual.BY_RISK, step=20)
  np.testing.assert_array_equal(risk["gamma1"], risk["gamma2"])


def test_the_weights_of_the_dual_are_those_that_it_trains_with(done):
  """The first round is that without a penalty, the second is not."""
  table, _ = done
  at = {
    (way, step): table.where(penalty=way, step=step)["excess_risk"]
    for way in (NONE, dual.BY_TERM)
    for step in (10, 20)
  }
  np.testing.assert_allclose(at[dual.BY_TERM, 10], at[NONE, 10], atol=1e-6)
  assert np.abs(at[dual.BY_TERM, 20] - at[NONE, 20]).min() > 1e-4


def test_the_epsilon_covers_the_choice_of_weights():
  made = dp_erm_runs.plan("dual")
  told = " ".join(made.study.notes(made.settings))
  assert "those of the whole training" in told
