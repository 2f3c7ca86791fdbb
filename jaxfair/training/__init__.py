"""Trainers: pure functions from examples and a key to parameters and a trace.

Trainers measure fairness only where a constraint or penalty needs it, and never read data files.
"""

from jaxfair.training._budget import calibrate, train_to_budget
from jaxfair.training._dp_sgd import dp_sgd
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._ensembles import fit_many
from jaxfair.training._fair_dp_sgd import calibrate_fairness, fair_dp_sgd
from jaxfair.training._fair_robust import FairRobustConfig, fair_robust
from jaxfair.training._fit import FitConfig, fit
from jaxfair.training._lagrangian import lagrangian
from jaxfair.training._lagrangian_config import LagrangianConfig
from jaxfair.training._optimizers import named_optimizer
from jaxfair.training._output_perturbation import OutputPerturbationConfig, output_perturbation
from jaxfair.training._parity_penalty import parity_penalty
from jaxfair.training._private_lagrangian import private_lagrangian
from jaxfair.training._private_lagrangian_config import PrivateLagrangianConfig
from jaxfair.training._privatize import privatize
from jaxfair.training._recipes import FlipAndShift
from jaxfair.training._risk_balanced import risk_penalty

__all__ = [
  "DpSgdConfig",
  "FairRobustConfig",
  "FitConfig",
  "FlipAndShift",
  "LagrangianConfig",
  "OutputPerturbationConfig",
  "PrivateLagrangianConfig",
  "calibrate",
  "calibrate_fairness",
  "dp_sgd",
  "fair_dp_sgd",
  "fair_robust",
  "fit",
  "fit_many",
  "lagrangian",
  "named_optimizer",
  "output_perturbation",
  "parity_penalty",
  "private_lagrangian",
  "privatize",
  "risk_penalty",
  "train_to_budget",
]
