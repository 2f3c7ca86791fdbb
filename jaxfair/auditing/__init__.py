"""Whether to believe a privacy claim: lower bounds on epsilon, canaries.

Attacks mechanisms and trainings that it is handed; never trains a model, and
never decides what may be released.
"""

from jaxfair.auditing._attacks import Attack, discriminant
from jaxfair.auditing._bounds import EpsilonBound, Method, epsilon_lower_bound
from jaxfair.auditing._canaries import (
  GradientCanaries,
  gradient_canaries,
  likelihood_recorder,
  likelihood_separation,
)
from jaxfair.auditing._mechanisms import attack_scores, audit_mechanism
from jaxfair.auditing._one_run import OneRunBound, audit_one_run, one_run_p_value, plan_guesses

__all__ = [
  "Attack",
  "EpsilonBound",
  "GradientCanaries",
  "Method",
  "OneRunBound",
  "attack_scores",
  "audit_mechanism",
  "audit_one_run",
  "discriminant",
  "epsilon_lower_bound",
  "gradient_canaries",
  "likelihood_recorder",
  "likelihood_separation",
  "one_run_p_value",
  "plan_guesses",
]
