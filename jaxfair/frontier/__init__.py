"""What can be had at all: frontiers of privacy, fairness, accuracy, coverage.

Here live non-dominated sets, hypervolumes, limits and choices, each with its
uncertainty over seeds; never a training, and nothing that draws.
"""

from jaxfair.frontier._attaining import Attainment, attainment
from jaxfair.frontier._dominance import NonDominated, non_dominated
from jaxfair.frontier._objectives import OBJECTIVES, Objective, Points, bounds, points
from jaxfair.frontier._shapes import Shapes, Transfer, compare_shapes, limit_grid, surface, transfer
from jaxfair.frontier._shares import Share, volume_shares
from jaxfair.frontier._specification import RULES, Specified, best, select, specify
from jaxfair.frontier._volume import hypervolume

__all__ = [
  "OBJECTIVES",
  "RULES",
  "Attainment",
  "NonDominated",
  "Objective",
  "Points",
  "Shapes",
  "Share",
  "Specified",
  "Transfer",
  "attainment",
  "best",
  "bounds",
  "compare_shapes",
  "hypervolume",
  "limit_grid",
  "non_dominated",
  "points",
  "select",
  "specify",
  "surface",
  "transfer",
  "volume_shares",
]
