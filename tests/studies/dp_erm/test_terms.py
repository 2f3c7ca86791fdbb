"""Clipping and noise terms along training, on made-up people."""

import numpy as np
import pytest

from helpers import dp_erm_runs


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder = tmp_path_factory.mktemp("terms") / "run"
  return dp_erm_runs.run_untrained(
    folder,
    "fig_3_11",
    "sets=['bank']",
    "seeds=2",
    "training.hidden=3",
    "training.snapshots=1",
    "probes=4",
  )


def test_every_term_is_a_line(done):
  table, _ = done
  assert len(table) == 2 * 3 * 2 * 2 * 2  # rates, terms, seeds, looks, groups
  for what, column in (
    ("clipping", "clipping"),
    ("its curvature part", "curvature_part"),
    ("noise", "noise"),
  ):
    rows = table.where(what=what)
    np.testing.assert_array_equal(rows["change"], rows[column])


def test_the_noise_term_is_the_trace_s(done):
  """eta^2/2 Tr(H_a) (C sigma / batch)^2, by hand from the config."""
  table, claims = done
  variance = (0.1 * 5.0 / 32) ** 2
  rate = table["rate"]
  np.testing.assert_allclose(table["noise"], 0.5 * rate**2 * variance * table["trace"], rtol=1e-4)
  rows = table.where(what="clipping", rate=0.1)
  share = np.abs(rows["curvature_part"]) / np.abs(rows["clipping"])
  assert (share < 0.5).all()
  small = table.where(what="clipping", rate=1e-4)
  np.testing.assert_allclose(small["curvature_part"] * 1e6, rows["curvature_part"], rtol=1e-4)
  assert "never met" in claims.pop("condition")["why"]
  assert "not run" not in {claim["verdict"] for claim in claims.values()}
