"""Why groups pay differently (curvature, boundary, norms), and privacy audits.

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
from jaxfair.analysis.boundary import (
  closeness,
  linear_distance,
  top_two_margin,
)
from jaxfair.analysis.by_group import ByGroup, mean_by_group
from jaxfair.analysis.canaries import (
  GradientCanaries,
  gradient_canaries,
  likelihood_recorder,
  likelihood_separation,
)
from jaxfair.analysis.curvature import (
  NonPrivateTraces,
  hessian_trace,
  trace_per_person,
)
from jaxfair.analysis.decomposition import (
  NonPrivateDecomposition,
  StepSettings,
  decompose,
  decompose_along,
)
from jaxfair.analysis.directions import Along, along
from jaxfair.analysis.excess_risk import (
  NonPrivateExcessRisk,
  RiskIntervals,
  excess_risk,
  predicted_excess,
)
from jaxfair.analysis.fairness_transfer import (
  answer_probabilities,
  fair_student_bound,
  fair_teachers_bound,
  mismatch,
  vote_eta,
)
from jaxfair.analysis.flips import flip_probability, vote_margin
from jaxfair.analysis.group_gradients import group_gradients
from jaxfair.analysis.hessian import group_hessians
from jaxfair.analysis.lanczos import NonPrivateEigenvalues, top_eigenvalue
from jaxfair.analysis.logit_gram import logit_gram
from jaxfair.analysis.norms import NonPrivateNorms, gradient_norms, norms
from jaxfair.analysis.pate_bounds import (
  DeviationBound,
  excess_risk_bound,
  fairness_bound,
  group_gradient_norms,
  model_deviation_bound,
  smoothness,
)
from jaxfair.analysis.privacy_audit import attack_scores, audit_mechanism
from jaxfair.analysis.residual import plan_residual

__all__ = [
  "Along",
  "Attack",
  "ByGroup",
  "DeviationBound",
  "EpsilonBound",
  "GradientCanaries",
  "Method",
  "NonPrivateDecomposition",
  "NonPrivateEigenvalues",
  "NonPrivateExcessRisk",
  "NonPrivateNorms",
  "NonPrivateTraces",
  "OneRunBound",
  "RiskIntervals",
  "StepSettings",
  "along",
  "answer_probabilities",
  "attack_scores",
  "audit_mechanism",
  "audit_one_run",
  "closeness",
  "decompose",
  "decompose_along",
  "discriminant",
  "epsilon_lower_bound",
  "excess_risk",
  "excess_risk_bound",
  "fair_student_bound",
  "fair_teachers_bound",
  "fairness_bound",
  "flip_probability",
  "gradient_canaries",
  "gradient_norms",
  "group_gradient_norms",
  "group_gradients",
  "group_hessians",
  "hessian_trace",
  "likelihood_recorder",
  "likelihood_separation",
  "linear_distance",
  "logit_gram",
  "mean_by_group",
  "mismatch",
  "model_deviation_bound",
  "norms",
  "one_run_p_value",
  "plan_guesses",
  "plan_residual",
  "predicted_excess",
  "smoothness",
  "top_eigenvalue",
  "top_two_margin",
  "trace_per_person",
  "vote_eta",
  "vote_margin",
]
