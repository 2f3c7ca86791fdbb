"""Randomized response: each person's category, reported with deniability."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxfair import checks
from jaxfair.privacy import _random_words
from jaxfair.privacy._rational import exp_minus, rational
from jaxfair.privacy._thresholds import Thresholds, Words, count_above, cut
from jaxfair.types import ArrayLike, Key

MAX_CATEGORIES = 2**16
_PRECISION = 128


def randomized_response(
  values: ArrayLike, *, epsilon: float, num_categories: int, key: Key
) -> jax.Array:
  """Reports each value, or another category at random.

  Pr[report = j | value = i] = e^epsilon / (e^epsilon + k - 1) if j = i,
                               1 / (e^epsilon + k - 1) for each other j

  Args:
    values: integer ids in [0, k), one per person, any shape.
    epsilon: above 0; a number, known before tracing.
    num_categories: k.
    key: used once.

  Returns:
    int32 ids of the same shape.

  Privacy:
    epsilon-DP for each person, when one person's value is replaced by any other. The probabilities
    are multiples of 2^-64, and those of the other categories are rounded up, so the guarantee holds
    as it stands: the law differs from the one above by at most k 2^-64 in total variation, towards
    privacy.

  Reference:
    Warner (1965); Kairouz, Oh & Viswanath (2016) for k categories.
  """
  checks.positive("epsilon", epsilon)
  table = _table(rational("epsilon", epsilon), num_categories)
  checks.ids("values", values, num_categories)
  checks.one_key("key", key)
  values = jnp.asarray(values, jnp.int32)
  return _report(values, table.words, key, num_categories)


def response_matrix(*, epsilon: float, num_categories: int) -> Float[np.ndarray, "k k"]:
  """[k, k] probabilities of each report (column) given each value (row)."""
  keep, flip = _probabilities(epsilon, num_categories)
  matrix = np.full((num_categories, num_categories), flip)
  np.fill_diagonal(matrix, keep)
  return matrix


def unbiased_counts(counts: ArrayLike, *, epsilon: float) -> jax.Array:
  """Estimates how many people have each value from counts of reports.

  estimate = (counts - n flip) / (keep - flip), the inverse of the response
  matrix; unbiased, so it may be negative.

  Args:
    counts: [..., k] numbers of reports.
    epsilon: epsilon of the responses.

  Returns:
    [..., k] estimates that add up to n, like the counts.

  Privacy:
    A function of the reports alone: it costs nothing.
  """
  counts = jnp.asarray(counts)
  keep, flip = _probabilities(epsilon, counts.shape[-1])
  total = jnp.sum(counts, axis=-1, keepdims=True)
  return (counts - total * flip) / (keep - flip)


@functools.partial(jax.jit, static_argnames="num_categories")
def _report(values: jax.Array, table: Words, key: jax.Array, num_categories: int) -> jax.Array:
  words = _random_words.random_words(key, values.size)
  # 0 keeps the value; 1, ..., k - 1 are equally likely steps around the circle.
  step = count_above(tuple(words), table).reshape(values.shape)
  moved = values + step
  return jnp.where(moved >= num_categories, moved - num_categories, moved)


def _probabilities(epsilon: float, num_categories: int) -> tuple[float, float]:
  """The probabilities of reporting the truth and of reporting each other category."""
  checks.positive("epsilon", epsilon)
  _check_categories(num_categories)
  ratio = math.exp(-epsilon)
  keep = 1 / (1 + (num_categories - 1) * ratio)
  return keep, keep * ratio


@functools.lru_cache(maxsize=64)
def _table(epsilon: Fraction, num_categories: int) -> Thresholds:
  """Thresholds of the step: Pr[step >= m] = (k - m) flip."""
  _check_categories(num_categories)
  others = num_categories - 1
  above = exp_minus(epsilon, _PRECISION) + 1  # at least e^-epsilon
  # Rounded up: keep / flip is then e^epsilon or less.
  flip = -(-(above << 64) // ((1 << _PRECISION) + others * above))
  keep = (1 << 64) - others * flip
  checks.require(
    keep >= flip,
    f"epsilon={float(epsilon):g} is too small for 64-bit probabilities: a report would carry "
    "no information; use a larger epsilon",
  )
  values = [flip * left for left in range(others, 0, -1)]
  return cut(values, 64, num_categories * 2.0**-64)


def _check_categories(num_categories: int) -> None:
  checks.integer("num_categories", num_categories, low=2, high=MAX_CATEGORIES)
