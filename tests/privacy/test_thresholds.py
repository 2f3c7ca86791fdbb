"""Tables of thresholds: their law term by term, and the search in them."""

import functools
import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.privacy import _random_words, _thresholds

PARAMETERS = [Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(2.7), 10]
LAWS = {
  _thresholds.discrete_gaussian: lambda n, s: mpmath.exp(-(n**2) / (2 * s**2)),
  _thresholds.discrete_laplace: lambda n, s: mpmath.exp(-abs(n) / s),
}


def integers(table):
  """The thresholds that are not padding, as Python integers."""
  values = [0] * len(table.words[0])
  for word in table.words:
    values = [(v << 32) | int(w) for v, w in zip(values, word, strict=True)]
  assert not any(values[table.length :])
  return values[: table.length]


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_probability_is_that_of_the_law(law, parameter):
  """The whole table against 100-digit arithmetic; nothing is sampled."""
  table = law(Fraction(parameter))
  reach = table.length // 2
  with mpmath.workdps(100):
    unit = mpmath.mpf(2) ** -128
    at_least = [1, *(v * unit for v in integers(table)), 0]
    drawn = [a - b for a, b in itertools.pairwise(at_least)]
    s = mpmath.mpf(Fraction(parameter).numerator)
    s /= Fraction(parameter).denominator
    beyond = reach + 40 + int(200 * parameter)
    weights = [LAWS[law](n, s) for n in range(-beyond, beyond + 1)]
    total = mpmath.fsum(weights)
    cut = beyond - reach
    exact = [w / total for w in weights[cut : len(weights) - cut]]
    tail = mpmath.fsum(weights[:cut]) / total * 2
    off = [abs(d - e) for d, e in zip(drawn, exact, strict=True)]
    assert max(off) <= unit
    distance = (mpmath.fsum(off) + tail) / 2
    # Rounded up, and tight: the number people add to delta.
    assert distance <= table.distance <= 1.01 * distance + mpmath.mpf(2) ** -150
  assert table.distance < 2.0**-110


def test_no_noise_is_a_table_of_nothing():
  for law in LAWS:
    for parameter in (Fraction(0), Fraction(1, 10**6)):
      table = law(parameter)
      assert table.length == 0
      drawn = _thresholds.draw(jax.random.key(0), table.words, count=1000)
      assert not drawn.any()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_table_that_is_too_long_is_refused(law):
  with pytest.raises(checks.ArgumentError, match=r"privacy\.exact"):
    law(Fraction(10**6))


words_64 = st.integers(0, 2**64 - 1)


@pytest.mark.slow
@given(
  values=st.lists(words_64, min_size=0, max_size=40),
  words=st.lists(words_64, min_size=1, max_size=10),
  near=st.lists(st.tuples(st.integers(0, 39), st.integers(-1, 1)), max_size=9),
)
@settings(max_examples=50, deadline=None)
def test_search_counts_what_is_above(values, words, near):
  values = sorted(values, reverse=True)
  if values:  # on the thresholds themselves, and one beside them
    words += [(values[i % len(values)] + d) % 2**64 for i, d in near]
  table = _thresholds.cut(values, 64, 0.0)
  # One shape for all examples, so that the loop is compiled once.
  padding = 63 - len(table.words[0])
  padded = tuple(np.pad(word, (0, padding)) for word in table.words)
  asked = np.array(words + [0] * (20 - len(words)), np.uint64)
  halves = (asked >> np.uint64(32)), asked & np.uint64(2**32 - 1)
  found = jitted_count(tuple(h.astype(np.uint32) for h in halves), padded)
  expected = [sum(w < v for v in values) for w in words]
  np.testing.assert_array_equal(found[: len(words)], expected)


jitted_count = jax.jit(_thresholds.count_above)


def whole_numbers(key, count):
  """The 128-bit numbers that `draw` looks at."""
  parts = _random_words.random_words(key, 2 * count)
  words = [(int(h) << 32) | int(w) for h, w in zip(*parts, strict=True)]
  return [(words[i] << 64) | words[i + count] for i in range(count)]


def awkward_table(numbers):
  """Thresholds that agree with the first 64 bits of the numbers drawn."""
  upper = [(n >> 64) << 64 for n in numbers]
  values = [*numbers[:2], numbers[0] + 1, numbers[1] - 1]
  values += [upper[2] + shift for shift in (0, 1, 2**63, 2**64 - 1)]
  values += [2**127, 2**100, 5]
  return _thresholds.cut(sorted(values, reverse=True), 128, 0.0)


@pytest.mark.slow
def test_ties_of_64_bits_are_decided_by_64_more():
  key = jax.random.key(5)
  numbers = whole_numbers(key, 6)
  table = awkward_table(numbers)
  found = _thresholds.draw(key, table.words, count=6)
  expected = [sum(n < v for v in integers(table)) for n in numbers]
  np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_ties_in_one_row_of_a_map_leave_the_others_alone():
  keys = jax.random.split(jax.random.key(5), 3)
  table = awkward_table(whole_numbers(keys[1], 6))
  draw = functools.partial(_thresholds.draw, table=table.words, count=6)
  mapped = jax.vmap(draw)(keys)
  np.testing.assert_array_equal(mapped, jnp.stack([draw(k) for k in keys]))
  numbers = whole_numbers(keys[1], 6)
  expected = [sum(n < v for v in integers(table)) for n in numbers]
  np.testing.assert_array_equal(mapped[1], expected)
