"""Pareto frontiers of privacy, fairness, accuracy and coverage.

This package holds non-dominated sets, hypervolumes, limits and choices, each with its uncertainty
over seeds. It neither trains nor draws.
"""

from jaxfair.frontier._attaining import attainment
from jaxfair.frontier._dominance import non_dominated
from jaxfair.frontier._objectives import points
from jaxfair.frontier._specification import best, select, specify
from jaxfair.frontier._volume import hypervolume

__all__ = ["attainment", "best", "hypervolume", "non_dominated", "points", "select", "specify"]
