"""Runs of the chapter 3 studies on made-up people whose groups we know."""

import json
import math
import pathlib

import jax
import numpy as np
import pytest

from jaxfair import data, experiments, training
from jaxfair.experiments import _config, _registry, _runs, _study
from jaxfair.studies.dp_erm import networks
from jaxfair.types import Fit

CONFIGS = pathlib.Path(__file__).parents[2] / "configs" / "dp_erm"
FIGURES = sorted(path.stem for path in CONFIGS.glob("[!_]*.toml"))


def two_groups(norms=(2.0, 5.0), sizes=(200, 100)):
  """As easy to classify; the second group, the minority, has larger inputs."""
  return data.two_gaussians(sizes, norms=norms, dimension=3, key=jax.random.key(7))


def context(folder=pathlib.Path(), seed=0):
  """Of a cell; its shared key is that of the seed."""
  key = jax.random.key(seed)
  return _study.Context(key, key, False, folder, lambda message: None)


def plan(figure, *sets, size="smoke"):
  """The plan of a figure's config."""
  values = _config.read(CONFIGS / f"{figure}.toml", size=size, sets=sets)
  return _runs.plan(_registry.find(values["study"]), values)


def run(folder, figure, *sets, people=None):
  """The table and the verdicts by name, of made-up people for every set."""
  people = people or two_groups()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(_study, "load_people", lambda chosen: (people, ""))
    table = experiments.execute(plan(figure, *sets), folder)
  claims = json.loads((folder / "claims.json").read_text())
  return table, {claim["name"]: claim for claim in claims}


def run_untrained(folder, figure, *sets, people=None, configs=None):
  """As `run`, but networks are drawn instead of trained, which is quick.

  What a study makes of its networks is the same. Configs that trainings would
  have had are appended to `configs`.
  """

  def draw(made, look, values=(0.1,), change=networks.with_clip, update=None):
    settings, people, look = made.config.training, made.people, made.scored(look)
    shape = (len(values), made.config.seeds, settings.snapshots + 1)
    if configs is not None:
      configs.extend(change(settings.private(), value) for value in values)

    def one(own):
      key_start, key_look = jax.random.split(own)
      start = made.model.init(key_start, people.x[0])
      return look(start, people, key_look)

    keys = jax.random.split(made.key, math.prod(shape))
    found = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), found)

  def start(model, loss, examples, config, *, key):
    return Fit(model.init(key, examples.x[0]), None)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(networks.Setup, "train", draw)
    patch.setattr(training, "fit", start)
    return run(folder, figure, *sets, people=people)
