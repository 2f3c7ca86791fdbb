"""Every way from people and a budget to a model that may be released.

    method = methods.get("dp_sgd")
    plan = method.plan(method.settings(), people.sizes, budget)
    model = method.release(plan, people, folder="my_release")

One contract, one table, one folder format. Trainers, noise and prices are
those of `training`, `pate` and `accounting`; never here.
"""

from jaxfair.methods._export import export
from jaxfair.methods._method import (
  Method,
  NetworkSettings,
  NotReleasableError,
  Plan,
  Population,
  Sizes,
)
from jaxfair.methods._preprocessing import Preprocessing, PreprocessingPlan, plan_preprocessing
from jaxfair.methods._recipe import default_delta
from jaxfair.methods._registry import METHODS, get, register
from jaxfair.methods._released import Network, Released, ReleaseError, load

__all__ = [
  "METHODS",
  "Method",
  "Network",
  "NetworkSettings",
  "NotReleasableError",
  "Plan",
  "Population",
  "Preprocessing",
  "PreprocessingPlan",
  "ReleaseError",
  "Released",
  "Sizes",
  "default_delta",
  "export",
  "get",
  "load",
  "plan_preprocessing",
  "register",
]
