from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting._laplace import laplace_epsilon, laplace_scale

POSITIVE = st.floats(1e-9, 1e9)


@given(POSITIVE, POSITIVE)
def test_scale_rounds_up(epsilon, sensitivity):
  scale = laplace_scale(epsilon=epsilon, sensitivity=sensitivity)
  assert Fraction(scale) * Fraction(epsilon) >= Fraction(sensitivity)
  assert scale == pytest.approx(sensitivity / epsilon, rel=1e-15)


@given(POSITIVE, POSITIVE)
def test_epsilon_rounds_up(scale, sensitivity):
  epsilon = laplace_epsilon(scale=scale, sensitivity=sensitivity)
  assert Fraction(epsilon) * Fraction(scale) >= Fraction(sensitivity)
  assert epsilon == pytest.approx(sensitivity / scale, rel=1e-15)


def test_hand_values():
  assert laplace_scale(epsilon=0.5, sensitivity=2.0) == 4.0
  assert laplace_epsilon(scale=4.0, sensitivity=2.0) == 0.5


def test_bad_arguments_are_named():
  with pytest.raises(checks.ArgumentError, match="epsilon"):
    laplace_scale(epsilon=0.0)
  with pytest.raises(checks.ArgumentError, match="scale"):
    laplace_epsilon(scale=-1.0)
