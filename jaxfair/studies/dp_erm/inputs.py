"""Input norms and excess risk under DP-SGD (figure 3.6)."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, checks
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import rank_correlation
from jaxfair.types import Examples, Params

GROUP, SHELL = "group", "shell"


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings: into how many equal parts people are cut by input norm."""

  shells: int = 5

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.integer("shells", self.shells, low=2)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one data set: risks of its groups and of its shells."""
  made = networks.set_up(config, cell, context)
  people, groups = made.people, made.sample.num_groups
  norm = jnp.linalg.norm(people.x, axis=1)
  rank = jnp.argsort(jnp.argsort(norm))
  shell = rank * config.shells // people.size
  # Groups and shells side by side, as one list of group ids.
  both = [(people.group, groups), (shell, config.shells)]

  def losses(params: Params, people: Examples) -> jax.Array:
    own = common.LOSS(made.model.apply(params, people.x), people.y)
    return jnp.concatenate(
      [analysis.mean_by_group(own, ids, count).group for ids, count in both]
    )

  def look(params: Params, people: Examples, key: jax.Array) -> jax.Array:
    del key
    return losses(params, people)

  found = networks.train_many(
    look,
    people,
    made.model,
    config.training,
    seeds=config.seeds,
    key=made.key,
    change=networks.with_clip,
    values=[config.training.l2_clip],
  )
  excess = found[0, :, -1] - np.asarray(losses(made.optimum, people))
  norms = np.concatenate(
    [analysis.mean_by_group(norm, ids, count).group for ids, count in both]
  )
  names = [
    *made.sample.dataset.group_names,
    *(f"shell {i + 1}" for i in range(config.shells)),
  ]
  table = Table.from_arrays(
    cell,
    {"seed": range(config.seeds), "group": names},
    {
      "excess_risk": excess,
      "input_norm": np.broadcast_to(norms, excess.shape),
    },
  )
  kinds = [GROUP] * groups + [SHELL] * config.shells
  return table.plus(kind=kinds * config.seeds)


def _claim(name: str, statement: str, kind: str) -> Claim:
  check = rank_correlation(
    "input_norm", "excess_risk", points=("data", "group"), within=("data",),
    where={"kind": kind}, above=0.0,
  )  # fmt: skip
  return Claim(name, statement, check, source="Fig. 3.6")


def _figure(name: str, title: str, kind: str, **options: Any) -> Figure:
  return Figure(
    name, title, x="input_norm", y="excess_risk", color="data", mark="line",
    where={"kind": kind}, x_title="mean input norm", **options,
  )  # fmt: skip


STUDY = protocol.Study(
  name="dp_erm.inputs",
  summary="Do people far out pay more for privacy?",
  config=Config,
  cells=networks.cells,
  run=run,
  notes=networks.notes,
  claims=(
    _claim(
      "groups",
      "Of two groups, the one with larger inputs has the larger excess risk",
      GROUP,
    ),
    _claim(
      "shells",
      "The further out people are, the larger their excess risk",
      SHELL,
    ),
  ),
  figures=(
    _figure(
      "groups",
      "Excess risk against input norm: groups",
      GROUP,
      caption="Each line joins the groups of one data set.",
    ),
    _figure(
      "shells",
      "Excess risk against input norm: equal parts of the people",
      SHELL,
      caption="People cut into equal parts by their input norm.",
    ),
  ),
  summaries=(
    Summary(
      "Excess risk",
      by=("data", "group"),
      values=("input_norm", "excess_risk"),
    ),
  ),
)
