"""Groups drawn in given ratios."""

import jax
import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import checks
from jaxfair.experiments import _config
from jaxfair.studies.dp_erm import sizes


@pytest.mark.slow
@pytest.mark.parametrize("minority", [12, 66])
def test_people_are_drawn_once_and_in_the_ratio(minority):
  group = np.repeat([0, 1], [90, 300])  # the second is larger
  choose = jax.jit(sizes.chooser(group, 132))
  draws = [np.asarray(choose(minority, jax.random.key(i))) for i in range(3)]
  for rows in draws:
    assert len(set(rows.tolist())) == 132
    assert np.bincount(group[rows]).tolist() == [minority, 132 - minority]
  assert len(set(draws[0].tolist()) & set(draws[1].tolist())) < 100


@pytest.mark.slow
def test_every_seed_draws_and_trains(tmp_path):
  table, claims = dp_erm_runs.run(
    tmp_path / "run",
    "fig_3_12",
    "sets=['bank']",
    "seeds=3",
    "people=150",
    "ratios=[0.5, 1.0]",
    "training.hidden=3",
    "training.plain_steps=100",
  )
  assert len(table) == 2 * 3 * 2
  assert set(claims) == {"risk", "norms"}
  own = table.where(role="minority")
  low, high = (own.where(ratio=r)["gradient_norm"] for r in (0.5, 1.0))
  assert (low != high).all()
  assert len(np.unique(own["balanced_accuracy"])) > 1  # other people, another plain training
  assert "ratio=min minus ratio=max" in claims["norms"]["statistic"]


def test_too_few_people_are_refused_before_any_work(tmp_path):
  with pytest.raises(checks.ArgumentError, match="ask for fewer people"):
    dp_erm_runs.run(tmp_path / "run", "fig_3_12", "sets=['bank']", "people=250")
  assert list(tmp_path.iterdir()) == []


def test_ratios_are_at_most_one():
  with pytest.raises(_config.ConfigError, match="ratios"):
    dp_erm_runs.plan("fig_3_12", "ratios=[0.5, 3.0]")
