"""Why groups pay differently: curvature, boundary, norms, excess risk, flips.

Looks at scores and models that it is handed; never trains one, and never
decides what may be released.
"""

from jaxfair.analysis._boundary import closeness, linear_distance, top_two_margin
from jaxfair.analysis._by_group import ByGroup, mean_by_group
from jaxfair.analysis._curvature import NonPrivateTraces, hessian_trace, trace_per_person
from jaxfair.analysis._decomposition import (
  NonPrivateDecomposition,
  StepSettings,
  decompose,
  decompose_along,
)
from jaxfair.analysis._directional_derivatives import Along, along
from jaxfair.analysis._excess_risk import (
  NonPrivateExcessRisk,
  RiskIntervals,
  excess_risk,
  predicted_excess,
)
from jaxfair.analysis._fairness_transfer import (
  answer_probabilities,
  fair_student_bound,
  fair_teachers_bound,
  mismatch,
  vote_eta,
)
from jaxfair.analysis._flips import flip_probability, vote_margin
from jaxfair.analysis._group_gradients import group_gradients
from jaxfair.analysis._hessian import group_hessians
from jaxfair.analysis._hessian_residual import plan_residual
from jaxfair.analysis._lanczos import NonPrivateEigenvalues, top_eigenvalue
from jaxfair.analysis._logit_gram import logit_gram
from jaxfair.analysis._norms import NonPrivateNorms, gradient_norms, norms
from jaxfair.analysis._pate_bounds import (
  DeviationBound,
  excess_risk_bound,
  fairness_bound,
  group_gradient_norms,
  model_deviation_bound,
  smoothness,
)

__all__ = [
  "Along",
  "ByGroup",
  "DeviationBound",
  "NonPrivateDecomposition",
  "NonPrivateEigenvalues",
  "NonPrivateExcessRisk",
  "NonPrivateNorms",
  "NonPrivateTraces",
  "RiskIntervals",
  "StepSettings",
  "along",
  "answer_probabilities",
  "closeness",
  "decompose",
  "decompose_along",
  "excess_risk",
  "excess_risk_bound",
  "fair_student_bound",
  "fair_teachers_bound",
  "fairness_bound",
  "flip_probability",
  "gradient_norms",
  "group_gradient_norms",
  "group_gradients",
  "group_hessians",
  "hessian_trace",
  "linear_distance",
  "logit_gram",
  "mean_by_group",
  "mismatch",
  "model_deviation_bound",
  "norms",
  "plan_residual",
  "predicted_excess",
  "smoothness",
  "top_eigenvalue",
  "top_two_margin",
  "trace_per_person",
  "vote_eta",
  "vote_margin",
]
