"""The framework of a study: config -> cells -> table -> claims, run and resumed.

A study declares its settings, its cells, what one cell computes, its claims and its figures;
everything else is here. Studies describe figures and never draw them.
"""

from jaxfair._fields import Count, NonNegative, Positive, Probability, Settings, Sweep
from jaxfair.experiments._claims import but
from jaxfair.experiments._figures import bars, lines, points, summary
from jaxfair.experiments._measures import EVERYONE, group_table, measure_groups
from jaxfair.experiments._people import People
from jaxfair.experiments._reading import read_run
from jaxfair.experiments._registry import load
from jaxfair.experiments._repeats import repeat, splits
from jaxfair.experiments._runs import execute, plan
from jaxfair.experiments._statistics import correlation, difference, least, mean, spread, trend
from jaxfair.experiments._study import Study, grid
from jaxfair.experiments._table import Table

__all__ = [
  "EVERYONE",
  "Count",
  "NonNegative",
  "People",
  "Positive",
  "Probability",
  "Settings",
  "Study",
  "Sweep",
  "Table",
  "bars",
  "but",
  "correlation",
  "difference",
  "execute",
  "grid",
  "group_table",
  "least",
  "lines",
  "load",
  "mean",
  "measure_groups",
  "plan",
  "points",
  "read_run",
  "repeat",
  "splits",
  "spread",
  "summary",
  "trend",
]
