"""What the chapter 3 studies share, and that every config is one."""

import jax
import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import checks, data, studies
from jaxfair.studies import dp_erm


@pytest.mark.parametrize("figure", dp_erm_runs.FIGURES)
@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_every_figure_has_every_size(figure, size):
  made = dp_erm_runs.plan(figure, size=size)
  assert made.size == size
  assert set(made.settings.sets) <= set(dp_erm.GROUPS)


def test_people_are_standardised(monkeypatch):
  monkeypatch.setattr(dp_erm, "load", lambda name: dp_erm_runs.two_groups())
  sample = dp_erm.draw_people("bank", 120, key=jax.random.key(0))
  assert sample.people.x.shape == (120, 3)
  np.testing.assert_allclose(sample.people.x.mean(0), 0, atol=1e-6)
  np.testing.assert_allclose(sample.people.x.std(0), 1, atol=1e-5)
  assert sample.roles == ["majority", "minority"]


def test_seeds_are_paired_across_a_sweep():
  people = dp_erm_runs.two_groups().examples
  settings = dp_erm.Training(hidden=2, steps=4, snapshots=2, plain_steps=1)
  model = settings.model(dp_erm_runs.two_groups())

  def look(params, people):
    return params["layer_0"]["w"]

  found = dp_erm.train_many(
    look, people, model, settings, seeds=3, key=jax.random.key(1),
    sweep={"l2_clip": [0.1, 0.1, 9.0]},
  )  # fmt: skip
  assert found.shape == (3, 3, 3, 3, 2)  # values, seeds, looks, weights
  np.testing.assert_array_equal(found[0], found[1])
  np.testing.assert_array_equal(found[0, :, 0], found[2, :, 0])
  assert np.abs(found[0, :, -1] - found[2, :, -1]).max() > 0
  assert np.abs(found[0, 0, -1] - found[0, 1, -1]).max() > 0


def test_looks_are_at_equal_distances():
  assert dp_erm.Training(steps=6, snapshots=3).looks == [0, 2, 4, 6]
  with pytest.raises(checks.ArgumentError, match="no multiple"):
    dp_erm.Training(steps=7, snapshots=3)


def test_the_thesis_s_groups_are_loaded(data_root):
  del data_root
  for name in ("bank", "abalone", "wine"):
    assert dp_erm.load(name).num_groups == 2
  assert dp_erm.load("bank").group_names == ("age < 60", "age >= 60")
  assert set(dp_erm.GROUPS) <= set(data.names())
  assert "dp_erm_output" in studies.NAMES
