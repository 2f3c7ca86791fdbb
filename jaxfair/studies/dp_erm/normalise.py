"""Output perturbation with each group normalised by itself (figure 3.9)."""

import dataclasses
from typing import Any

from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, output
from jaxfair.studies.dp_erm.gaps import gap_ratio, gap_shrinks
from jaxfair.studies.protocol import Claim, Figure, Summary

TOGETHER, APART = "together", "each group by itself"
BY = ("data", "epsilon")


@dataclasses.dataclass(frozen=True)
class Config(output.Config):
  """Settings of output perturbation; both ways to normalise are run."""


def cells(config: Config) -> list[dict[str, Any]]:
  """One cell per data set and way to normalise."""
  return [
    {**cell, "normalised": way}
    for cell in common.cells_of(config.sets)
    for way in (TOGETHER, APART)
  ]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All epsilons and repetitions of one data set, normalised one way."""
  sample = common.draw_people(
    str(cell["data"]),
    config.max_people,
    key=context.shared_key,
    within_groups=cell["normalised"] == APART,
  )
  return output.perturb(config, sample, cell, key=context.key)


def panels(table: Table) -> Table:
  """Names each panel by its data set and way to normalise."""
  if "normalised" not in table:
    return table
  pairs = zip(table["data"], table["normalised"], strict=True)
  return table.plus(panel=[f"{name}, {way}" for name, way in pairs])


def _notes(config: Config) -> list[str]:
  return [
    *output.notes(config),
    "A model for groups that were normalised by themselves needs to know the "
    "group of whom it is used on.",
  ]


STUDY = protocol.Study(
  name="dp_erm.normalise",
  summary="Does normalising each group by itself close the gap?",
  config=Config,
  cells=cells,
  run=run,
  derive=panels,
  notes=_notes,
  claims=(
    Claim(
      "gap shrinks",
      "Normalising each group by itself shrinks the worst gap of excess risk "
      "on three of four data sets and epsilons",
      gap_shrinks("normalised", TOGETHER, APART, by=BY),
      source="Cor. 3.2, Fig. 3.9",
    ),
    Claim(
      "gap ratio",
      "Over all data sets and epsilons, the gap is smaller",
      gap_ratio("normalised", TOGETHER, APART, by=BY),
      source="Fig. 3.9",
    ),
  ),
  figures=(
    Figure(
      "risk_and_epsilon",
      "Excess risk of both groups, normalised together and by themselves",
      x="epsilon",
      y="excess_risk",
      color="role",
      facet="panel",
      mark="line",
      log_x=True,
      log_y=True,
      caption="The nearer the two lines, the fairer.",
    ),
  ),
  summaries=(
    Summary(
      "By group",
      by=("data", "normalised", "epsilon", "group"),
      values=("input_norm", "trace", "excess_risk"),
    ),
  ),
)
