import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting._search import MAX_STEPS, MIN_NOISE, SLACK, most_steps, smallest_noise


@given(st.floats(0.01, 100.0), st.floats(0.3, 3.0), st.floats(1e-2, 1e2), st.floats(0.1, 100.0))
def test_noise_meets_the_target_from_below(scale, power, target, start):
  looks = []

  def cost(noise):
    looks.append(noise)
    return scale * noise**-power + 0.1 * scale * noise ** (-2 * power)

  # Only targets whose answer lies well inside the range.
  if not cost(0.05) > target > cost(1e5):
    return
  looks.clear()
  noise = smallest_noise(cost, target, start)
  assert target * math.exp(-1.001 * SLACK) <= cost(noise) <= target
  assert noise in looks
  assert float(f"{noise:.5e}") == noise
  assert len(looks) <= 25


def test_few_looks_from_a_good_start():
  looks = []

  def cost(noise):
    looks.append(noise)
    return 3.0 / noise**1.4

  smallest_noise(cost, 1.0, 3.0 ** (1 / 1.4) * 1.001)
  assert len(looks) <= 3


def test_jumps_and_unknown_costs_are_searched_too():
  def jump(noise):
    return 5.0 if noise < math.pi else 0.0

  assert smallest_noise(jump, 1.0, 1.0) == pytest.approx(math.pi, rel=1e-5)
  assert smallest_noise(jump, 1.0, 50.0) >= math.pi

  def partly_unknown(noise):
    return math.inf if noise < 2.0 else 3.0 / noise

  assert smallest_noise(partly_unknown, 1.0, 0.5) == pytest.approx(3.0, rel=1e-3)


def test_a_flat_cost_is_not_crept_along():
  looks = []

  def shelf(noise):
    looks.append(noise)
    return 1.0001 - 1e-9 * noise if noise < 40.0 else 0.5 / noise

  assert smallest_noise(shelf, 1.0, 3.0) == pytest.approx(40.0, rel=1e-5)
  assert len(looks) < 40


def test_the_least_noise_is_given_where_any_will_do():
  assert smallest_noise(lambda _: 0.0, 1.0, 5.0) == MIN_NOISE


def test_no_noise_is_enough():
  with pytest.raises(checks.ArgumentError, match="raise epsilon or delta"):
    smallest_noise(lambda _: 2.0, 1.0, 5.0)


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_most_steps_is_the_last_that_fits(answer, start):
  looks = []

  def cost(steps):
    looks.append(steps)
    return float(steps)

  assert most_steps(cost, answer + 0.5, start) == answer
  assert len(looks) <= 60


def test_steps_have_an_end():
  assert most_steps(lambda _: 0.0, 1.0, 5) == MAX_STEPS
