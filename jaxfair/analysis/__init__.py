"""Why groups pay differently: curvature, decision boundaries, norms, excess risk, label flips.

This package measures scores and models that it is given. It never trains a model and never
decides what may be released.
"""

from jaxfair.analysis._boundary import closeness, linear_distance, top_two_margin
from jaxfair.analysis._curvature import hessian_trace
from jaxfair.analysis._decomposition import StepSettings, decompose, decompose_along
from jaxfair.analysis._excess_risk import excess_risk, predicted_excess
from jaxfair.analysis._fairness_transfer import fair_student_bound, fair_teachers_bound
from jaxfair.analysis._flips import flip_probability, vote_margin
from jaxfair.analysis._lanczos import top_eigenvalue
from jaxfair.analysis._norms import norms
from jaxfair.analysis._pate_bounds import excess_risk_bound, fairness_bound, model_deviation_bound

__all__ = [
  "StepSettings",
  "closeness",
  "decompose",
  "decompose_along",
  "excess_risk",
  "excess_risk_bound",
  "fair_student_bound",
  "fair_teachers_bound",
  "fairness_bound",
  "flip_probability",
  "hessian_trace",
  "linear_distance",
  "model_deviation_bound",
  "norms",
  "predicted_excess",
  "top_eigenvalue",
  "top_two_margin",
  "vote_margin",
]
