"""Poisson sampling with a cap, and tuning, against their exact laws."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from helpers import enumerations as exact
from jaxfair.accounting import DpSgd, Gaussian, Relation
from jaxfair.accounting._composition import composed_epsilon, repeat_and_select_epsilon


def sum_law(contributions, rate, cap):
  """{sum: probability} of a batch: by everybody's coin, cut at random."""
  people = range(len(contributions))
  law = dict.fromkeys(range(-len(contributions), len(contributions) + 1), 0.0)
  for size in range(len(contributions) + 1):
    weight = rate**size * (1 - rate) ** (len(contributions) - size)
    for chosen in itertools.combinations(people, size):
      kept = list(itertools.combinations(chosen, min(size, cap)))
      for rest in kept:
        law[sum(contributions[i] for i in rest)] += weight / len(kept)
  return law


def noisy_law(contributions, rate, cap, sigma):
  """The law of such a sum with Gaussian noise, on a fine grid."""
  step = 0.002
  grid = np.arange(-9 - 8 * sigma, 9 + 8 * sigma, step)
  sums = sum_law(contributions, rate, cap)
  return step * sum(
    weight * stats.norm.pdf(grid, center, sigma) for center, weight in sums.items() if weight
  )


RELATIONS = [
  (Relation.ADD_OR_REMOVE_ONE, [((1,), ()), ((-1,), ())]),
  (Relation.REPLACE_ONE, [((1,), (-1,)), ((1,), (0,))]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("relation", "pairs"), RELATIONS)
def test_a_step_of_dp_sgd_with_a_cap(relation, pairs):
  # The others may do anything with a contribution of norm 1.
  rate, sigma, cap, delta = 0.2, 0.7, 4, 0.02
  event = DpSgd(sigma, rate, 1, 5, cap)
  epsilon = composed_epsilon([event], delta=delta, relation=relation)
  found, lower = (
    max(
      exact.delta_of(*(noisy_law(others + one, rate, cap, sigma) for one in pair), at)
      for others in ((0,) * 5, (-1,) * 5, (-1, -1, -1, 1, 1))
      for pair in pairs
    )
    for at in (epsilon, 0.8 * epsilon)
  )
  assert found <= delta
  # Of two people replaced the neighbors are compared as two steps.
  assert lower > delta or relation is Relation.REPLACE_ONE


@pytest.mark.slow
def test_what_a_cap_does_is_not_free():
  # Two people push the other way, and one who comes may take a place of theirs:
  # more than without a cap, so that charge does not hold.
  rate, sigma, cap, delta = 0.8, 1.0, 2, 0.2
  free = composed_epsilon([DpSgd(sigma, rate, 1)], delta=delta)
  pair = [noisy_law((-1, -1, *one), rate, cap, sigma) for one in ((1,), ())]
  assert exact.delta_of(*pair, free) > 1.1 * delta
  event = DpSgd(sigma, rate, 1, 2, cap)
  assert exact.delta_of(*pair, composed_epsilon([event], delta=delta)) <= delta


@pytest.mark.slow
def test_without_a_cap_the_charge_is_the_truth():
  rate, sigma, delta = 0.2, 0.7, 1e-2
  epsilon = composed_epsilon([DpSgd(sigma, rate, 1)], delta=delta)
  pair = [noisy_law(one, rate, 6, sigma) for one in ((1,), ())]
  # The integral is good to 1e-7.
  assert exact.delta_of(*pair, epsilon) <= delta + 1e-7
  assert exact.delta_of(*pair, 0.99 * epsilon) > delta


def generating(shape, mean):
  """E[z^runs] of the law that draws the number of runs."""
  if shape is None:
    return lambda z: np.exp(mean * (z - 1))
  # The parameter at which the mean is right, by bisection.
  low, high = 1e-9, 1 - 1e-12
  for _ in range(200):
    middle = (low + high) / 2
    if _mean(shape, middle) > mean:
      low = middle
    else:
      high = middle
  gamma = (low + high) / 2
  if shape == 0:
    return lambda z: np.log1p(-(1 - gamma) * z) / np.log(gamma)
  return lambda z: ((1 - (1 - gamma) * z) ** -shape - 1) / (gamma**-shape - 1)


def _mean(shape, gamma):
  if shape == 0:
    return (1 / gamma - 1) / -np.log(gamma)
  return shape * (1 - gamma) / (gamma * (1 - gamma**shape))


def best_law(law, runs):
  """The law of the best of a random number of runs, and of none at all.

  Outcomes are in the order of their scores.
  """
  below = np.concatenate([[0.0], np.cumsum(law)])
  reached = runs(np.minimum(below, 1.0))
  return np.append(np.diff(reached), reached[0])


BINS = np.linspace(-6, 7, 200)


@pytest.mark.parametrize("shape", [None, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("mean", [2.0, 20.0])
def test_the_best_of_many_gaussian_runs(shape, mean):
  sigma, delta = 1.5, 1e-4
  edges = np.concatenate([[-np.inf], BINS, [np.inf]])
  laws = [np.diff(special.ndtr((edges - at) / sigma)) for at in (0.0, 1.0)]
  runs = generating(shape, mean)
  charged = repeat_and_select_epsilon(Gaussian(sigma), mean_runs=mean, delta=delta, shape=shape)
  once = composed_epsilon([Gaussian(sigma)], delta=delta)
  for order in (1, -1):
    pair = [best_law(law[::order], runs) for law in laws]
    assert abs(sum(pair[0]) - 1) < 1e-9
    assert exact.delta_of(*pair, charged) <= delta
    assert exact.delta_of(*pair, once) > delta  # one run's price is too low
