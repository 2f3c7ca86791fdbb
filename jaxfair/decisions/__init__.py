"""Allotments and decision rules on private counts: who gains, who loses, and remedies.

Functions here take any counts and any problem; studies choose the data.
"""

from jaxfair.decisions._bias import simulate, simulate_mechanism
from jaxfair.decisions._mechanisms import GaussianRelease, LaplaceRelease, release_counts
from jaxfair.decisions._postprocess import non_negative, temper
from jaxfair.decisions._remedies import allotment, linear_proxy, output_perturbation
from jaxfair.decisions._theory import clipped_laplace_mean

__all__ = [
  "GaussianRelease",
  "LaplaceRelease",
  "allotment",
  "clipped_laplace_mean",
  "linear_proxy",
  "non_negative",
  "output_perturbation",
  "release_counts",
  "simulate",
  "simulate_mechanism",
  "temper",
]
