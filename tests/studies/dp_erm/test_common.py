"""What the chapter 3 studies share, and that every config is one."""

import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair.data import _loading
from jaxfair.experiments import _people, _registry, _study
from jaxfair.studies.dp_erm import common


@pytest.mark.parametrize("figure", dp_erm_runs.FIGURES)
@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_every_figure_has_every_size(figure, size):
  made = dp_erm_runs.plan(figure, size=size)
  assert made.size == size
  assert set(made.settings.sets) <= set(common.GROUPS)


@pytest.mark.slow
def test_people_are_standardized(monkeypatch):
  made_up = dp_erm_runs.two_groups()
  monkeypatch.setattr(_study, "load_people", lambda people: (made_up, ""))
  config = common.ErmConfig(max_people=120)
  sample = common.draw(config, {"data": "bank"}, dp_erm_runs.context())
  assert sample.people.x.shape == (120, 3)
  np.testing.assert_allclose(sample.people.x.mean(0), 0, atol=1e-6)
  np.testing.assert_allclose(sample.people.x.std(0), 1, atol=1e-5)
  assert sample.roles == ["majority", "minority"]


@pytest.mark.slow
def test_the_thesis_s_groups_are_loaded(data_root):
  del data_root
  loaded = {
    name: _people.load_people(common.named(name))[0] for name in ("bank", "abalone", "wine")
  }
  assert {people.num_groups for people in loaded.values()} == {2}
  assert loaded["bank"].group_names == ("age < 60", "age >= 60")
  assert set(common.GROUPS) <= set(_loading.names())
  assert "dp_erm.output" in _registry.names()
