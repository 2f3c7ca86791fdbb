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
from jaxfair.analysis.pate_bounds import (
  DeviationBound,
  excess_risk_bound,
  fairness_bound,
  group_gradient_norms,
  model_deviation_bound,
  smoothness,
)
from jaxfair.analysis.privacy_audit import attack_scores, audit_mechanism

__all__ = [
  "Attack",
  "DeviationBound",
  "EpsilonBound",
  "GradientCanaries",
  "Method",
  "OneRunBound",
  "attack_scores",
  "audit_mechanism",
  "audit_one_run",
  "discriminant",
  "epsilon_lower_bound",
  "excess_risk_bound",
  "fairness_bound",
  "flip_probability",
  "gradient_canaries",
  "group_gradient_norms",
  "likelihood_recorder",
  "likelihood_separation",
  "model_deviation_bound",
  "one_run_p_value",
  "plan_guesses",
  "smoothness",
  "vote_margin",
]
