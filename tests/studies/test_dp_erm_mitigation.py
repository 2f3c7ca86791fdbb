"""The penalty's four settings on made-up people."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import accounting, report
from jaxfair.studies.dp_erm_mitigation import BOTH, CLIP, NOISE, NONE


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("mitigation") / "run"
  table, claims = dp_erm_runs.run(
    folder, "fig_3_7", "seeds=2", "training.hidden=3", "training.snapshots=2",
    "training.plain_steps=50", "sample=30", "weight=2.0",
  )  # fmt: skip
  return folder, table, claims


def test_the_penalties_start_alike_and_end_apart(done):
  _, table, _ = done
  assert table.unique("penalty") == [NONE, CLIP, NOISE, BOTH]
  ends = {}
  for name in table.unique("penalty"):
    rows = table.where(penalty=name)
    first = table.where(penalty=NONE, step=0)["excess_risk"]
    np.testing.assert_allclose(rows.where(step=0)["excess_risk"], first)
    ends[name] = rows.where(at_end="yes")["excess_risk"]
  for name in (CLIP, NOISE, BOTH):
    assert np.abs(ends[name] - ends[NONE]).max() > 1e-6


def test_the_axis_is_the_clipped_part_s_epsilon(done):
  _, table, _ = done
  assert set(table.where(step=0)["epsilon_of_clipped_part"]) == {0.0}
  expected = accounting.dp_sgd_epsilon(
    noise_multiplier=5.0, sampling_rate=32 / 300, steps=10, delta=1e-5,
    dataset_size=300,
  )  # fmt: skip
  found = table.where(step=10)["epsilon_of_clipped_part"][0]
  assert found == pytest.approx(expected, rel=1e-3)


def test_the_page_says_that_no_epsilon_covers_the_penalty(done):
  folder, _, claims = done
  page = report.write(folder).read_text()
  assert "they are no guarantee" in page
  assert len(claims) == 3
  assert all(claim["verdict"] != "not run" for claim in claims.values())
