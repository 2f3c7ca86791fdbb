"""Why a model behaves as it does, and whether a mechanism leaks: audits.

Looks at mechanisms, scores and models it is handed; never trains one, and
never decides what may be released.
"""

from jaxfair.analysis.audit_attacks import Attack, discriminant
from jaxfair.analysis.audit_bounds import (
  EpsilonBound,
  Method,
  epsilon_lower_bound,
)
from jaxfair.analysis.audit_one_run import (
  OneRunBound,
  audit_one_run,
  one_run_p_value,
  plan_guesses,
)
from jaxfair.analysis.canaries import (
  GradientCanaries,
  gradient_canaries,
  likelihood_recorder,
  likelihood_separation,
)
from jaxfair.analysis.flips import flip_probability, vote_margin
from jaxfair.analysis.privacy_audit import attack_scores, audit_mechanism

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
  "flip_probability",
  "gradient_canaries",
  "likelihood_recorder",
  "likelihood_separation",
  "one_run_p_value",
  "plan_guesses",
  "vote_margin",
]
