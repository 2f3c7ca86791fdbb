"""Quantities of single persons along private training, and how they go along.

What figures 3.4, 3.5 and 3.13 share: rank correlations over all people for
every seed, and some people's values for the scatter plots.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check
from jaxfair.studies.dp_erm import networks
from jaxfair.studies.resampled import resampled
from jaxfair.types import Examples, Model, Params

PERSON, CORRELATION = "person", "correlation"
# (model, params, people) -> name -> [n] values
Quantities = Callable[[Model, Params, Examples], Mapping[str, jax.Array]]


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings: how many people of the first training are drawn as points."""

  shown: int = 200

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.integer("shown", self.shown, low=1)


def run_pairs(
  config: Config,
  cell: protocol.Settings,
  context: protocol.Context,
  quantities: Quantities,
  pairs: Mapping[str, tuple[str, str]],
) -> Table:
  """Rows of kind "person" and of kind "correlation" of one data set.

  Args:
    config: settings.
    cell: names the data set.
    context: of the cell.
    quantities: what is computed of every person.
    pairs: column -> names of the two quantities whose rank correlation it is.
  """
  made = networks.set_up(config, cell, context)

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    del key
    found = quantities(made.model, params, people)
    related = {
      name: rank_correlation(found[a], found[b])
      for name, (a, b) in pairs.items()
    }
    return related, {n: v[: config.shown] for n, v in found.items()}

  related, values = networks.train_many(
    look,
    made.people,
    made.model,
    config.training,
    seeds=config.seeds,
    key=made.key,
    change=networks.with_clip,
    values=[config.training.l2_clip],
  )
  steps, people = config.training.looks, made.people
  shown = min(config.shown, people.size)
  group = np.asarray(people.group)[:shown]
  points = Table.from_arrays(
    {**cell, "kind": PERSON, "seed": 0},
    {"step": steps, "person": range(shown)},
    {name: v[0, 0] for name, v in values.items()},
  )
  roles = np.array(made.sample.roles)[group]
  points = points.plus(role=np.tile(roles, len(steps)))
  correlations = Table.from_arrays(
    {**cell, "kind": CORRELATION},
    {"seed": range(config.seeds), "step": steps},
    {name: v[0] for name, v in related.items()},
  )
  table = Table.concat([points, correlations])
  return table.plus(
    panel=[f"{cell['data']}, step {step:g}" for step in table["step"]],
    at_end=np.where(table["step"] == steps[-1], "yes", "no"),
  )


def rank_correlation(a: jax.Array, b: jax.Array) -> jax.Array:
  """Spearman's correlation of two vectors without ties, inside a program."""
  ranks = [jnp.argsort(jnp.argsort(v)).astype(jnp.float32) for v in (a, b)]
  middle = (a.shape[0] - 1) / 2
  x, y = (r - middle for r in ranks)
  return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def least_above(column: str, where: Mapping[str, Any]) -> Check:
  """On every data set the mean of the column is above 0: its least is."""

  def statistic(
    labels: Sequence[tuple[Any, ...]], values: np.ndarray
  ) -> np.ndarray:
    del labels
    least: np.ndarray = values.min(axis=0)
    return least

  return resampled(
    f"mean {column.replace('_', ' ')}, least of the data sets", statistic,
    values=(column,), points=("data",), above=0.0,
    where={"kind": CORRELATION, **where},
  )  # fmt: skip
