"""Pruning, and who pays for it: masks, impact, bounds, fair pruning.

This package never reads data files and never decides which groups there are.
"""

from jaxfair.pruning._bounds import excess_bound, size_identity
from jaxfair.pruning._factor_bounds import eigenvalue_bound, gradient_bound
from jaxfair.pruning._fair_prune import FairPruneConfig, fair_prune, fine_tune
from jaxfair.pruning._group_profile import group_profile, group_profiles
from jaxfair.pruning._impact import compare, impact
from jaxfair.pruning._masks import apply_masks, magnitude_masks, masks_at_rates, sparsity

__all__ = [
  "FairPruneConfig",
  "apply_masks",
  "compare",
  "eigenvalue_bound",
  "excess_bound",
  "fair_prune",
  "fine_tune",
  "gradient_bound",
  "group_profile",
  "group_profiles",
  "impact",
  "magnitude_masks",
  "masks_at_rates",
  "size_identity",
  "sparsity",
]
