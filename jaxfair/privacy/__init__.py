"""Private mechanisms: clipping, noise, sampling, randomized response.

This package bounds how far one person can move a result; `accounting` computes what that costs.
"""

from jaxfair.privacy import exact, grid, noise
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.privacy._keys import os_key
from jaxfair.privacy._randomized_response import (
  randomized_response,
  response_matrix,
  unbiased_counts,
)
from jaxfair.privacy._sampling import PoissonSampler

__all__ = [
  "PoissonSampler",
  "QuantileClip",
  "clipped_grad",
  "exact",
  "grid",
  "noise",
  "os_key",
  "randomized_response",
  "response_matrix",
  "unbiased_counts",
]
