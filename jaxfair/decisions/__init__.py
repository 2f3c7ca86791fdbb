"""Allotments and decision rules on private counts: who gains, who loses, and remedies.

Functions here take any counts and any problem; studies choose the data.
"""

from jaxfair.decisions._bias import simulate, simulate_mechanism
from jaxfair.decisions._mechanisms import GaussianRelease, LaplaceRelease, Mechanism, release_counts
from jaxfair.decisions._postprocess import (
  non_negative,
  normalize,
  preserve_sum,
  stochastic_round,
  temper,
)
from jaxfair.decisions._problems import (
  both,
  either,
  exclusive,
  negated,
  ratio,
  threshold,
  title_one,
)
from jaxfair.decisions._proxies import PiecewiseProxy, fit_proxy
from jaxfair.decisions._remedies import (
  allotment,
  linear_proxy,
  linear_proxy_private,
  output_perturbation,
)
from jaxfair.decisions._theory import clipped_laplace_mean, compose_error, floored_inverse_mean

__all__ = [
  "GaussianRelease",
  "LaplaceRelease",
  "Mechanism",
  "PiecewiseProxy",
  "allotment",
  "both",
  "clipped_laplace_mean",
  "compose_error",
  "either",
  "exclusive",
  "fit_proxy",
  "floored_inverse_mean",
  "linear_proxy",
  "linear_proxy_private",
  "negated",
  "non_negative",
  "normalize",
  "output_perturbation",
  "preserve_sum",
  "ratio",
  "release_counts",
  "simulate",
  "simulate_mechanism",
  "stochastic_round",
  "temper",
  "threshold",
  "title_one",
]
