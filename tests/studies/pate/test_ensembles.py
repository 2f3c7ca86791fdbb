"""Splits, teachers and votes of the PATE studies."""

import pathlib

import jax
import numpy as np
import pytest

from helpers import pate_studies
from jaxfair import checks
from jaxfair.experiments import _config, _registry, _runs
from jaxfair.experiments._study import Context
from jaxfair.studies.pate import ensembles as pe

CONFIGS = pathlib.Path(__file__).parents[3] / "configs" / "pate"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
  folder = tmp_path_factory.mktemp("people")
  config = pate_studies.plan("pate.penalty", folder).settings

  def ensembles(number):
    keys = jax.random.key(number), jax.random.key(7)
    context = Context(*keys, False, folder, lambda text: None)
    cell = {"data": "people", "teachers": 6}
    people, found = pe.repetitions(config, cell, context)
    return people, list(found)

  (people, first), (_, second) = ensembles(0), ensembles(1)
  return people, first, second


@pytest.mark.slow
def test_every_teacher_votes_on_every_query(made):
  people, first, _ = made
  for ensemble in first:
    assert ensemble.counts.shape == (40, 2)
    assert (ensemble.counts.sum(axis=1) == 6).all()
    best = ensemble.counts.max(axis=1)
    chosen = ensemble.counts[np.arange(40), np.asarray(ensemble.majority)]
    assert (chosen == best).all()
    assert ensemble.test.size == min(100, people.size - 360 - 40)
  truth = np.asarray(first[0].public.y)
  assert (np.asarray(first[0].majority) == truth).mean() > 0.7


@pytest.mark.slow
def test_cells_share_splits_and_nothing_else(made):
  _, first, second = made
  for a, b in zip(first, second, strict=True):
    np.testing.assert_array_equal(a.public.x, b.public.x)
    for name in ("key", "key_noise"):
      ours, theirs = (jax.random.key_data(getattr(e, name)) for e in (a, b))
      assert (ours != theirs).any()
  assert not np.array_equal(first[0].public.x, first[1].public.x)


def test_a_cell_for_each_set_and_number_of_teachers(tmp_path):
  made = pate_studies.plan("pate.penalty", tmp_path, teachers=[2, 6])
  cells = made.study.plan_cells(made.settings)
  assert [cell["teachers"] for cell in cells] == [2, 6]


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"sets": []}, "sets is empty"),
    ({"sets": [{"name": "adult"}] * 2}, "sets=.* names something twice"),
    ({"draws": 1}, "draws=1 must be at least 2"),
    ({"batch_size": 41}, "batch_size=41 must be at least 1 and at most 40"),
    ({"teachers": [0]}, "teachers=0 must be at least 1"),
    ({"penalties": [0.0]}, "penalties"),
  ],
)
def test_impossible_settings_are_refused(change, told, tmp_path):
  with pytest.raises(checks.JaxfairError, match=told):
    pate_studies.plan("pate.penalty", tmp_path, **change)


def test_somebody_must_be_left_to_test_on(tmp_path):
  made = pate_studies.plan("pate.penalty", tmp_path, queries=120)
  with pytest.raises(checks.JaxfairError, match="leaves nobody of 480 people"):
    made.study.load_people(made.settings)


@pytest.mark.parametrize("size", ["smoke", "small", "paper"])
@pytest.mark.parametrize("path", sorted(CONFIGS.glob("[!_]*.toml")), ids=str)
def test_configs_have_every_size(path, size):
  values = _config.read(path, size=size)
  study = _registry.find(values["study"])
  assert _runs.plan(study, values).size == size
