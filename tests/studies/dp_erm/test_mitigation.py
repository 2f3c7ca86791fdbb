"""The penalty's four settings on made-up people."""

import pytest

from helpers import dp_erm_runs
from jaxfair import checks
from jaxfair.accounting import _dp_sgd
from jaxfair.studies.dp_erm.mitigation import BOTH, CLIP, LARGE, NOISE, NONE, SMALL
from jaxfair.training import _regularizers


@pytest.fixture(scope="module")
def done(tmp_path_factory):
  folder, configs = tmp_path_factory.mktemp("mitigation") / "run", []
  table, claims = dp_erm_runs.run_untrained(
    folder,
    "fig_3_7",
    "sets=['bank']",
    "seeds=2",
    "training.hidden=3",
    "training.snapshots=2",
    "sample=30",
    "weight=2.0",
    configs=configs,
  )
  return folder, table, claims, configs


def test_each_penalty_has_its_terms(done):
  _, table, _, configs = done
  assert table.unique("penalty") == [NONE, CLIP, NOISE, BOTH, SMALL, LARGE]
  assert len(table) == 6 * 2 * 3 * 2
  weights = [(p.clip_weight, p.noise_weight) for c in configs for p in c.penalties]
  assert weights == [(0, 0), (2, 0), (0, 2), (2, 2), (0.2, 0.2), (20, 20)]
  for config in configs:
    assert config.penalties[0].form == "closeness"
    assert config.penalties[0].sample == 30
    with pytest.raises(_regularizers.UncoveredError):
      config.event(300)  # it reads private people


def test_the_axis_is_the_clipped_part_s_epsilon(done):
  _, table, _, _ = done
  assert set(table.where(step=0)["epsilon_of_clipped_part"]) == {0.0}
  expected = _dp_sgd.dp_sgd_epsilon(
    noise_multiplier=5.0, sampling_rate=32 / 300, steps=10, delta=1e-5
  )
  found = table.where(step=10)["epsilon_of_clipped_part"][0]
  assert found == pytest.approx(expected, rel=1e-3)


def test_the_notes_say_that_no_epsilon_covers_the_penalty(done):
  _, _, claims, _ = done
  made = dp_erm_runs.plan("fig_3_7")
  told = " ".join(made.study.notes(made.settings))
  assert "they are no guarantee" in told
  assert len(claims) == 5
  assert all(claim["verdict"] != "not run" for claim in claims.values())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """The penalty on public people, trained for real."""
  folder = tmp_path_factory.mktemp("public") / "run"
  table, _ = dp_erm_runs.run(
    folder,
    "fig_3_7",
    "sets=['bank']",
    "seeds=2",
    "training.hidden=3",
    "training.snapshots=1",
    "training.steps=40",
    "sample=20",
    "weight=10.0",
    "public_people=80",
  )
  return table


@pytest.mark.slow
def test_the_penalty_is_part_of_the_training(trained):
  start, end = trained.where(step=0), trained.where(step=40)
  risks = {name: end.where(penalty=name)["excess_risk"] for name in (NONE, CLIP, BOTH)}
  starts = [start.where(penalty=name)["excess_risk"].tolist() for name in (NONE, BOTH)]
  assert starts[0] == starts[1]  # seed i starts alike, whatever the penalty
  assert abs(risks[BOTH] - risks[NONE]).min() > 1e-3
  assert abs(risks[CLIP] - risks[NONE]).min() > 1e-4


@pytest.mark.slow
def test_with_public_people_the_epsilon_covers_everything(trained):
  expected = _dp_sgd.dp_sgd_epsilon(
    noise_multiplier=5.0, sampling_rate=32 / 220, steps=40, delta=1e-5
  )
  found = trained.where(step=40)["epsilon_of_clipped_part"][0]
  assert found == pytest.approx(expected, rel=1e-3)
  made = dp_erm_runs.plan("fig_3_7", "public_people=80")
  told = " ".join(made.study.notes(made.settings))
  assert "those of the whole training" in told
  assert "no guarantee" not in told


@pytest.mark.slow
def test_public_people_see_to_it_that_an_epsilon_is_told(tmp_path):
  configs = []
  dp_erm_runs.run_untrained(
    tmp_path / "run",
    "fig_3_7",
    "sets=['bank']",
    "seeds=2",
    "training.hidden=3",
    "training.snapshots=2",
    "sample=30",
    "public_people=80",
    configs=configs,
  )
  assert all(config.event(220).steps == 10 for config in configs)


def test_too_many_public_people_are_refused(tmp_path):
  with pytest.raises(checks.ArgumentError, match="public_people=200 leaves"):
    dp_erm_runs.run(tmp_path / "run", "fig_3_7", "public_people=200")
