"""Points: what is checked, and numbers that must not move."""

import numpy as np
import pytest
from scipy import stats

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _objectives


def test_what_is_equal_in_all_seeds_stays_that_number():
  # 0.1 + 0.1 + 0.1 over 3 is not 0.1 in floating point.
  points = frontier.points(np.full((1, 3, 4), 0.1))
  assert (points.means == 0.1).all()
  low, high = _objectives.bounds(points)
  assert (low == 0.1).all()
  assert (high == 0.1).all()


def test_bounds_are_students():
  rng = np.random.default_rng(0)
  values = rng.normal(size=(5, 7, 4))
  free = [_objectives.Objective(name, "low") for name in "abcd"]
  low, high = _objectives.bounds(frontier.points(values, free), level=0.9)
  expected = stats.t.interval(0.9, 6, loc=values.mean(1), scale=stats.sem(values, axis=1))
  np.testing.assert_allclose([low, high], expected, atol=1e-12)


def test_no_interval_leaves_what_is_possible():
  values = np.repeat([[[2.0, 0.1, 0.99, 1.0]]], 3, axis=1)
  values[0, :, 2] += [-0.05, 0.01, 0.01]
  low, high = _objectives.bounds(frontier.points(values))
  assert high[0, 2] == 1.0
  assert low[0, 2] < 0.9
  assert low[0, 3] == high[0, 3] == 1.0


def test_one_seed_has_means_and_no_bounds():
  points = frontier.points(np.arange(8.0).reshape(2, 4))
  assert points.values.shape == (2, 1, 4)
  low, _ = _objectives.bounds(points)
  assert np.isnan(low).all()


def test_settings_with_missing_seeds_are_refused_or_dropped_and_counted():
  values = np.ones((3, 2, 4))
  values[1, 0, 2] = np.nan
  with pytest.raises(ArgumentError, match=r'1 rows .* missing="drop"'):
    frontier.points(values)
  points = frontier.points(values, missing="drop")
  assert points.dropped == 1
  assert points.rows.tolist() == [0, 2]
  assert len(points.means) == 2


def test_an_infinite_epsilon_is_a_value():
  values = np.ones((2, 3, 4))
  values[1, :, 0] = np.inf  # not private
  assert frontier.points(values).means[1, 0] == np.inf
  values[1, 0, 0] = 1.0
  with pytest.raises(ArgumentError, match="infinite in some seeds"):
    frontier.points(values)


def test_wrong_shapes_and_directions_are_refused():
  with pytest.raises(ArgumentError, match=r"pass \(settings, seeds, 4\)"):
    frontier.points(np.ones((3, 2, 3)))
  with pytest.raises(ArgumentError, match="better='up' is not known"):
    frontier.points(np.ones((3, 1)), [_objectives.Objective("a", "up")])
  with pytest.raises(ArgumentError, match="did you mean epsilon"):
    frontier.points(np.ones((3, 4))).column("epsilom")


def test_costs_turn_what_should_be_high():
  turned = _objectives.costs(np.array([[1.0, 2.0]]), ["low", "high"])
  assert turned.tolist() == [[1.0, -2.0]]
