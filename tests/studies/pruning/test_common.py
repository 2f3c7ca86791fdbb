"""People drawn for repetitions, networks, rows with gaps."""

import dataclasses
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import pruning_runs
from jaxfair.analysis._by_group import ByGroup
from jaxfair.experiments import _config, _people, _study
from jaxfair.experiments._people import People
from jaxfair.studies.pruning import common

DIGITS = common.PruningConfig(
  data=People(name="digits"),
  seeds=3,
  max_people=100,
  test_share=0.25,
  pool=2,
  train=common.Stage(batch_size=20),
)


@pytest.mark.parametrize("name", pruning_runs.NAMES)
@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
def test_every_config_fits_its_study(name, size):
  made = pruning_runs.plan(name, size=size)
  assert made.settings.seeds >= (2 if size == "smoke" else 5)
  if size == "paper":
    # The thesis has ten; the figures of group sizes train anew for every size.
    assert made.settings.seeds == (5 if name.startswith("sizes_") else 10)


def test_the_readme_names_every_config_figure_and_table():
  text = (pruning_runs.CONFIGS / "README.md").read_text(encoding="utf-8")
  for name in pruning_runs.NAMES:
    assert f"`{name}.toml`" in text
  told = {int(number) for number in re.findall(r"5\.(\d+)", text)}
  for first, last in re.findall(r"5\.(\d+) to 5\.(\d+)", text):
    told |= set(range(int(first), int(last) + 1))
  assert set(range(1, 16)) <= told
  assert "Table 5.1" in text
  assert "Table 5.2" in text


def context():
  """Of a cell whose split has key 0."""
  keys = jax.random.split(jax.random.key(1))
  return _study.Context(keys[0], jax.random.key(0), False, pathlib.Path(), lambda _: None)


def test_the_reader_is_told_of_a_stand_in():
  told = []
  own = dataclasses.replace(context(), say=told.append)
  with pytest.MonkeyPatch.context() as patch:
    loaded = _people.load_people(DIGITS.data)[0]
    patch.setattr(_study, "load_people", lambda people: (loaded, "stand-in"))
    common.draw(DIGITS, own)
  assert told == ["stand-in"]


def test_each_seed_has_its_own_people_and_nobody_twice():
  sample = common.draw(DIGITS, context())
  train, test = sample.rows
  assert train.shape == (3, 75)
  assert test.shape == (3, 25)
  for seed in range(3):
    both = np.r_[train[seed], test[seed]]
    assert len(set(both.tolist())) == 100
  assert set(train[0].tolist()) != set(train[1].tolist())
  again = common.draw(DIGITS, context())
  np.testing.assert_array_equal(again.rows[0], train)


def test_images_are_averaged_over_squares_and_centered():
  sample = common.draw(DIGITS, context())
  assert sample.people.x.shape[1:] == (4, 4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "small_cnn", "cnn", "cnn2", "resnet18"])
def test_networks_have_a_logit_for_every_class(kind):
  model = common.Network(kind, 8).model(5)
  image = jax.ShapeDtypeStruct((32, 32, 1), jnp.float32)
  params = jax.eval_shape(model.init, jax.random.key(0), image)
  batch = jax.ShapeDtypeStruct((2, 32, 32, 1), jnp.float32)
  assert jax.eval_shape(model.apply, params, batch).shape == (2, 5)


def test_rows_of_everyone_have_the_gap():
  value = ByGroup(np.array([[0.2, 0.9], [0.5, 0.4]]), np.array([0.5, 0.45]))
  table = common.group_rows({}, {"seed": [0, 1]}, ["a", "b"], {"right": value}, {"own": [3.0, 4.0]})
  np.testing.assert_allclose(table.where(group="everyone")["right_gap"], [0.7, 0.1])
  np.testing.assert_allclose(table.where(group="b")["right"], [0.9, 0.4])
  np.testing.assert_allclose(table.where(group="everyone")["own"], [3.0, 4.0])


def test_a_wrong_config_is_one_line_that_names_the_key():
  for name, change, message in (
    ("ethnicity", "rates=[0.5, 1.0]", r"rate=1.0 must be in \[0, 1\)"),
    ("ethnicity", "network.kind=resnet19", "network.kind"),
    ("fair_age", 'methods=["sometimes"]', r"methods\[0\]='sometimes'"),
    ("sizes_age", "factors=[0.5, 2.0]", "factors=0.5"),
    ("ethnicity", "train.batch_size=5000", "train.batch_size=5000"),
  ):
    with pytest.raises(_config.ConfigError, match=message) as error:
      pruning_runs.plan(name, change)
    assert "\n" not in str(error.value)
