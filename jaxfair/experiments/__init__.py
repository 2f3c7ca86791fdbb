"""The frame of a study: config -> cells -> table -> claims, run and resumed.

A study declares its settings, its cells, what one cell computes, and what is
claimed and drawn; everything else is here. Studies never draw.
"""

from jaxfair._fields import (
  Count,
  NonNegative,
  OneOf,
  OneOrMany,
  Positive,
  Probability,
  Settings,
  Share,
  Sweep,
  Within,
  several,
)
from jaxfair.experiments._claims import (
  CannotTellError,
  Check,
  Claim,
  Estimate,
  Finding,
  Statistic,
  but,
  every,
  narrowed,
  or_missing,
)
from jaxfair.experiments._config import ConfigError, parse, read
from jaxfair.experiments._figures import Figure, Summary, bars, lines, points, summary
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._frontiers import RunFrontier, compare_frontiers, read_frontier
from jaxfair.experiments._measures import EVERYONE, group_table, measure_groups
from jaxfair.experiments._people import People, load_people
from jaxfair.experiments._reading import Run, read_plan, read_run
from jaxfair.experiments._registry import find, load, names
from jaxfair.experiments._repeats import repeat, splits
from jaxfair.experiments._runs import Plan, execute, plan
from jaxfair.experiments._statistics import (
  correlation,
  difference,
  exact,
  least,
  mean,
  of_points,
  spread,
  trend,
)
from jaxfair.experiments._study import Cell, Context, Study, grid
from jaxfair.experiments._table import Table

__all__ = [
  "EVERYONE",
  "CannotTellError",
  "Cell",
  "Check",
  "Claim",
  "ConfigError",
  "Context",
  "Count",
  "Estimate",
  "Figure",
  "Finding",
  "NonNegative",
  "OneOf",
  "OneOrMany",
  "People",
  "Plan",
  "Positive",
  "Probability",
  "Run",
  "RunError",
  "RunFrontier",
  "Settings",
  "Share",
  "Statistic",
  "Study",
  "Summary",
  "Sweep",
  "Table",
  "Within",
  "bars",
  "but",
  "compare_frontiers",
  "correlation",
  "difference",
  "every",
  "exact",
  "execute",
  "find",
  "grid",
  "group_table",
  "least",
  "lines",
  "load",
  "load_people",
  "mean",
  "measure_groups",
  "names",
  "narrowed",
  "of_points",
  "or_missing",
  "parse",
  "plan",
  "points",
  "read",
  "read_frontier",
  "read_plan",
  "read_run",
  "repeat",
  "several",
  "splits",
  "spread",
  "summary",
  "trend",
]
