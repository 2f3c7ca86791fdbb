"""Input norms and excess risk under DP-SGD (figure 3.6)."""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields
from jaxfair import experiments as ex
from jaxfair.analysis import _by_group
from jaxfair.experiments import _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.types import Examples, Params

GROUP, SHELL = {"kind": "group"}, {"kind": "shell"}


class Config(networks.NetworkConfig):
  """Settings: the number of equal parts into which people are cut by input norm."""

  shells: Annotated[int, _fields.Within(2)] = 5


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one data set: risks of its groups and of its shells."""
  made = networks.set_up(config, cell, context)
  people, groups = made.people, made.sample.num_groups
  norm = jnp.linalg.norm(people.x, axis=1)
  shell = jnp.argsort(jnp.argsort(norm)) * config.shells // people.size
  # Groups and shells side by side, as one list of group ids.
  both = [(people.group, groups), (shell, config.shells)]

  def means(values: jax.Array) -> jax.Array:
    return jnp.concatenate([_by_group.mean_by_group(values, *own).group for own in both])

  def losses(params: Params, people: Examples) -> jax.Array:
    return means(common.LOSS(made.model.apply(params, people.x), people.y))

  found, accuracy = made.train(lambda params, people, key: losses(params, people))
  excess = found[0, :, -1] - np.asarray(losses(made.optimum, people))
  shells = (f"shell {i + 1}" for i in range(config.shells))
  axes = {"seed": range(config.seeds), "group": [*made.sample.dataset.group_names, *shells]}
  values = {"excess_risk": excess, "input_norm": np.broadcast_to(means(norm), excess.shape)}
  values |= {networks.PRIVATE: accuracy[0, :, -1]}
  table = ex.Table.from_arrays(made.cell, axes, values)
  kinds = [GROUP["kind"]] * groups + [SHELL["kind"]] * config.shells
  return table.plus(kind=kinds * config.seeds)


RISKS = "Excess risk against input norm"
TOGETHER = (
  ex.correlation("input_norm", "excess_risk", points=("data", "group"), within=("data",)) > 0
)

STUDY = networks.study(
  name="dp_erm.inputs",
  summary="Do people with large inputs pay more for privacy?",
  config=Config,
  run=run,
  claims={
    "groups: Groups with larger inputs tend to have the larger excess risk: more often than not "
    "[Fig. 3.6]": TOGETHER.at(**GROUP),
    "shells: The larger people's inputs are, the larger their excess risk": TOGETHER.at(**SHELL),
  },
  figures=tuple(
    ex.lines(f"{own['kind']}s: {RISKS}: {who}", "excess_risk ~ input_norm, data", told, where=own)
    for own, who, told in (
      (GROUP, "groups", "Each line joins the groups of one data set."),
      (SHELL, "equal parts of the people", "People cut into equal parts by their input norm."),
    )
  ),
  titles={"input_norm": "mean input norm"},
  summaries=(
    ex.summary("Excess risk", f"input_norm, excess_risk, {networks.PRIVATE} ~ data, group"),
  ),
)
