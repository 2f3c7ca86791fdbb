"""Output perturbation with each group standardized by itself (figure 3.9)."""

from jaxfair import experiments as ex
from jaxfair.experiments import _study
from jaxfair.studies.dp_erm import common, output
from jaxfair.studies.dp_erm.output import Config

TOGETHER, APART = "together", "each group by itself"


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All epsilons and repetitions of one data set, standardized one way."""
  way = cell["normalised"]
  sample = common.draw(config, cell, context, within_groups=way == APART)
  table = output.perturb(config, sample, cell, key=context.key)
  return table.plus(panel=[f"{cell['data']}, {way}"] * len(table))


STUDY = ex.Study(
  name="dp_erm.normalize",
  summary="Does standardizing each group by itself close the gap?",
  config=Config,
  people=common.people,
  cells=ex.grid(data="sets", normalised=(TOGETHER, APART)),
  run=run,
  notes=lambda config: [
    *output.notes(config),
    "A model for groups that were standardized by themselves can only be used on people whose "
    "group is known.",
  ],
  claims=common.gap_claims(
    "gap shrinks: Standardizing each group by itself shrinks the worst gap of excess risk on three "
    "of four data sets and epsilons [Cor. 3.2, Fig. 3.9]",
    "gap ratio: Over all data sets and epsilons, the gap is smaller if each group is standardized "
    "by "
    "itself [Fig. 3.9]",
    normalised=(TOGETHER, APART),
    by=("data", "epsilon"),
  ),
  figures=(
    ex.lines(
      "risk_and_epsilon: Excess risk of both groups, standardized together and by themselves",
      "excess_risk ~ epsilon, role | panel",
      "The nearer the two lines, the fairer.",
      log="xy",
    ),
  ),
  summaries=(
    ex.summary("By group", "input_norm, trace, excess_risk ~ data, normalised, epsilon, group"),
  ),
)
