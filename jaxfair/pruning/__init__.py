"""Smaller networks, and who pays for them: masks, impact, bounds, fair pruning.

Never reads data files, and never decides which groups there are.
"""

from jaxfair.pruning.bounds import (
  NonPrivateExcessBound,
  SizeIdentity,
  excess_bound,
  size_identity,
)
from jaxfair.pruning.factor_bounds import (
  NonPrivateEigenvalueBound,
  NonPrivateGradientBound,
  eigenvalue_bound,
  gradient_bound,
)
from jaxfair.pruning.holding import fine_tune, held, hold_zeros, masks_of
from jaxfair.pruning.impact import NonPrivateImpact, compare, impact
from jaxfair.pruning.look_at import NonPrivateLook, look, look_many
from jaxfair.pruning.masks import (
  Sparsity,
  apply_masks,
  magnitude_masks,
  masks_at_rates,
  sparsity,
)

__all__ = [
  "NonPrivateEigenvalueBound",
  "NonPrivateExcessBound",
  "NonPrivateGradientBound",
  "NonPrivateImpact",
  "NonPrivateLook",
  "SizeIdentity",
  "Sparsity",
  "apply_masks",
  "compare",
  "eigenvalue_bound",
  "excess_bound",
  "fine_tune",
  "gradient_bound",
  "held",
  "hold_zeros",
  "impact",
  "look",
  "look_many",
  "magnitude_masks",
  "masks_at_rates",
  "masks_of",
  "size_identity",
  "sparsity",
]
