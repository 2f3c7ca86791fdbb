"""Does it matter how many people of a group there are? (figure 3.12)

People are drawn so that the groups stand in given ratios. All trainings have
the same number of people, so they share one program and one noise.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxfair import checks
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check
from jaxfair.studies.dp_erm import clipping, common, networks
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import resampled


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings.

  Attributes:
    ratios: people of the minority per person of the majority.
    people: drawn for every ratio.
  """

  ratios: tuple[float, ...] = (0.1, 0.3, 1.0)
  people: int = 2000

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.integer("people", self.people, low=self.training.batch_size)
    checks.number("ratios", self.ratios, low=0.0, high=1.0, open_low=True)
    checks.require(
      len(self.ratios) > 1, "ratios needs at least two values to compare"
    )


def cells(config: Config) -> list[dict[str, Any]]:
  """One cell per data set and ratio; too few people are found here."""
  listed = []
  for cell in common.cells_of(config.sets):
    sizes = [*common.load(str(cell["data"])).group_sizes.values()]
    checks.require(
      len(sizes) == 2,
      f"{cell['data']} has {len(sizes)} groups; this study compares two",
    )
    for ratio in config.ratios:
      wanted = _sizes(config.people, ratio)
      checks.require(
        wanted[0] <= max(sizes) and wanted[1] <= min(sizes),
        f"people={config.people} at ratio {ratio:g} needs {wanted[0]} and "
        f"{wanted[1]} people, but {cell['data']} has {max(sizes)} and "
        f"{min(sizes)}; ask for fewer people",
      )
      listed.append({**cell, "ratio": ratio})
  return listed


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one data set at one ratio, in one program."""
  made = networks.set_up(
    config, cell, context, choose=_chooser(config, float(cell["ratio"]))
  )
  losses, norms = networks.train_many(
    clipping.look_at_groups(made.model, made.sample.num_groups),
    made.people,
    made.model,
    config.training,
    seeds=config.seeds,
    key=made.key,
    change=networks.with_clip,
    values=[config.training.l2_clip],
  )
  return common.group_rows(
    made.sample,
    cell,
    {"seed": range(config.seeds)},
    {
      "excess_risk": losses.group[0][:, -1] - np.asarray(made.plain.group),
      "gradient_norm": norms.group[0][:, -1],
    },
  )


def _sizes(people: int, ratio: float) -> tuple[int, int]:
  """How many of the majority and of the minority."""
  minority = round(people * ratio / (1 + ratio))
  return people - minority, minority


def _chooser(config: Config, ratio: float) -> Any:
  """Picks rows of a group so that the groups stand in the ratio."""

  def choose(group: np.ndarray, key: jax.Array) -> np.ndarray:
    sizes = np.bincount(group, minlength=2)
    major, minor = (0, 1) if sizes[0] >= sizes[1] else (1, 0)
    order = np.asarray(jax.random.permutation(key, len(group)))
    wanted = _sizes(config.people, ratio)
    rows = [
      order[group[order] == which][:count]
      for which, count in zip((major, minor), wanted, strict=True)
    ]
    return np.concatenate(rows)

  return choose


def _spread(column: str) -> Check:
  """The ratios move a group's mean by less than a quarter of the mean."""

  def statistic(
    labels: Sequence[tuple[Any, ...]], values: np.ndarray
  ) -> np.ndarray:
    found = []
    for name in dict.fromkeys(label[:2] for label in labels):
      own = values[[i for i, label in enumerate(labels) if label[:2] == name]]
      found.append(np.ptp(own, axis=0) / np.abs(own.mean(axis=0)))
    return np.max(found, axis=0)

  return resampled(
    f"range of {column.replace('_', ' ')} over ratios, over its mean, largest "
    "of the groups",
    statistic, values=(column,), points=("data", "group", "ratio"), below=0.25,
  )  # fmt: skip


def _figure(name: str, title: str, column: str) -> Figure:
  return Figure(
    name, title, x="ratio", y=column, color="role", facet="data", mark="line",
    x_title="minority over majority", log_x=True,
    caption="At the end of training.",
  )  # fmt: skip


STUDY = protocol.Study(
  name="dp_erm.sizes",
  summary="Does the relative size of a group decide what it pays?",
  config=Config,
  cells=cells,
  run=run,
  notes=networks.notes,
  claims=(
    Claim(
      "risk",
      "The relative size of the groups hardly moves their excess risk: by less "
      "than a quarter",
      _spread("excess_risk"),
      source="Fig. 3.12",
    ),
    Claim(
      "norms",
      "It hardly moves their gradient norms: by less than a quarter",
      _spread("gradient_norm"),
      source="Fig. 3.12",
    ),
  ),
  figures=(
    _figure("norms", "Gradient norms and group sizes", "gradient_norm"),
    _figure("risks", "Excess risk and group sizes", "excess_risk"),
  ),
  summaries=(
    Summary(
      "At the end of training",
      by=("data", "ratio", "group"),
      values=("gradient_norm", "excess_risk"),
    ),
  ),
)
