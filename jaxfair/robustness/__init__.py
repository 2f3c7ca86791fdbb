"""What a small push does to predictions: thresholds, attacks, robust errors.

Never here: training; an attack is handed to `training.fair_robust`.
"""

from jaxfair.robustness._attack_many import Attacked, attack, negative_margin
from jaxfair.robustness._attacks import (
  Attack,
  check_range,
  fgsm,
  from_ball,
  from_input,
  from_signs,
  from_step,
  pgd,
  rfgsm,
)
from jaxfair.robustness._errors import Errors, attack_errors, errors_of, linear_errors
from jaxfair.robustness._gaussian_orders import Orderings, orderings
from jaxfair.robustness._gaussians import (
  ClassErrors,
  boundary_error,
  class_errors,
  fair_threshold,
  largest_ratio,
  largest_ratio_for_boundary,
  mean_distance,
  natural_error,
  natural_threshold,
  penalized_threshold,
  robust_error,
  robust_threshold,
)
from jaxfair.robustness._norm_balls import BALLS, L2, LINF, Ball
from jaxfair.robustness._surrogates import equal_loss_threshold

__all__ = [
  "BALLS",
  "L2",
  "LINF",
  "Attack",
  "Attacked",
  "Ball",
  "ClassErrors",
  "Errors",
  "Orderings",
  "attack",
  "attack_errors",
  "boundary_error",
  "check_range",
  "class_errors",
  "equal_loss_threshold",
  "errors_of",
  "fair_threshold",
  "fgsm",
  "from_ball",
  "from_input",
  "from_signs",
  "from_step",
  "largest_ratio",
  "largest_ratio_for_boundary",
  "linear_errors",
  "mean_distance",
  "natural_error",
  "natural_threshold",
  "negative_margin",
  "orderings",
  "penalized_threshold",
  "pgd",
  "rfgsm",
  "robust_error",
  "robust_threshold",
]
