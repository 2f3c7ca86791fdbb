"""One module per experiment: config -> tidy table -> claims and figures.

Studies train and measure by calling the packages above; they never draw.
"""

import importlib

from jaxfair import checks
from jaxfair.studies import claims
from jaxfair.studies.config import ConfigError, parse, read
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

# The name in a config, and its module in this package.
MODULES = {
  "quickstart": "quickstart",
  "train": "train",
  "audit": "audit",
  "pate": "pate",
  "pate_penalty": "pate_penalty",
  "pate_teachers": "pate_teachers",
  "pate_people": "pate_people",
  "pate_norms": "pate_norms",
  "pate_bound": "pate_bound",
  "pate_soft": "pate_soft",
  "pate_frontier": "pate_frontier",
  "dp_erm_output": "dp_erm.output",
  "dp_erm_normalise": "dp_erm.normalise",
  "dp_erm_clipping": "dp_erm.clipping",
  "dp_erm_gradients": "dp_erm.gradients",
  "dp_erm_curvature": "dp_erm.curvature",
  "dp_erm_inputs": "dp_erm.inputs",
  "dp_erm_terms": "dp_erm.terms",
  "dp_erm_sizes": "dp_erm.sizes",
  "dp_erm_mitigation": "dp_erm.mitigation",
  "decisions": "decisions.allotments",
  "decisions_rules": "decisions.rules",
  "release": "release",
  "sf_pate": "sf_pate.tradeoff",
  "sf_pate.votes": "sf_pate.votes",
  "sf_pate.times": "sf_pate.times",
  "pruning.rates": "pruning.rates",
  "pruning.sizes": "pruning.sizes",
  "pruning.fair": "pruning.fair",
  "robustness.gaussians": "robustness.gaussians",
  "robustness.price": "robustness.price",
  "robustness.joint": "robustness.joint",
  "fairpate": "fairpate",
  "fairpate.queries": "fairpate.queries",
  "fairpate.notions": "fairpate.notions",
  "fairpate.times": "fairpate.times",
}
NAMES = tuple(MODULES)

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
    told = "study is missing" if name is None else f"study={name!r} is unknown"
    raise ConfigError(f"{where}{told}; {checks.options(name, NAMES)}")
  module = MODULES[str(name)]
  study: Study = importlib.import_module(f"jaxfair.studies.{module}").STUDY
  return study
