"""Exact random integers and coins on the host, many at a time.

Integer arithmetic only, in int64 where it is certain to fit and in Python's
unbounded integers elsewhere. Loops are over rounds, never over draws.
"""

import functools
import hashlib
import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from jaxfair import checks
from jaxfair.privacy._rational import exp_minus

# A function of n that returns n random bytes; `os.urandom` is one.
BitSource = Callable[[int], bytes]

# Results of int64 arithmetic are kept below 2^62.
INT64_BITS = 62


def seeded(seed: int) -> BitSource:
  """Reproducible bits, for tests and studies.

  Privacy:
    Not for release: anyone who knows the seed can subtract the noise.
  """
  checks.integer("seed", seed, low=0)
  return np.random.Generator(np.random.Philox(seed)).bytes


def keyed(secret: bytes) -> BitSource:
  """The same bits for the same secret, in the same order of requests.

  Privacy:
    SHAKE-256 of the secret and the number of the request: as good as the
    operating system's to anyone who does not have the secret.
  """
  requests = itertools.count()

  def source(size: int) -> bytes:
    number = next(requests).to_bytes(8, "little")
    return hashlib.shake_256(secret + number).digest(size)

  return source


def random_bits(source: BitSource, width: int, count: int) -> np.ndarray:
  """[count] uniform integers in [0, 2^width)."""
  if width > INT64_BITS:
    low = random_bits(source, INT64_BITS, count).astype(object)
    high = random_bits(source, width - INT64_BITS, count).astype(object)
    return (high << INT64_BITS) | low
  size = next(size for size in (1, 2, 4, 8) if 8 * size >= width)
  words = np.frombuffer(source(size * count), dtype=f"<u{size}")
  return (words >> (8 * size - width)).astype(np.int64)


def below(source: BitSource, bound: int, count: int) -> np.ndarray:
  """[count] uniform integers in [0, bound)."""
  width = (bound - 1).bit_length()
  result = random_bits(source, width, count) if width else np.zeros(count, int)
  open_ = np.flatnonzero(result >= bound)
  while open_.size:
    result[open_] = random_bits(source, width, open_.size)
    open_ = open_[result[open_] >= bound]
  return result


def bernoulli(source: BitSource, numerator: np.ndarray, denominator: int) -> np.ndarray:
  """[n] coins that are True with probability numerator / denominator.

  Compares the binary expansion of each probability with random digits, a few
  dozen bits at a time, until they differ.

  Args:
    source: source of random bits.
    numerator: [n] integers in [0, denominator].
    denominator: the same for all.
  """
  digit_bits = min(32, INT64_BITS - denominator.bit_length())
  if digit_bits < 8:
    digit_bits, numerator = INT64_BITS, numerator.astype(object)
  heads = np.zeros(numerator.shape, bool)
  open_, rest = np.arange(numerator.size), numerator
  while open_.size:
    digit, rest = _divide(rest << digit_bits, denominator)
    drawn = random_bits(source, digit_bits, open_.size)
    heads[open_] = drawn < digit
    tied = drawn == digit
    open_, rest = open_[tied], rest[tied]
  return heads


def bernoulli_exp(source: BitSource, numerator: np.ndarray, denominator: int) -> np.ndarray:
  """[n] coins that are True with probability exp(-numerator / denominator).

  Args:
    source: source of random bits.
    numerator: [n] integers, 0 or above.
    denominator: the same for all.

  Reference:
    Canonne, Kamath & Steinke (2020), Algorithm 1.
  """
  whole, rest = _divide(numerator, denominator)
  heads = np.ones(numerator.shape, bool)
  # exp(-whole): as many coins of exp(-1) must all be heads.
  open_ = np.flatnonzero(whole)
  while open_.size:
    again = _exp_of_one(source, open_.size)
    heads[open_[~again]] = False
    open_ = open_[again]
    whole[open_] -= 1
    open_ = open_[whole[open_] > 0]
  left = np.flatnonzero(heads)
  heads[left] = _exp_of_fraction(source, rest[left], denominator)
  return heads


def geometric(source: BitSource, count: int) -> np.ndarray:
  """[count] integers with Pr[v] = (1 - 1/e) e^-v."""
  value = np.zeros(count, np.int64)
  open_ = np.arange(count)
  while open_.size:
    again = _exp_of_one(source, open_.size)
    open_ = open_[again]
    value[open_] += 1
  return value


def _exp_of_one(source: BitSource, count: int) -> np.ndarray:
  """[count] coins of exp(-1), by comparing with its binary expansion."""
  heads = np.zeros(count, bool)
  open_, place = np.arange(count), 0
  while open_.size:
    drawn = random_bits(source, 32, open_.size)
    digit = exp_of_one_digit(place)
    heads[open_] = drawn < digit
    open_, place = open_[drawn == digit], place + 1
  return heads


@functools.lru_cache
def exp_of_one_digit(place: int) -> int:
  """32 bits of exp(-1): those after the first 32 * place."""
  guard = 64
  value = exp_minus(Fraction(1), 32 * (place + 1) + guard)
  return (value >> guard) & 0xFFFFFFFF


def _exp_of_fraction(source: BitSource, numerator: np.ndarray, denominator: int) -> np.ndarray:
  """exp(-x) for 0 <= x <= 1, from coins of x, x/2, x/3, ...

  The first tails has an odd number with probability 1 - x + x^2/2 - ...
  """
  heads = np.zeros(numerator.shape, bool)
  open_, number = np.arange(numerator.size), 1
  while open_.size:
    again = bernoulli(source, numerator[open_], denominator * number)
    heads[open_[~again]] = number % 2 == 1
    open_, number = open_[again], number + 1
  return heads


def _divide(numerator: np.ndarray, denominator: int) -> tuple[np.ndarray, np.ndarray]:
  if denominator.bit_length() > INT64_BITS:
    numerator = numerator.astype(object)
  quotient = numerator // denominator
  return quotient, numerator - quotient * denominator
