"""Geometric gaps: exact thresholds, all 96 bits, one digit or two."""

import functools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxfair.privacy import _geometric_gaps as gaps

FULL = 2**96


def words_of(numbers):
  """[3, n] words of integers of 96 bits."""
  return jnp.asarray([[(u >> place) % 2**32 for u in numbers] for place in (64, 32, 0)], jnp.uint32)


def law_of(digit, keep):
  """Pr[d >= g] for g = 1, ... as fractions, from the definition."""
  rest = keep**digit.base if digit.rest else Fraction(0)
  return [(keep**g - rest) / (1 - rest) for g in range(1, len(digit.table) + 1)]


def thresholds(digit):
  return [(int(a) << 64) + (int(b) << 32) + int(c) for a, b, c in digit.table]


@pytest.mark.parametrize(("rate", "limit"), [(0.01, 40), (0.3, 40), (0.97, 40)])
def test_thresholds_are_the_law_rounded_down(rate, limit):
  (digit,) = gaps._digits(rate, limit)
  law = law_of(digit, 1 - Fraction(rate))
  assert thresholds(digit) == [min(int(p * FULL), FULL - 1) for p in law]


def test_thresholds_of_two_digits(monkeypatch):
  """With small tables the exact law is quick to compute."""
  monkeypatch.setattr(gaps, "TABLE", 30)
  rate, limit = 1 / 64, 700
  low, high = gaps._digits.__wrapped__(rate, limit)
  keep = 1 - Fraction(rate)
  assert low.base * high.base >= limit
  assert thresholds(low) == [int(p * FULL) for p in law_of(low, keep)]
  assert thresholds(high) == [int(p * FULL) for p in law_of(high, keep**low.base)]
  # Digits so distributed, and independent, are those of a geometric gap.
  tail = [[Fraction(1), *law_of(low, keep)], [Fraction(1), *law_of(high, keep**low.base)]]
  for gap in (0, 1, low.base - 1, low.base, 5 * low.base + 3):
    a, b = divmod(gap, low.base)
    both = (tail[0][b] - (tail[0] + [0])[b + 1]) * (tail[1][a] - tail[1][a + 1])
    assert both == keep**gap * (1 - keep)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("rate", "limit"), [(0.01, 40), (0.3, 40), (0.002, 30_000), (1e-5, 10**7), (1e-8, 2**30)]
)
def test_gaps_are_decided_by_all_96_bits(rate, limit):
  """One below a threshold is a longer gap, and the threshold itself is not."""
  for digit in gaps._digits(rate, limit):
    number = np.unique(np.geomspace(1, len(digit.table), 60).astype(int))
    own = thresholds(digit)
    at = [own[g - 1] for g in number]
    number = number[: sum(u > 2**28 for u in at)]  # beyond, thresholds are equal
    at = at[: len(number)]
    found = jax.jit(functools.partial(gaps._find, digit=digit))(
      words_of([*at, *(u - 1 for u in at)])
    )
    np.testing.assert_array_equal(found, [*(number - 1), *number])


@pytest.mark.slow
@given(
  rate=st.floats(1e-5, 0.999), numbers=st.lists(st.integers(0, FULL - 1), min_size=8, max_size=8)
)
@settings(max_examples=40, deadline=None)
def test_gaps_are_exact(rate, numbers):
  """Against Python's integers: gap = #{g >= 1: u < 2^96 (1-q)^g}."""
  limit = 400
  found = jax.jit(lambda w: gaps.geometric_gaps(w, rate, limit))(words_of(numbers))
  keep, value, exact = 1 - Fraction(rate), Fraction(FULL), [0] * len(numbers)
  for _ in range(limit):
    value *= keep
    exact = [count + (u < int(value)) for count, u in zip(exact, numbers, strict=True)]
  np.testing.assert_array_equal(found, exact)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [3e-4, 1e-6])
def test_gaps_of_two_digits_are_geometric(rate):
  limit, count = 2**30, 100_000
  words = gaps.words_for(rate, limit)
  assert words == 6
  drawn = jax.random.bits(jax.random.key(0), (words, count), jnp.uint32)
  found = np.asarray(jax.jit(lambda w: gaps.geometric_gaps(w, rate, limit))(drawn))
  # A discrete law by its distribution function at both ends of a step; a KS
  # test of a continuous law is conservative for it.
  jitter = np.random.default_rng(0).random(count)
  low, high = -np.expm1(np.log1p(-rate) * found), -np.expm1(np.log1p(-rate) * (found + 1))
  assert stats.kstest(low + jitter * (high - low), "uniform").pvalue > 1e-6


def test_few_thresholds_however_small_the_rate():
  for rate, limit in ((1e-6, 16_000_000), (1e-9, 2**30), (0.5, 2**30), (1e-3, 65_536)):
    digits = gaps._digits(rate, limit)
    assert sum(len(digit.table) for digit in digits) <= 2**17
    if len(digits) == 1:
      assert len(digits[0].table) <= gaps.TABLE
