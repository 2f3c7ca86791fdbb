"""Numbers of groups and of everybody."""

import numpy as np

from jaxfair.analysis._by_group import ByGroup, mean_by_group, weights_by_group

VALUES = np.array([1.0, 2.0, 6.0], np.float32)
GROUP = np.array([0, 0, 1])


def test_means_gaps_and_an_empty_group():
  found = mean_by_group(VALUES, GROUP, 3)
  np.testing.assert_allclose(found.group, [1.5, 6.0, np.nan])
  np.testing.assert_allclose(found.population, 3.0)
  np.testing.assert_allclose(found.gap, [1.5, 3.0, np.nan])


def test_gaps_of_many_trainings():
  stacked = ByGroup(np.array([[1.0, 5.0], [2.0, 2.0]]), np.array([3.0, 2.0]))
  np.testing.assert_allclose(stacked.gap, [[2.0, 2.0], [0.0, 0.0]])


def test_weights_give_the_same_means():
  found = mean_by_group(VALUES, GROUP, 3)
  expected = np.append(found.group, found.population)
  np.testing.assert_allclose(weights_by_group(GROUP, 3) @ VALUES, expected, rtol=1e-6)
