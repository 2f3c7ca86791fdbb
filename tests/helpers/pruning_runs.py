"""Runs of the pruning studies on digits, with networks drawn, not trained."""

import json
import pathlib

import jax
import pytest

from jaxfair import experiments, training, tree
from jaxfair.experiments import _config, _registry, _runs
from jaxfair.report import _series
from jaxfair.types import Fit

CONFIGS = pathlib.Path(__file__).parents[2] / "configs" / "pruning"
NAMES = sorted(path.stem for path in CONFIGS.glob("[!_]*.toml"))
DIGITS = (
  "data.name=digits",
  "network.kind=mlp",
  "network.width=3",
  "max_people=150",
  "pool=2",
  "seeds=2",
  "train.batch_size=50",
)


def plan(name, *sets, size="smoke"):
  """The plan of a config."""
  values = _config.read(CONFIGS / f"{name}.toml", size=size, sets=sets)
  return _runs.plan(_registry.find(values["study"]), values)


def run_untrained(folder, name, *sets):
  """The table and the verdicts by name; what a study makes of its networks is
  the same whether they were trained or not."""

  def draw(model, loss, examples, config, *, key, initial=None, mask=None):
    params = initial if initial is not None else model.init(key, examples.x[0])
    if mask is not None:
      params = jax.tree.map(lambda leaf, keep: 1.1 * leaf * keep, params, mask)
    return Fit(tree.scale(1.0 + config.dual_rate, params), None)

  made = plan(name, *DIGITS, *sets)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(training, "lagrangian", draw)
    table = experiments.execute(made, folder)
  for figure in made.study.figures:
    assert _series.panels(figure, table), figure.name  # none is left out
  claims = json.loads((folder / "claims.json").read_text())
  return table, {claim["name"]: claim for claim in claims}
