"""What protects one person: clipping, noise, sampling, randomized response.

Says how much a mechanism may move; never what it cost (that is `accounting`).
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
