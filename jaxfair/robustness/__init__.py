"""Adversarial robustness by group: thresholds, attacks, robust errors.

Nothing is trained here; `training.fair_robust` takes an attack as an argument.
"""

from jaxfair.robustness._attack_many import attack, negative_margin
from jaxfair.robustness._attacks import Attack, fgsm, from_input, pgd, rfgsm
from jaxfair.robustness._errors import attack_errors, linear_errors
from jaxfair.robustness._gaussian_orders import orderings
from jaxfair.robustness._gaussians import fair_threshold, natural_threshold, robust_threshold
from jaxfair.robustness._norm_balls import L2, LINF
from jaxfair.robustness._surrogates import equal_loss_threshold

__all__ = [
  "L2",
  "LINF",
  "Attack",
  "attack",
  "attack_errors",
  "equal_loss_threshold",
  "fair_threshold",
  "fgsm",
  "from_input",
  "linear_errors",
  "natural_threshold",
  "negative_margin",
  "orderings",
  "pgd",
  "rfgsm",
  "robust_threshold",
]
