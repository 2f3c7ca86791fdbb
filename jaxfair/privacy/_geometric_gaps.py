"""Geometric gaps by comparing random bits with exact integer thresholds.

A gap g has Pr[gap >= g] = (1 - q)^g. It is the number of thresholds floor(2^96 (1 - q)^g) above a
random number of 96 bits, so no floating-point rounding enters the probabilities. If there are too
many thresholds for one table, the gap is written as a * base + b. Its digits a and b are
independent: a is geometric with (1 - q)^base, and b is geometric given b < base. Each digit has a
table and random bits of its own.
"""

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

TABLE = 2**16  # thresholds in one table, at most
WORDS = 3  # random words of 32 bits for a digit
_BITS = 32 * WORDS
_FINE = 192  # bits of the arithmetic from which thresholds are rounded down


def words_for(rate: float, limit: int) -> int:
  """How many random words of 32 bits one gap takes."""
  return WORDS * len(_digits(rate, limit))


def geometric_gaps(words: jax.Array, rate: float, limit: int) -> jax.Array:
  """Gaps between the rows of a Poisson sample; those of `limit` or more are not told apart.

  Args:
    words: [words_for(rate, limit), slots] random uint32.
    rate: q, in (0, 1).
    limit: number of rows, at most 2^30.

  Returns:
    [slots] int32.

  Privacy:
    A threshold is rounded down by less than 2^-96, and there are at most 2^17 of them: the total
    variation to the geometric law (of gaps below `limit`) is below 2^-79 for each gap.
  """
  digits = _digits(rate, limit)
  gap, base = jnp.zeros((), jnp.int32), 1
  for place, digit in enumerate(digits):
    own = words[place * WORDS : (place + 1) * WORDS]
    gap += base * _find(own, digit)
    base *= digit.base
  return gap


class _Digit(NamedTuple):
  """The law of one digit d: Pr[d >= g] = (ratio^g - rest) / (1 - rest).

  Attributes:
    base: d is below it, in all places but the last.
    log_ratio: log of the ratio.
    rest: ratio^base in all places but the last, and 0 there.
    table: [thresholds, WORDS] uint32, of g = 1, 2, ...; most significant word first.
  """

  base: int
  log_ratio: float
  rest: float
  table: np.ndarray


@functools.lru_cache(maxsize=64)
def _digits(rate: float, limit: int) -> tuple[_Digit, ...]:
  """The digits of a gap, the last one being the most significant."""
  keep = 1 - Fraction(rate)
  ratio = (keep.numerator << _FINE) // keep.denominator
  log_keep = math.log1p(-rate)
  # The first power that 96 bits round down to 0.
  last = min(limit, math.ceil(-_BITS * math.log(2) / log_keep) + 1)
  if last <= TABLE:
    return (_Digit(last, log_keep, 0.0, _table(_powers(ratio, last))),)
  base = 1 << (math.isqrt(last - 1) + 1).bit_length()
  *low, rest = _powers(ratio, base)
  whole = (1 << _FINE) - rest
  low = [((power - rest) << _FINE) // whole for power in low]
  high = _powers(rest, -(-last // base))
  log_rest = base * log_keep
  return (
    _Digit(base, log_keep, math.exp(log_rest), _table(low)),
    _Digit(len(high), log_rest, 0.0, _table(high)),
  )


def _powers(ratio: int, count: int) -> list[int]:
  """ratio^1, ..., ratio^count, as multiples of 2^-192."""
  powers, value = [], 1 << _FINE
  for _ in range(count):
    value = (value * ratio) >> _FINE
    powers.append(value)
  return powers


def _table(probabilities: list[int]) -> np.ndarray:
  """[count, WORDS] the probabilities rounded down to 96 bits; a 1 would not fit."""
  full = (1 << _BITS) - 1
  floors = [min(value >> (_FINE - _BITS), full) for value in probabilities]
  places = [_BITS - 32 * (word + 1) for word in range(WORDS)]
  return np.array([[(floor >> place) % 2**32 for place in places] for floor in floors], np.uint32)


def _find(words: jax.Array, digit: _Digit) -> jax.Array:
  """[slots] how many thresholds are above each random number of 96 bits."""
  count = len(digit.table)
  table = jnp.asarray(digit.table.T)
  # The digit is the logarithm, rounded down, of the smallest whole number above the random one.
  # In float32 it is near the truth on any backend; the exact digit is found by a binary search that
  # starts below the estimate.
  uniform = (words[-1].astype(jnp.float32) + 1) * np.float32(2.0**-_BITS)
  for place in (1, 0):
    uniform += words[place].astype(jnp.float32) * np.float32(2.0 ** (-32 * (place + 1)))
  power = uniform * np.float32(1 - digit.rest) + np.float32(digit.rest)
  span = -math.log(digit.rest) if digit.rest else _BITS * math.log(2)
  error = -(5e-6 + 1.5e-6 * span) / math.expm1(digit.log_ratio)
  guess = jnp.log(power) / np.float32(digit.log_ratio) - np.float32(error)
  found = jnp.clip(guess, 0, count).astype(jnp.int32)
  reach = 2 + math.ceil(2 * error)
  for bit in reversed(range(min(reach, count).bit_length())):
    tried = found + (1 << bit)
    above = _less(words, table[:, jnp.minimum(tried, count) - 1])
    found = jnp.where(above & (tried <= count), tried, found)
  return found


def _less(first: jax.Array, second: jax.Array) -> jax.Array:
  """Whether a number of WORDS words is below another; the most significant word comes first."""
  less = first[-1] < second[-1]
  for own, other in zip(first[-2::-1], second[-2::-1], strict=True):
    less = (own < other) | ((own == other) & less)
  return less
