"""Trainers: pure functions from examples and a key to parameters and a trace.

Never measures fairness for its own sake and never reads files.
"""

from jaxfair.training.driver import choose_loop, run_steps
from jaxfair.training.ensembles import fit_many, map_members
from jaxfair.training.erm import SolveConfig, SolveError, SolveTrace, solve
from jaxfair.training.fit import FitConfig, fit

__all__ = [
  "FitConfig",
  "SolveConfig",
  "SolveError",
  "SolveTrace",
  "choose_loop",
  "fit",
  "fit_many",
  "map_members",
  "run_steps",
  "solve",
]
