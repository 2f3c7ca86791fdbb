"""Groups normalized together and by themselves."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair.studies.dp_erm.output import APART, TOGETHER


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("normalize") / "run"
  return dp_erm_runs.run(
    folder,
    "fig_3_9",
    "sets=['bank']",
    "seeds=2000",
    "epsilons=[10.0]",
    people=dp_erm_runs.two_groups(norms=(2.0, 8.0)),
  )


def test_by_itself_each_group_has_the_same_norms(done):
  table, _ = done
  for way, apart in ((TOGETHER, 0.2), (APART, 0.0)):
    rows = table.where(normalised=way)
    norms = [rows.where(role=r)["input_norm"][0] for r in ("majority", "minority")]
    spread = abs(norms[1] - norms[0])
    # Mean norms, not mean squares, so equal up to the shape of the groups.
    assert spread > apart if apart else spread < 0.1


def test_the_gap_shrinks_when_norms_were_what_told_groups_apart(done):
  table, claims = done
  assert claims["can"]["verdict"] == claims["mostly"]["verdict"] == "supported"
  assert claims["gap ratio"]["value"] < 0.5
  traces = {
    way: np.ptp(np.unique(table.where(normalised=way)["trace"])) for way in (TOGETHER, APART)
  }
  assert traces[APART] < 0.5 * traces[TOGETHER]
