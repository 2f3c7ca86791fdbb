"""Why groups pay differently: curvature, decision boundaries, norms, excess risk, label flips.

This package measures scores and models that it is given. It never trains a model and never
decides what may be released.
"""

from jaxfair.analysis._boundary import closeness
from jaxfair.analysis._curvature import hessian_trace
from jaxfair.analysis._decomposition import StepSettings, decompose
from jaxfair.analysis._excess_risk import excess_risk, predicted_excess
from jaxfair.analysis._flips import flip_probability, vote_margin
from jaxfair.analysis._lanczos import top_eigenvalue
from jaxfair.analysis._norms import norms
from jaxfair.analysis._pate_bounds import model_deviation_bound

__all__ = [
  "StepSettings",
  "closeness",
  "decompose",
  "excess_risk",
  "flip_probability",
  "hessian_trace",
  "model_deviation_bound",
  "norms",
  "predicted_excess",
  "top_eigenvalue",
  "vote_margin",
]
