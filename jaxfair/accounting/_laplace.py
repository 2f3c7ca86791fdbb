"""The Laplace mechanism: pure epsilon-DP from the L1 sensitivity."""

import math
from fractions import Fraction

from jaxfair import checks


def laplace_scale(*, epsilon: float, sensitivity: float = 1.0) -> float:
  """The scale of Laplace noise that is epsilon-DP, rounded up.

  scale = sensitivity / epsilon

  Args:
    epsilon: above 0.
    sensitivity: L1 sensitivity of what the noise is added to.
  """
  checks.positive("epsilon", epsilon)
  checks.positive("sensitivity", sensitivity)
  return _divide_up(sensitivity, epsilon)


def laplace_epsilon(*, scale: float, sensitivity: float = 1.0) -> float:
  """epsilon = sensitivity / scale, rounded up."""
  checks.positive("scale", scale)
  checks.positive("sensitivity", sensitivity)
  return _divide_up(sensitivity, scale)


def _divide_up(above: float, below: float) -> float:
  ratio = above / below
  if Fraction(ratio) * Fraction(below) < Fraction(above):
    ratio = math.nextafter(ratio, math.inf)
  return ratio
