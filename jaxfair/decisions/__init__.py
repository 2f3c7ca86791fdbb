"""Allotments and decision rules on private counts: who gains, who loses, cures.

Takes counts and problems as they come; which data they are is a study's choice.
"""

from jaxfair.decisions.bias import (
  NonPrivateBias,
  simulate,
  simulate_mechanism,
)
from jaxfair.decisions.curvature import (
  NonPrivateTraces,
  allotment_trace,
  hessian_trace,
  second_order_bias,
)
from jaxfair.decisions.mechanisms import (
  GaussianRelease,
  JointRelease,
  LaplaceRelease,
  Mechanism,
  Release,
  on_counts,
  release_counts,
)
from jaxfair.decisions.postprocess import (
  best_temperature,
  non_negative,
  normalise,
  preserve_sum,
  stochastic_round,
  temper,
  tempered_laplace_mean,
)
from jaxfair.decisions.problems import (
  both,
  check_counts,
  check_problem,
  either,
  exclusive,
  minority_language,
  negated,
  ratio,
  threshold,
  title_one,
)
from jaxfair.decisions.proxies import (
  Line,
  PiecewiseProxy,
  equal_bins,
  fit_proxy,
  linear_regression,
  linear_svm,
)
from jaxfair.decisions.remedies import (
  allotment,
  cost_of_privacy,
  linear_proxy,
  linear_proxy_bias,
  linear_proxy_private,
  output_perturbation,
)
from jaxfair.decisions.theory import (
  allotment_sensitivity,
  clipped_laplace_mean,
  compose_alpha,
  compose_error,
  floored_inverse_mean,
  gaussian_threshold_error,
  laplace_threshold_error,
)

__all__ = [
  "GaussianRelease",
  "JointRelease",
  "LaplaceRelease",
  "Line",
  "Mechanism",
  "NonPrivateBias",
  "NonPrivateTraces",
  "PiecewiseProxy",
  "Release",
  "allotment",
  "allotment_sensitivity",
  "allotment_trace",
  "best_temperature",
  "both",
  "check_counts",
  "check_problem",
  "clipped_laplace_mean",
  "compose_alpha",
  "compose_error",
  "cost_of_privacy",
  "either",
  "equal_bins",
  "exclusive",
  "fit_proxy",
  "floored_inverse_mean",
  "gaussian_threshold_error",
  "hessian_trace",
  "laplace_threshold_error",
  "linear_proxy",
  "linear_proxy_bias",
  "linear_proxy_private",
  "linear_regression",
  "linear_svm",
  "minority_language",
  "negated",
  "non_negative",
  "normalise",
  "on_counts",
  "output_perturbation",
  "preserve_sum",
  "ratio",
  "release_counts",
  "second_order_bias",
  "simulate",
  "simulate_mechanism",
  "stochastic_round",
  "temper",
  "tempered_laplace_mean",
  "threshold",
  "title_one",
]
