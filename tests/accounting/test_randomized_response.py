import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting._randomized_response import (
  randomized_response_epsilon,
  randomized_response_keep,
)


def brute_force_delta(epsilon, categories, count, at):
  """Every sequence of answers of a person in category 0, against one in 1."""
  keep = math.exp(epsilon) / (math.exp(epsilon) + categories - 1)
  flip = (1 - keep) / (categories - 1)
  delta = 0.0
  for answers in itertools.product(range(categories), repeat=count):
    p = math.prod(keep if a == 0 else flip for a in answers)
    q = math.prod(keep if a == 1 else flip for a in answers)
    delta += max(0.0, p - math.exp(at) * q)
  return delta


@settings(max_examples=60, deadline=None)
@given(
  st.floats(0.05, 3.0),
  st.sampled_from([(2, 1), (2, 5), (2, 8), (3, 1), (3, 5), (5, 3), (7, 2)]),
  st.floats(-8, -0.5),
)
def test_equals_the_enumeration_of_all_answers(epsilon, shape, log_delta):
  categories, count = shape
  delta = math.exp(log_delta)
  found = randomized_response_epsilon(
    epsilon=epsilon, categories=categories, count=count, delta=delta
  )
  spent = brute_force_delta(epsilon, categories, count, found)
  assert spent <= delta * (1 + 1e-12)
  if found > 1e-6:  # and it is the smallest
    less = brute_force_delta(epsilon, categories, count, found - 1e-7)
    assert less > delta * (1 - 1e-12)


def test_repetitions_are_counted():
  """dp-accounting 0.6.0 gives 1.0987 here, the cost of one response."""
  found = randomized_response_epsilon(epsilon=math.log(3), categories=2, count=10, delta=1e-9)
  assert found == pytest.approx(10 * math.log(3), rel=1e-3)
  exact = randomized_response_epsilon(epsilon=math.log(3), categories=2, count=10)
  assert exact == 10 * math.log(3)


def test_delta_buys_something_over_many_responses():
  total = 200 * 0.1
  found = randomized_response_epsilon(epsilon=0.1, categories=4, count=200, delta=1e-5)
  assert found < 0.5 * total
  # and no less than a normal with the mean and variance of the loss needs
  keep = randomized_response_keep(epsilon=0.1, categories=4)
  flip = (1 - keep) / 3
  mean = 200 * 0.1 * (keep - flip)
  assert found > mean


def test_many_responses_agree_with_repeated_convolution():
  epsilon, categories, count = 0.3, 3, 400
  keep = randomized_response_keep(epsilon=epsilon, categories=categories)
  flip = (1 - keep) / (categories - 1)
  one = np.array([flip, (categories - 2) * flip, keep])
  p = np.ones(1)
  for _ in range(count):
    p = np.convolve(p, one)
  losses = epsilon * np.arange(-count, count + 1)

  def spent(at):
    return np.sum(p * np.maximum(0.0, -np.expm1(at - losses)))

  for delta in (1e-3, 1e-6, 1e-9, 1e-40):
    found = randomized_response_epsilon(
      epsilon=epsilon, categories=categories, count=count, delta=delta
    )
    assert spent(found) <= delta < spent(found - 1e-8)


def test_tiny_deltas_are_finite_and_fall():
  deltas = [1e-300, 1e-100, 1e-30, 1e-9, 0.5]
  found = [
    randomized_response_epsilon(epsilon=0.5, categories=3, count=60, delta=delta)
    for delta in deltas
  ]
  assert np.all(np.diff(found) <= 0)
  assert found[0] <= 30.0


def test_absurdly_many_are_bounded_by_the_sum():
  assert randomized_response_epsilon(
    epsilon=1.0, categories=2, count=10**6, delta=1e-5
  ) == pytest.approx(1e6)


def test_keep_probability_by_hand():
  assert randomized_response_keep(epsilon=math.log(3), categories=2) == pytest.approx(0.75)
  assert randomized_response_keep(epsilon=math.log(6), categories=4) == pytest.approx(6 / 9)
  assert randomized_response_keep(epsilon=800.0, categories=4) == 1.0


def test_bad_arguments_are_named():
  with pytest.raises(checks.ArgumentError, match="epsilon"):
    randomized_response_keep(epsilon=0.0, categories=2)
  with pytest.raises(checks.ArgumentError, match="categories"):
    randomized_response_epsilon(epsilon=1.0, categories=1, count=1)
  with pytest.raises(checks.ArgumentError, match="count"):
    randomized_response_epsilon(epsilon=1.0, categories=2, count=0)
  with pytest.raises(checks.ArgumentError, match="delta"):
    randomized_response_epsilon(epsilon=1.0, categories=2, count=1, delta=1.0)
