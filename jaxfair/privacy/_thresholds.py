"""Integer draws from random bits and a table of exact thresholds.

A law on 0, 1, 2, ... is drawn by inverting its survival function: the draw is
the number of m >= 1 with U < Pr[draw >= m], for U uniform on [0, 1). The
probabilities are computed in integer arithmetic and rounded once, so the
distance between the law that is drawn and the law that is meant is a known
number. Nothing depends on floating point.
"""

import functools
import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy import _random_words
from jaxfair.privacy._rational import exp_minus
from jaxfair.types import Key

MAX_LENGTH = 2**19
BITS = 128
# Weights are computed to 2^-256 and dropped below 2^-160. Over the longest
# table their errors stay below 2^-150, nothing beside the rounding to 2^-128.
_PRECISION = 256
_NEGLIGIBLE = 160


Words = tuple[Any, ...]  # numbers cut into uint32 arrays, upper word first


class Thresholds(NamedTuple):
  """Falling thresholds, cut into 32-bit words.

  Attributes:
    words: [2^k - 1] uint32 each, most significant first; padded with zeros.
    length: how many are not padding: the largest draw.
    distance: total-variation distance to the law that is meant, rounded up.
  """

  words: Words
  length: int
  distance: float


def cut(values: list[int], width: int, distance: float) -> Thresholds:
  """Cuts falling integers in [0, 2^width) into words of 32 bits."""
  size = (1 << max(len(values), 1).bit_length()) - 1
  padded = values + [0] * (size - len(values))
  words = tuple(
    np.array([v >> shift & 0xFFFFFFFF for v in padded], np.uint32)
    for shift in range(width - 32, -1, -32)
  )
  return Thresholds(words, len(values), distance)


def count_above(words: Words, table: Words) -> jax.Array:
  """How many thresholds are above each number.

  Args:
    words: the numbers, cut into [n] words like the table's.
    table: words of the thresholds.

  Returns:
    [n] int32.
  """
  table = tuple(jnp.asarray(word) for word in table)
  steps = table[0].shape[0].bit_length()

  # A rolled loop: the words are read in every step, and XLA would otherwise
  # run the cipher again for each reader.
  def halve(i: jax.Array, found: jax.Array) -> jax.Array:
    half = jnp.int32(1) << (steps - 1 - i)
    above = _less(words, tuple(word[found + half - 1] for word in table))
    return jnp.where(above, found + half, found)

  return jax.lax.fori_loop(0, steps, halve, jnp.zeros_like(words[0], jnp.int32))


@functools.partial(jax.jit, static_argnames="count")
def draw(key: Key, table: Words, count: int) -> jax.Array:
  """[count] draws from a table of 128-bit thresholds.

  64 bits decide, unless they agree with the upper half of a threshold. That
  has probability 2^-64 per entry, so the loop that looks at 64 more bits is
  there for the law, and practically never runs.

  Args:
    key: used for the counters 0 ... 2 count - 1.
    table: `words` of the thresholds.
    count: static.
  """
  first = tuple(_random_words.random_words(key, count))

  def undecided(state: tuple[jax.Array, jax.Array]) -> jax.Array:
    found, start = state
    at = jnp.minimum(found, len(table[0]) - 1)
    tie = (first[0] == table[0][at]) & (first[1] == table[1][at])
    return (start == count) & jnp.any(tie)

  # The counter is part of the state to keep the work inside the loop: XLA
  # would move what is the same in every round out of it, and do it always.
  def look_further(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    _, start = state
    second = _random_words.random_words(key, count, start=start)
    return count_above((*first, *second), table), start + count

  state = (count_above(first, table[:2]), jnp.uint32(count))
  return jax.lax.while_loop(undecided, look_further, state)[0]


@functools.lru_cache(maxsize=64)
def discrete_gaussian(sigma: Fraction) -> Thresholds:
  """N + length / 2 for Pr[N = n] proportional to exp(-n^2 / (2 sigma^2))."""
  _fits("sigma", sigma, reach=2 * math.sqrt(2 * BITS * math.log(2)))
  weights = [1 << _PRECISION]
  factor = exp_minus(1 / (2 * sigma**2), _PRECISION) if sigma else 0
  step = factor * factor >> _PRECISION
  # exp(-(n+1)^2 s) = exp(-n^2 s) exp(-(2n+1) s)
  while weight := _kept(weights[-1] * factor >> _PRECISION):
    weights.append(weight)
    factor = factor * step >> _PRECISION
  return _symmetric(weights)


@functools.lru_cache(maxsize=64)
def discrete_laplace(scale: Fraction) -> Thresholds:
  """N + length / 2 for Pr[N = n] proportional to exp(-|n| / scale)."""
  _fits("scale", scale, reach=2 * BITS * math.log(2))
  weights = [1 << _PRECISION]
  ratio = exp_minus(1 / scale, _PRECISION) if scale else 0
  while weight := _kept(weights[-1] * ratio >> _PRECISION):
    weights.append(weight)
  return _symmetric(weights)


def _symmetric(weights: list[int]) -> Thresholds:
  """Thresholds of a law with Pr[n] = Pr[-n], from weights of 0, 1, 2, ..."""
  total = 2 * sum(weights) - weights[0]
  reciprocal = (1 << 2 * _PRECISION) // total
  upper = []  # Pr[N >= n] for n = 1, 2, ...
  rest = (total - weights[0]) // 2
  for weight in weights[1:]:
    upper.append(rest * reciprocal >> _PRECISION)
    rest -= weight
  exact = [(1 << _PRECISION) - p for p in reversed(upper)] + upper
  shift = _PRECISION - BITS
  rounded = [(p + (1 << (shift - 1))) >> shift for p in exact]
  errors = [(r << shift) - p for r, p in zip(rounded, exact, strict=True)]
  # A probability is off by the difference of two neighboring errors. Weights
  # that were dropped are below 2^-160 each, and together below the slack.
  edges = [0, *errors, 0]
  off = sum(abs(a - b) for a, b in itertools.pairwise(edges))
  slack = len(edges) << (_PRECISION - _NEGLIGIBLE + 2)
  distance = math.nextafter((off + slack) / (2 << _PRECISION), math.inf)
  # Thresholds that were rounded to 0 or 1 separate nothing.
  ends = sum(r == 0 for r in rounded)
  return cut(rounded[ends : len(rounded) - ends], BITS, distance)


def _kept(weight: int) -> int:
  return weight if weight >> (_PRECISION - _NEGLIGIBLE) else 0


def _fits(name: str, value: Fraction, reach: float) -> None:
  """Raises for a table that would be too long."""
  largest = math.floor(MAX_LENGTH / reach)
  checks.require(
    value <= largest,
    f"{name}={float(value):g} needs a table of more than {MAX_LENGTH} entries; "
    f"use at most {largest}, or draw with privacy.exact",
  )


def _less(a: Words, b: Words) -> jax.Array:
  """Whether a < b, for numbers cut into words."""
  less = a[-1] < b[-1]
  for i in range(len(a) - 2, -1, -1):
    less = (a[i] < b[i]) | ((a[i] == b[i]) & less)
  return less
