"""Every way from people and a budget to a model that may be released.

    method = methods.get("dp_sgd")
    plan = method.plan(method.settings(), people.sizes, budget)
    model = method.release(plan, people, folder="my_release")

All methods share one interface, one table and one folder format. Trainers, noise and privacy
costs come from `training`, `pate` and `accounting`.
"""

from jaxfair.methods._export import export
from jaxfair.methods._method import Method, Plan, Population
from jaxfair.methods._preprocessing import Preprocessing, plan_preprocessing
from jaxfair.methods._registry import METHODS, get, register
from jaxfair.methods._released import Released, load

__all__ = [
  "METHODS",
  "Method",
  "Plan",
  "Population",
  "Preprocessing",
  "Released",
  "export",
  "get",
  "load",
  "plan_preprocessing",
  "register",
]
