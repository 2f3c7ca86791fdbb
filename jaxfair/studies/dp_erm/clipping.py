"""DP-SGD with different clip bounds: gradient norms and excess risk.

Figures 3.3 and 3.10 of the thesis.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxfair import analysis, checks
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import rank_correlation
from jaxfair.types import Examples, Model, Params


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings: which clip bounds are compared."""

  clips: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("clips", self.clips)
    checks.require(
      len(self.clips) > 1, "clips needs at least two bounds to compare"
    )


def look_at_groups(model: Model, num_groups: int) -> Any:
  """Looks at each group's mean loss and mean gradient norm."""

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    del key
    losses = common.group_losses(model, params, people, num_groups)
    norms = analysis.gradient_norms(model, common.LOSS, params, people)
    return losses, analysis.mean_by_group(norms, people.group, num_groups)

  return look


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All clip bounds and seeds of one data set in one program."""
  made = networks.set_up(config, cell, context)
  groups = made.sample.num_groups
  losses, norms = networks.train_many(
    look_at_groups(made.model, groups),
    made.people,
    made.model,
    config.training,
    seeds=config.seeds,
    key=made.key,
    change=networks.with_clip,
    values=config.clips,
  )
  looks = config.training.looks
  table = common.group_rows(
    made.sample,
    cell,
    {"clip": config.clips, "seed": range(config.seeds), "step": looks},
    {
      "excess_risk": losses.group - np.asarray(made.plain.group),
      "excess_risk_of_all": losses.population
      - np.asarray(made.plain.population),
      "gradient_norm": norms.group,
    },
  )
  return table.plus(
    panel=[f"{cell['data']}, C = {clip:g}" for clip in table["clip"]],
    at_end=np.where(table["step"] == looks[-1], "yes", "no"),
  )


END = {"at_end": "yes"}

STUDY = protocol.Study(
  name="dp_erm.clipping",
  summary="What clip bounds do to gradient norms and excess risks",
  config=Config,
  cells=networks.cells,
  run=run,
  notes=networks.notes,
  claims=(
    Claim(
      "norms fall",
      "Gradient norms at the end of training fall as the clip bound grows",
      rank_correlation(
        "clip", "gradient_norm", points=("data", "group", "clip"),
        within=("data", "group"), where=END, below=0.0,
      ),
      source="Fig. 3.3 and 3.10",
    ),
    Claim(
      "larger norms pay",
      "Of two groups, the one with larger gradient norms has the larger excess "
      "risk",
      rank_correlation(
        "gradient_norm", "excess_risk", points=("data", "clip", "group"),
        within=("data", "clip"), where=END, above=0.0,
      ),
      source="Thm. 3.3, Fig. 3.3 and 3.10",
    ),
  ),
  figures=(
    Figure(
      "norms",
      "Gradient norms along training",
      x="step",
      y="gradient_norm",
      color="role",
      facet="panel",
      mark="line",
      y_title="mean gradient norm",
      caption="Mean norm of the people's gradients before clipping.",
    ),
    Figure(
      "risks",
      "Excess risk along training",
      x="step",
      y="excess_risk",
      color="role",
      facet="panel",
      mark="line",
      reference=0.0,
      caption="Loss above that of plain training.",
    ),
  ),
  summaries=(
    Summary(
      "At the end of training",
      by=("data", "clip", "group"),
      values=("gradient_norm", "excess_risk"),
      where=END,
    ),
  ),
)  # fmt: skip
