"""Smaller networks, and who pays for them: masks, impact, bounds, fair pruning.

Never reads data files, and never decides which groups there are.
"""

from jaxfair.pruning._bounds import NonPrivateExcessBound, SizeIdentity, excess_bound, size_identity
from jaxfair.pruning._constraints import full, relaxed
from jaxfair.pruning._factor_bounds import (
  NonPrivateEigenvalueBound,
  NonPrivateGradientBound,
  eigenvalue_bound,
  gradient_bound,
)
from jaxfair.pruning._fair_prune import (
  KINDS,
  STAGES,
  FairPruneConfig,
  PrunedFit,
  fair_prune,
  fine_tune,
  tune_many,
)
from jaxfair.pruning._group_profile import NonPrivateProfile, group_profile, group_profiles
from jaxfair.pruning._impact import NonPrivateImpact, compare, impact
from jaxfair.pruning._masks import Sparsity, apply_masks, magnitude_masks, masks_at_rates, sparsity

__all__ = [
  "KINDS",
  "STAGES",
  "FairPruneConfig",
  "NonPrivateEigenvalueBound",
  "NonPrivateExcessBound",
  "NonPrivateGradientBound",
  "NonPrivateImpact",
  "NonPrivateProfile",
  "PrunedFit",
  "SizeIdentity",
  "Sparsity",
  "apply_masks",
  "compare",
  "eigenvalue_bound",
  "excess_bound",
  "fair_prune",
  "fine_tune",
  "full",
  "gradient_bound",
  "group_profile",
  "group_profiles",
  "impact",
  "magnitude_masks",
  "masks_at_rates",
  "relaxed",
  "size_identity",
  "sparsity",
  "tune_many",
]
