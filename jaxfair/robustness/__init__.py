"""Adversarial robustness by group: thresholds, attacks, robust errors.

Nothing is trained here; `training.fair_robust` takes an attack as an argument.
"""

from jaxfair.robustness._attack_many import attack, negative_margin
from jaxfair.robustness._attacks import pgd, rfgsm
from jaxfair.robustness._errors import attack_errors
from jaxfair.robustness._norm_balls import L2, LINF

__all__ = ["L2", "LINF", "attack", "attack_errors", "negative_margin", "pgd", "rfgsm"]
