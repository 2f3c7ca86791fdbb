"""What the chapter 3 studies share, and that every config is one."""

import jax
import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import data, experiments
from jaxfair.studies.dp_erm import common


@pytest.mark.parametrize("figure", dp_erm_runs.FIGURES)
@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_every_figure_has_every_size(figure, size):
  made = dp_erm_runs.plan(figure, size=size)
  assert made.size == size
  assert set(made.settings.sets) <= set(common.GROUPS)


@pytest.mark.slow
def test_people_are_standardised(monkeypatch):
  monkeypatch.setattr(common, "load", lambda name: dp_erm_runs.two_groups())
  sample = common.draw_people("bank", 120, key=jax.random.key(0))
  assert sample.people.x.shape == (120, 3)
  np.testing.assert_allclose(sample.people.x.mean(0), 0, atol=1e-6)
  np.testing.assert_allclose(sample.people.x.std(0), 1, atol=1e-5)
  assert sample.roles == ["majority", "minority"]


@pytest.mark.slow
def test_the_thesis_s_groups_are_loaded(data_root):
  del data_root
  for name in ("bank", "abalone", "wine"):
    assert common.load(name).num_groups == 2
  assert common.load("bank").group_names == ("age < 60", "age >= 60")
  assert set(common.GROUPS) <= set(data.names())
  assert "dp_erm.output" in experiments.names()
