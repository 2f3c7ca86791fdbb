"""Exact parameters and exponentials, against mpmath."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.privacy._rational import exp_minus, rational


@given(
  top=st.integers(0, 10**12),
  bottom=st.integers(1, 10**12),
  bits=st.sampled_from([1, 31, 64, 128, 256]),
)
@settings(max_examples=200, deadline=None)
def test_exponential_is_within_one_unit(top, bottom, bits):
  found = exp_minus(Fraction(top, bottom), bits)
  with mpmath.workprec(bits + 80):
    truth = mpmath.exp(-mpmath.mpf(top) / bottom) * mpmath.mpf(2) ** bits
    assert abs(found - truth) <= 1


def test_exponential_of_a_large_number():
  """The terms of its series grow before they cancel."""
  found = exp_minus(Fraction(10_000), 2**14)
  with mpmath.workprec(2**14 + 80):
    truth = mpmath.exp(-10_000) * mpmath.mpf(2) ** (2**14)
    assert abs(found - truth) <= 1


def test_exponential_at_the_edges():
  assert exp_minus(Fraction(0), 64) == 2**64
  assert exp_minus(Fraction(10**30), 64) == 0
  assert exp_minus(Fraction(1, 10**40), 64) == 2**64
  # 1/e in decimal, from its published expansion.
  expected = 0.36787944117144232159552377016146
  assert exp_minus(Fraction(1), 200) / 2**200 == expected


@pytest.mark.parametrize(
  ("value", "expected"),
  [
    (3, Fraction(3)),
    (0.1, Fraction(3602879701896397, 2**55)),
    (Fraction(1, 3), Fraction(1, 3)),
    (np.float32(0.5), Fraction(1, 2)),
    (np.int64(7), Fraction(7)),
    (jnp.float32(2.5), Fraction(5, 2)),
  ],
)
def test_numbers_are_taken_at_their_exact_value(value, expected):
  assert rational("sigma", value) == expected


@pytest.mark.parametrize(
  ("value", "told"),
  [
    (-1.0, "sigma=-1.0 must be 0 or above"),
    (Fraction(-1, 2), "sigma=-1/2 must be 0 or above"),
    (float("nan"), "sigma=nan"),
    (float("inf"), "sigma=inf"),
    ("much", "not a number"),
    (np.ones(2), "one number"),
  ],
)
def test_refused(value, told):
  with pytest.raises(checks.ArgumentError, match=told):
    rational("sigma", value)


def test_a_traced_parameter_is_refused():
  with pytest.raises(checks.ArgumentError, match="known before tracing"):
    jax.jit(lambda s: rational("sigma", s))(1.0)
