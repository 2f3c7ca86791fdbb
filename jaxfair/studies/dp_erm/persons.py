"""Quantities of single persons along private training, and how they are correlated.

Shared by figures 3.4, 3.5 and 3.13: rank correlations over all people for every seed, and the
values of some people for the scatter plots.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import networks
from jaxfair.types import Examples, Model, Params

PERSON, CORRELATION = {"kind": "person"}, {"kind": "correlation"}
# (model, params, people) -> name -> [n] values
Quantities = Callable[[Model, Params, Examples], Mapping[str, jax.Array]]


class Config(networks.NetworkConfig):
  """Settings: how many people of the first training are drawn as points."""

  shown: ex.Count = 200


def measure(
  quantities: Quantities, pairs: Mapping[str, tuple[str, str]]
) -> Callable[[Config, _study.Cell, _study.Context], ex.Table]:
  """A study's `run`: rows of single persons, and rows of correlations.

  Args:
    quantities: what is computed for every person.
    pairs: column -> names of the two quantities whose rank correlation it is.
  """

  def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
    made = networks.set_up(config, cell, context)

    def look(params: Params, people: Examples, key: jax.Array) -> Any:
      del key
      found = quantities(made.model, params, people)
      related = {name: spearman_without_ties(found[a], found[b]) for name, (a, b) in pairs.items()}
      return related, {n: v[: config.shown] for n, v in found.items()}

    related, values = made.train(look)
    steps, shown = config.training.looks, min(config.shown, made.people.size)
    points = ex.Table.from_arrays(
      {**cell, **PERSON, "seed": 0},
      {"step": steps, "person": range(shown)},
      {name: v[0, 0] for name, v in values.items()},
    )
    roles = np.array(made.sample.roles)[np.asarray(made.people.group)[:shown]]
    correlations = ex.Table.from_arrays(
      {**cell, **CORRELATION},
      {"seed": range(config.seeds), "step": steps},
      {name: v[0] for name, v in related.items()},
    )
    table = ex.Table.concat([points.plus(role=np.tile(roles, len(steps))), correlations])
    return networks.with_panels(table, lambda row: f"step {row['step']:g}")

  return run


def spearman_without_ties(a: jax.Array, b: jax.Array) -> jax.Array:
  """Spearman's correlation of two vectors without ties, inside a program."""
  ranks = [jnp.argsort(jnp.argsort(v)).astype(jnp.float32) for v in (a, b)]
  middle = (a.shape[0] - 1) / 2
  x, y = (r - middle for r in ranks)
  return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def least(column: str) -> _claims.Statistic:
  """The mean of a correlation at the end of training, least of the data sets."""
  return _statistics.of_points(
    f"mean {column.replace('_', ' ')}, least of the data sets",
    lambda labels, values: values.min(axis=0),
    values=(column,),
    points=("data",),
  ).at(**CORRELATION, **networks.END)
