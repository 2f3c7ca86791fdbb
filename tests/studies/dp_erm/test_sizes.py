"""Groups drawn in given ratios."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import checks
from jaxfair.experiments import _config, _study
from jaxfair.studies.dp_erm import common, sizes


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_the_groups_stand_in_the_ratio(monkeypatch, ratio):
  made_up = dp_erm_runs.two_groups(sizes=(90, 300))  # the second is larger
  monkeypatch.setattr(_study, "load_people", lambda people: (made_up, ""))
  config = sizes.Config(people=132)
  choose = sizes._chooser(config, ratio)
  sample = common.draw(config, {"data": "bank"}, dp_erm_runs.context(), choose=choose)
  counts = np.bincount(sample.people.group)
  assert counts.sum() == 132
  assert counts[0] / counts[1] == pytest.approx(ratio)


@pytest.mark.slow
def test_a_run_has_a_row_for_every_ratio_seed_and_group(tmp_path):
  table, claims = dp_erm_runs.run_untrained(
    tmp_path / "run",
    "fig_3_12",
    "sets=['bank']",
    "seeds=2",
    "people=150",
    "ratios=[0.5, 1.0]",
    "training.hidden=3",
  )
  assert len(table) == 2 * 2 * 2
  assert set(claims) == {"risk", "norms"}
  for column, name in (("excess_risk", "risk"), ("gradient_norm", "norms")):
    spreads = []
    for _, rows in table.split("group"):
      means = [rows.where(ratio=r)[column].mean() for r in rows.unique("ratio")]
      spreads.append(np.ptp(means) / abs(np.mean(means)))
    assert claims[name]["value"] == pytest.approx(max(spreads), rel=1e-6)


def test_too_few_people_are_refused_before_any_work(tmp_path):
  with pytest.raises(checks.ArgumentError, match="ask for fewer people"):
    dp_erm_runs.run_untrained(tmp_path / "run", "fig_3_12", "sets=['bank']", "people=250")
  assert list(tmp_path.iterdir()) == []


def test_ratios_are_at_most_one():
  with pytest.raises(_config.ConfigError, match="ratios"):
    dp_erm_runs.plan("fig_3_12", "ratios=[0.5, 3.0]")
