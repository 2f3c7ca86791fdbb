"""Surfaces by brute force; equal, shifted and unlike shapes."""

import itertools

import jax
import numpy as np
import pytest

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _objectives, _shapes

KEY = jax.random.key(1)
GRID = {"epsilon": [0.2, 0.5, 0.8, 1.0], "gap": [0.3, 0.6, 1.0]}


@pytest.fixture(scope="module")
def cloud():
  """[40, 4, 4] settings whose accuracy grows with epsilon and gap."""
  rng = np.random.default_rng(0)
  values = np.repeat(rng.random((40, 1, 4)), 4, axis=1)
  values[..., 2] = 0.5 + 0.2 * values[..., 0] + 0.2 * values[..., 1]
  values[..., 2] += 0.005 * rng.normal(size=(40, 4))
  return values


def test_a_surface_is_the_best_within_limits(cloud):
  points = frontier.points(cloud)
  found = _shapes.surface(points, GRID)
  assert found.shape == (4, 3)
  for i, j in itertools.product(range(4), range(3)):
    within = [
      mean[2]
      for mean in points.means
      if mean[0] <= GRID["epsilon"][i] and mean[1] <= GRID["gap"][j]
    ]
    expected = max(within, default=np.nan)
    np.testing.assert_allclose(found[i, j], expected, rtol=1e-12)
  assert np.isnan(_shapes.surface(points, {"epsilon": [-1.0]})).all()
  # Coverage is a lower limit, and epsilon a height that should be low.
  low = _shapes.surface(points, {"coverage": [0.9]}, height="epsilon")
  kept = points.means[points.means[:, 3] >= 0.9, 0]
  np.testing.assert_allclose(low, [kept.min()])


def test_equal_shapes_at_another_level(cloud):
  lower = cloud.copy()
  lower[..., 2] -= 0.1
  first, second = frontier.points(cloud), frontier.points(lower)
  found = _shapes.compare_shapes(first, second, GRID, key=KEY, draws=200)
  assert found.correlation.estimate == pytest.approx(1.0)
  assert found.apart.estimate == pytest.approx(0.0, abs=1e-9)
  assert found.shift.low < 0.1 < found.shift.high
  assert found.shift.high - found.shift.low < 0.02
  moved = _shapes.transfer(first, second, GRID, key=KEY, draws=200)
  assert moved.violated.estimate == 0.0
  assert moved.regret.estimate == pytest.approx(0.0, abs=1e-9)


def test_unlike_shapes_are_told_apart(cloud):
  other = cloud.copy()
  # Here a loose epsilon buys nothing, and a loose gap everything.
  other[..., 2] = 0.5 + 0.4 * other[..., 1]
  first, second = frontier.points(cloud), frontier.points(other)
  found = _shapes.compare_shapes(first, second, GRID, key=KEY, draws=200)
  assert found.correlation.high < 0.95
  assert found.apart.low > 0.02
  moved = _shapes.transfer(first, second, GRID, key=KEY, draws=200)
  assert moved.regret.low > 0.0


def test_a_choice_that_breaks_limits_elsewhere_is_counted(cloud):
  worse = cloud.copy()
  worse[..., 1] += 1.0  # every gap is beyond every limit
  found = _shapes.transfer(frontier.points(cloud), frontier.points(worse), GRID, key=KEY, draws=50)
  assert found.violated.estimate == 1.0
  assert np.isnan(found.regret.estimate)


def test_what_cannot_be_compared_is_said(cloud):
  points = frontier.points(cloud)
  with pytest.raises(ArgumentError, match="which is the height"):
    _shapes.surface(points, {"accuracy": [0.5]})
  with pytest.raises(ArgumentError, match="grid is empty"):
    _shapes.surface(points, {})
  with pytest.raises(ArgumentError, match="same settings"):
    _shapes.transfer(points, frontier.points(cloud[:5]), GRID, key=KEY)
  two = (_objectives.Objective("epsilon", "low"), _objectives.Objective("x", "low"))
  with pytest.raises(ArgumentError, match="objectives differ"):
    _shapes.compare_shapes(points, frontier.points(cloud[..., :2], two), GRID, key=KEY)


def test_limits_are_quantiles_that_end_with_none(cloud):
  first, second = frontier.points(cloud), frontier.points(cloud + 0.5)
  grid = _shapes.limit_grid(first, second, names=("gap", "coverage"), steps=4)
  both = np.concatenate([first.means, second.means])
  assert grid["gap"].shape == (4,)
  assert grid["gap"][-1] == both[:, 1].max()
  assert grid["coverage"][0] == both[:, 3].min()  # a lower limit
  for j, name in ((1, "gap"), (3, "coverage")):
    kept = (both[:, j, None] <= grid[name]).mean(0)
    shares = [0.25, 0.5, 0.75, 1] if name == "gap" else [0, 0.25, 0.5, 0.75]
    np.testing.assert_allclose(kept, shares, atol=0.02)
