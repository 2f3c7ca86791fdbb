"""Pruning, and who pays for it: masks, impact, bounds, fair pruning.

This package never reads data files and never decides which groups there are.
"""

from jaxfair.pruning._fair_prune import FairPruneConfig, fair_prune, fine_tune
from jaxfair.pruning._group_profile import group_profile
from jaxfair.pruning._impact import compare, impact
from jaxfair.pruning._masks import apply_masks, magnitude_masks

__all__ = [
  "FairPruneConfig",
  "apply_masks",
  "compare",
  "fair_prune",
  "fine_tune",
  "group_profile",
  "impact",
  "magnitude_masks",
]
