"""Exact parameters: numbers as fractions, and exponentials of fractions."""

from fractions import Fraction
from typing import Any

import numpy as np

from jaxfair import checks

_GUARD = 64
_HALVINGS = 8


def rational(name: str, value: Any) -> Fraction:
  """The exact value of a number that is 0 or above.

  Args:
    name: name of the argument, for messages.
    value: int, float or `Fraction`, or an array scalar that is known now.
  """
  if not checks.concrete(value):
    raise checks.ArgumentError(
      f"{name} must be known before tracing: exact probabilities are computed "
      "from it on the host; pass a Python number"
    )
  if isinstance(value, Fraction):
    checks.require(value >= 0, f"{name}={value} must be 0 or above")
    return value
  checks.require(np.ndim(value) == 0, f"{name} must be one number, not many")
  checks.non_negative(name, value)
  return Fraction(value if isinstance(value, int) else float(value))


def exp_minus(x: Fraction, bits: int) -> int:
  """e^-x in units of 2^-bits, at most one unit away from the truth.

  Args:
    x: 0 or above.
    bits: precision after the binary point.
  """
  if x > bits:  # e^-x < 2^-bits
    return 0
  # exp(-x) = exp(-x / 2^k)^(2^k), with an argument so small that the series is
  # short. Each squaring doubles the error: k bits of the guard are used up.
  work = bits + _GUARD
  small = (x.numerator << work) // (x.denominator << _HALVINGS)
  term = value = 1 << work
  order = 1
  while term:
    term = (term * small >> work) // order
    value += term if order % 2 == 0 else -term
    order += 1
  for _ in range(_HALVINGS):
    value = value * value >> work
  return (value + (1 << (_GUARD - 1))) >> _GUARD
