"""Lists of people on which a group appears more often."""

import numpy as np
import pytest

from helpers import pruning_runs
from jaxfair import checks
from jaxfair.experiments import _registry
from jaxfair.studies.pruning.sizes import upsampled


@pytest.mark.parametrize("factor", [1.0, 5.0, 20.0])
def test_members_appear_so_many_times_as_often(factor):
  rows = np.arange(100, 140)
  member = np.arange(40) < 7
  found = upsampled(rows, member, factor, 3000, seed=0)
  assert found.shape == (3000,)
  times = np.bincount(found, minlength=140)[100:]
  share = 3000 / (33 + 7 * factor)
  assert np.all(np.abs(times[member] - factor * share) < 1)
  assert np.all(np.abs(times[~member] - share) < 1)


@pytest.mark.slow
def test_a_run_has_every_group_factor_and_role(tmp_path):
  table, claims = pruning_runs.run_untrained(
    tmp_path / "run", "sizes_gender", "data.label=digit", "data.group=label", 'groups=["3", "8"]'
  )
  assert len(table) == 2 * 2 * 2 * 11  # upsampled, factors, seeds, groups
  own = table.where(role="upsampled")
  assert set(zip(own["upsampled"], own["group"], strict=True)) == {("3", "3"), ("8", "8")}
  assert set(claims) == {"falls", "smallest"}
  [level] = _registry.find("pruning.sizes").levels(table)
  everyone = table.where(group="everyone", factor=1.0)
  assert level.accuracy == pytest.approx(everyone["accuracy"].mean())
  assert level.majority_accuracy == pytest.approx(everyone["majority_accuracy"].mean())


def test_a_group_that_is_not_there_is_refused_before_any_work(tmp_path):
  with pytest.raises(checks.ArgumentError, match="groups='ten'"):
    pruning_runs.run_untrained(
      tmp_path / "run", "sizes_gender", "data.label=digit", "data.group=label", 'groups=["ten"]'
    )
  assert list(tmp_path.iterdir()) == []
