"""Probabilities of being on the frontier, against laws that are known."""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _attaining, _objectives

KEY = jax.random.key(0)
TWO = (_objectives.Objective("cost", "low"), _objectives.Objective("value", "high"))


def test_settings_far_apart_are_certain(four):
  found = frontier.attainment(four, key=KEY, draws=200)
  assert found.on.tolist() == [True, True, True, False]
  assert found.probability.tolist() == [1.0, 1.0, 1.0, 0.0]


def test_a_draw_of_two_seeds_has_three_outcomes():
  # The second is 2 better in one seed and 1 worse in the other: its mean is
  # better unless the worse seed is drawn twice, which is one draw in four.
  values = np.zeros((2, 2, 2))
  values[1, :, 1] = [2.0, -1.0]
  draws = 4000
  found = frontier.attainment(frontier.points(values, TWO), key=KEY, draws=draws)
  limit = 5 * np.sqrt(0.25 * 0.75 / draws)
  np.testing.assert_allclose(found.probability, [0.25, 0.75], atol=limit)


def test_equal_settings_are_on_it_together():
  values = np.repeat(np.random.default_rng(0).random((1, 5, 2)), 3, axis=0)
  found = frontier.attainment(frontier.points(values, TWO), key=KEY, draws=50)
  assert found.probability.tolist() == [1.0] * 3


def test_a_draw_takes_every_seed_alike(four):
  weights = _attaining.seed_weights(four, 3000, key=KEY)
  assert weights.shape == (3000, 3)
  np.testing.assert_allclose(weights.sum(1), 1.0)
  counts = np.bincount(np.rint(3 * weights[:, 0]).astype(int), minlength=4)
  law = stats.binom.pmf(range(4), 3, 1 / 3) * 3000
  assert stats.chisquare(counts, law).pvalue > 1e-6


def test_all_draws_are_one_program(four):
  _attaining._counted.clear_cache()
  for seed in range(3):
    frontier.attainment(four, key=jax.random.key(seed), draws=20)
  assert _attaining._counted._cache_size() == 1


def test_a_key_is_needed(four):
  with pytest.raises(ArgumentError, match="random key"):
    frontier.attainment(four, key=0)
