"""One module per experiment: config -> tidy table -> claims and figures.

Studies train and measure by calling the packages above; they never draw.
"""

import importlib
import pathlib
from collections.abc import Sequence

from jaxfair import checks
from jaxfair.studies import claims
from jaxfair.studies.config import ConfigError, check_sizes, parse, read
from jaxfair.studies.folders import RunError
from jaxfair.studies.frontiers import (
  RunFrontier,
  compare_frontiers,
  read_frontier,
)
from jaxfair.studies.measures import group_table, measure_groups
from jaxfair.studies.people import People, load_people
from jaxfair.studies.protocol import (
  Claim,
  Context,
  Figure,
  Finding,
  Settings,
  Study,
  Summary,
)
from jaxfair.studies.repeats import repeat
from jaxfair.studies.runs import Plan, execute, plan, write_claims
from jaxfair.studies.table import Table

# The name in a config is the module in this package.
NAMES = (
  "quickstart",
  "train",
  "audit",
  "pate.comparison",
  "pate.penalty",
  "pate.teachers",
  "pate.people",
  "pate.norms",
  "pate.bound",
  "pate.soft",
  "pate.frontier",
  "dp_erm.output",
  "dp_erm.normalise",
  "dp_erm.clipping",
  "dp_erm.gradients",
  "dp_erm.curvature",
  "dp_erm.inputs",
  "dp_erm.terms",
  "dp_erm.sizes",
  "dp_erm.mitigation",
  "decisions.allotments",
  "decisions.rules",
  "release",
  "sf_pate.tradeoff",
  "sf_pate.votes",
  "sf_pate.times",
  "pruning.rates",
  "pruning.sizes",
  "pruning.fair",
  "robustness.gaussians",
  "robustness.price",
  "robustness.joint",
  "fairpate",
  "fairpate.queries",
  "fairpate.notions",
  "fairpate.times",
)

__all__ = [
  "NAMES",
  "Claim",
  "ConfigError",
  "Context",
  "Figure",
  "Finding",
  "People",
  "Plan",
  "RunError",
  "RunFrontier",
  "Settings",
  "Study",
  "Summary",
  "Table",
  "claims",
  "compare_frontiers",
  "execute",
  "find",
  "group_table",
  "load",
  "load_people",
  "measure_groups",
  "parse",
  "plan",
  "read",
  "read_frontier",
  "repeat",
  "write_claims",
]


def find(name: object, *, where: str = "") -> Study:
  """The study of this name; an error begins with `where`."""
  if name not in NAMES:
    told = "study is missing"
    if name is not None:
      told = f"study={checks.shown(name)} is unknown"
    raise ConfigError(f"{where}{told}; {checks.options(name, NAMES)}")
  study: Study = importlib.import_module(f"jaxfair.studies.{name}").STUDY
  return study


def load(
  path: pathlib.Path, *, size: str | None = None, sets: Sequence[str] = ()
) -> Plan:
  """Reads a config file for the study that it names; all its sizes are checked.

  Args:
    path: the TOML file.
    size: one of its `[sizes.*]` tables.
    sets: `"a.b=value"` strings that replace values.
  """
  values, where = read(path, size=size, sets=sets), f"{path}: "
  study = find(values.get("study"), where=where)
  check_sizes(path, study.config)
  return plan(study, values, where=where)
