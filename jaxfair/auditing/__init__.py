"""Empirical tests of privacy claims: lower bounds on epsilon, canaries.

This package attacks mechanisms and trainings that it is given. It never trains a model and never
decides what may be released.
"""

from jaxfair.auditing._bounds import epsilon_lower_bound
from jaxfair.auditing._canaries import gradient_canaries, likelihood_recorder, likelihood_separation
from jaxfair.auditing._mechanisms import audit_mechanism
from jaxfair.auditing._one_run import audit_one_run, plan_guesses

__all__ = [
  "audit_mechanism",
  "audit_one_run",
  "epsilon_lower_bound",
  "gradient_canaries",
  "likelihood_recorder",
  "likelihood_separation",
  "plan_guesses",
]
