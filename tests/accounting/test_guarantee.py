import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting import DataDependentEpsilon, PrivacyGuarantee, Relation
from jaxfair.accounting._guarantee import BudgetError, delta_in_range, round_up


def test_a_guarantee_always_tells_whom_it_protects():
  told = str(PrivacyGuarantee(1.23456, 1e-5, Relation.ATTRIBUTE, "one pupil", "pld"))
  for part in ("1.235", "1e-05", "one pupil", "private attribute", "pld"):
    assert part in told


def test_every_relation_is_told_in_its_own_words():
  told = {str(PrivacyGuarantee(1.0, 0.0, relation, "one person", "rdp")) for relation in Relation}
  assert len(told) == len(Relation)


def test_printed_epsilon_is_never_below():
  assert "1.001," in str(PrivacyGuarantee(1.0001, 0.0, Relation.ZERO_OUT, "one person", "pld"))


@given(st.floats(1e-300, 1e300), st.integers(1, 8))
def test_round_up_is_above_by_less_than_a_digit(value, digits):
  up = round_up(value, digits)
  assert value <= up <= value * (1 + 1.001 * 10.0 ** (1 - digits))


def test_round_up_leaves_short_numbers_alone():
  assert round_up(1e-5) == 1e-5
  assert round_up(0.3) == 0.3
  assert round_up(0.0) == 0.0
  assert round_up(math.inf) == math.inf
  assert round_up(9.99991) == 10.0


def test_data_dependent_epsilon_does_not_slip_out():
  private = DataDependentEpsilon(0.8371, 1e-5)
  with pytest.raises(TypeError, match="private"):
    float(private)
  with pytest.raises(TypeError):
    f"{private:.3f}"
  with pytest.raises(TypeError):
    private + 1.0
  with pytest.raises(TypeError):
    json.dumps({"epsilon": private})
  assert "8371" not in f"{private} {private!r}"
  assert private.not_for_release == 0.8371
  assert not isinstance(private, PrivacyGuarantee)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, 2.0, math.nan])
def test_delta_outside_its_range_is_refused(delta):
  with pytest.raises(checks.ArgumentError, match=r"delta=.*1e-5"):
    delta_in_range(delta)


def test_zero_delta_passes_where_pure_privacy_is_meant():
  delta_in_range(0.0, zero=True)


def test_budget_errors_are_shown_as_one_line():
  assert issubclass(BudgetError, checks.JaxfairError)
