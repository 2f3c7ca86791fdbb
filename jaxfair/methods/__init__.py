"""Every way from people and a budget to a model that may be released.

    method = methods.get("dp_sgd")
    plan = method.plan(method.settings(), people.sizes, budget)
    model = method.release(plan, people, folder="my_release")

One contract, one table, one folder format. Trainers, noise and prices are
those of `training`, `pate` and `accounting`; never here.
"""

from jaxfair.methods._method import (
  Method,
  NetworkSettings,
  NotReleasableError,
  Plan,
  Population,
  Sizes,
)
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
  "ReleaseError",
  "Released",
  "Sizes",
  "get",
  "load",
  "register",
]
