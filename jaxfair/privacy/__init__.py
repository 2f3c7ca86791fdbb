"""What protects one person: clipping, noise, sampling, randomised response.

Says how much a mechanism may move; never what it cost (that is `accounting`).
"""

from jaxfair.privacy.clipping import Clipped, ClippedGrad, clipped_grad
from jaxfair.privacy.keys import os_key
from jaxfair.privacy.sampling import Batch, PoissonSampler

__all__ = [
  "Batch",
  "Clipped",
  "ClippedGrad",
  "PoissonSampler",
  "clipped_grad",
  "os_key",
]
