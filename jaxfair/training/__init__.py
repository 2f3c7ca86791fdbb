"""Trainers: pure functions from examples and a key to parameters and a trace.

Never measures fairness for its own sake, and never reads data files.
"""

from jaxfair.training._budget import PrivateFit, calibrate, train_to_budget
from jaxfair.training._checkpoints import CheckpointError
from jaxfair.training._dp_sgd import NonPrivateDpTrace, dp_sgd
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._driver import choose_loop, run_steps
from jaxfair.training._ensembles import fit_many, map_members
from jaxfair.training._erm import SolveConfig, SolveError, SolveTrace, solve
from jaxfair.training._fair_dp_sgd import calibrate_fairness, fair_dp_sgd
from jaxfair.training._fair_robust import Adversary, FairRobustConfig, fair_robust, group_objective
from jaxfair.training._fit import FitConfig, fit
from jaxfair.training._lagrangian import NonPrivateDualTrace, lagrangian
from jaxfair.training._lagrangian_config import LagrangianConfig
from jaxfair.training._optimizers import OPTIMIZERS, OptimizerName, ScheduleName, named_optimizer
from jaxfair.training._output_perturbation import (
  NonPrivateOptimum,
  OutputPerturbationConfig,
  output_perturbation,
)
from jaxfair.training._parity_penalty import ParityPenalty, parity_penalty
from jaxfair.training._private_lagrangian import DualTrace, private_lagrangian
from jaxfair.training._private_lagrangian_config import PrivateLagrangianConfig
from jaxfair.training._privatize import privatize
from jaxfair.training._recipes import FlipAndShift
from jaxfair.training._regularizers import Penalty, UncoveredError
from jaxfair.training._risk_balanced import RiskPenalty, clipped_part_event, risk_penalty
from jaxfair.training._snapshots import SnapshotFit, dp_sgd_snapshots

__all__ = [
  "OPTIMIZERS",
  "Adversary",
  "CheckpointError",
  "DpSgdConfig",
  "DualTrace",
  "FairRobustConfig",
  "FitConfig",
  "FlipAndShift",
  "LagrangianConfig",
  "NonPrivateDpTrace",
  "NonPrivateDualTrace",
  "NonPrivateOptimum",
  "OptimizerName",
  "OutputPerturbationConfig",
  "ParityPenalty",
  "Penalty",
  "PrivateFit",
  "PrivateLagrangianConfig",
  "RiskPenalty",
  "ScheduleName",
  "SnapshotFit",
  "SolveConfig",
  "SolveError",
  "SolveTrace",
  "UncoveredError",
  "calibrate",
  "calibrate_fairness",
  "choose_loop",
  "clipped_part_event",
  "dp_sgd",
  "dp_sgd_snapshots",
  "fair_dp_sgd",
  "fair_robust",
  "fit",
  "fit_many",
  "group_objective",
  "lagrangian",
  "map_members",
  "named_optimizer",
  "output_perturbation",
  "parity_penalty",
  "private_lagrangian",
  "privatize",
  "risk_penalty",
  "run_steps",
  "solve",
  "train_to_budget",
]
