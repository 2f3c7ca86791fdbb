"""Exact coins and integers, in both arithmetics."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from jaxfair import checks
from jaxfair.privacy import _exact_coins

COUNT = 200_000
FALSE_ALARM = 1e-6


def scripted(*numbers, size):
  """A source that hands out these integers, `size` bytes each."""
  left = list(numbers)

  def source(count):
    wanted = [left.pop(0) for _ in range(count // size)]
    return b"".join(n.to_bytes(size, "little") for n in wanted)

  source.left = left
  return source


def share_is(heads, probability):
  low, high = stats.binom.interval(1 - FALSE_ALARM, heads.size, float(probability))
  return low <= heads.sum() <= high


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 5, 8, 13, 32, 40, 62, 63, 100, 130])
def test_random_bits_are_uniform(width):
  drawn = _exact_coins.random_bits(_exact_coins.seeded(1), width, 20_000)
  assert drawn.dtype == (np.int64 if width <= 62 else object)
  assert all(0 <= n < 2**width for n in drawn)
  for bit in range(width):  # every bit is a fair coin
    assert share_is((drawn >> bit) & 1, 0.5), bit


def test_all_bits_of_the_source_count_once():
  source = scripted(0xAB, 0x01, size=1)
  np.testing.assert_array_equal(_exact_coins.random_bits(source, 4, 2), [0xA, 0])
  assert not source.left


@pytest.mark.parametrize("bound", [1, 2, 6, 1000])
def test_below_is_uniform(bound):
  drawn = _exact_coins.below(_exact_coins.seeded(2), bound, COUNT)
  seen = np.bincount(drawn.astype(int), minlength=bound)
  assert len(seen) == bound
  statistic = np.sum((seen - COUNT / bound) ** 2 / (COUNT / bound))
  assert stats.chi2.sf(statistic, bound - 1) > FALSE_ALARM or bound == 1


def test_below_a_bound_that_needs_long_integers():
  bound = 3 * 2**100
  drawn = _exact_coins.below(_exact_coins.seeded(3), bound, 20_000)
  assert max(drawn) < bound
  scaled = np.array([Fraction(int(n), bound) for n in drawn], np.float64)
  assert stats.kstest(scaled, "uniform").pvalue > FALSE_ALARM


# 7/16 with a denominator that fits int64, and with one that does not.
@pytest.mark.parametrize("factor", [1, 2**30, 2**52, 2**58, 3**200])
def test_bernoulli(factor):
  numerator = np.full(COUNT, 7, object) * factor
  if (16 * factor).bit_length() < 62:
    numerator = numerator.astype(np.int64)
  heads = _exact_coins.bernoulli(_exact_coins.seeded(4), numerator, 16 * factor)
  assert share_is(heads, 7 / 16)


@pytest.mark.parametrize("denominator", [1, 7, 10**12, 10**40])
def test_certain_coins(denominator):
  kind = np.int64 if denominator < 2**62 else object
  source = _exact_coins.seeded(5)
  never = _exact_coins.bernoulli(source, np.zeros(1000, kind), denominator)
  always = _exact_coins.bernoulli(source, np.full(1000, denominator, kind), denominator)
  assert not never.any()
  assert always.all()


def test_bernoulli_compares_digit_by_digit():
  """1/3 = 0x0.55555555 55555555... : ties are settled by the next digit."""
  fives = 0x55555555
  for digits, expected in (
    ([fives - 1], True),
    ([fives + 1], False),
    ([fives, fives - 1], True),
    ([fives, fives, fives + 1], False),
    ([fives, fives, 0], True),
  ):
    source = scripted(*digits, size=4)
    heads = _exact_coins.bernoulli(source, np.array([1]), 3)
    assert heads.tolist() == [expected]
    assert not source.left


@pytest.mark.parametrize("factor", [1, 10**40])
def test_bernoulli_exp(factor):
  """One array of many exponents: 0, below 1, 1, and well above it."""
  exponents = [0, 1, 5, 10, 13, 25, 47]  # tenths
  each = 60_000
  kind = np.int64 if factor == 1 else object
  numerator = np.repeat(np.array(exponents, kind) * factor, each)
  heads = _exact_coins.bernoulli_exp(_exact_coins.seeded(6), numerator, 10 * factor)
  for tenths, part in zip(exponents, heads.reshape(-1, each), strict=True):
    assert share_is(part, math.exp(-tenths / 10)), tenths


def test_bernoulli_exp_of_a_huge_exponent_is_tails():
  numerator = np.array([10**80, 0], object)
  heads = _exact_coins.bernoulli_exp(_exact_coins.seeded(7), numerator, 3)
  assert heads.tolist() == [False, True]


def test_geometric():
  drawn = _exact_coins.geometric(_exact_coins.seeded(8), COUNT)
  n = np.arange(10)
  expected = COUNT * (1 - 1 / math.e) * np.exp(-n)
  expected[-1] = COUNT * math.exp(-9)  # 9 or more
  seen = np.bincount(np.minimum(drawn, 9), minlength=10)
  statistic = np.sum((seen - expected) ** 2 / expected)
  assert stats.chi2.sf(statistic, 9) > FALSE_ALARM


def test_digits_of_one_over_e():
  with mpmath.workprec(1000):
    expected = int(mpmath.floor(mpmath.exp(-1) * mpmath.mpf(2) ** 640))
  found = 0
  for place in range(20):
    found = (found << 32) | _exact_coins.exp_of_one_digit(place)
  assert found == expected


def test_seeds_reproduce_and_differ():
  first, again, other = (_exact_coins.seeded(seed)(64) for seed in (1, 1, 2))
  assert first == again != other
  with pytest.raises(checks.ArgumentError, match="seed=-1"):
    _exact_coins.seeded(-1)
