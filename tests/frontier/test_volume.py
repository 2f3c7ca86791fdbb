"""Hypervolumes against counted cells, hand values and random points."""

import itertools

import numpy as np
import pytest

from jaxfair import frontier
from jaxfair.checks import ArgumentError


def counted(values, corner):
  """Unit cells of an integer lattice that some point dominates."""
  ranges = [range(end) for end in corner]
  return sum(
    bool((values <= np.array(cell)).all(axis=1).any()) for cell in itertools.product(*ranges)
  )


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
def test_it_counts_the_cells_of_a_lattice(dims):
  rng = np.random.default_rng(dims)
  for size in (1, 3, 25):
    values = rng.integers(0, 6, size=(size, dims))
    corner = rng.integers(3, 6, size=dims)
    found = frontier.hypervolume(values, ["low"] * dims, reference=corner)
    assert found == counted(values, corner)


def test_directions_and_hand_values():
  # Accuracy 0.9 at epsilon 1 and 0.95 at epsilon 3, up to epsilon 4.
  found = frontier.hypervolume(
    [[1, 0.9], [3, 0.95], [3.5, 0.9]], ["low", "high"], reference=[4, 0.5]
  )
  assert found == pytest.approx(2 * 0.4 + 1 * 0.45)


def test_four_dimensions_against_random_points():
  rng = np.random.default_rng(3)
  values = 1 - rng.dirichlet([1] * 4, size=60) ** 0.5
  exact = frontier.hypervolume(values, ["low"] * 4, reference=[1] * 4)
  drawn = rng.random((100_000, 4))
  hit = np.zeros(len(drawn), bool)
  for point in values:
    hit |= (point <= drawn).all(axis=1)
  # Five standard errors: a false alarm in 1.7 million.
  error = np.sqrt(exact * (1 - exact) / len(drawn))
  assert abs(hit.mean() - exact) < 5 * error


def test_points_beyond_the_reference_count_for_nothing():
  inside = [[1.0, 1.0]]
  outside = [[0.0, 3.0], [np.inf, 0.0], [2.0, 0.0]]
  kwargs = {"better": ["low", "low"], "reference": [2, 2]}
  assert frontier.hypervolume(inside + outside, **kwargs) == 1.0
  assert frontier.hypervolume(outside, **kwargs) == 0.0


def test_what_it_cannot_do_is_said():
  with pytest.raises(ArgumentError, match="4 at most"):
    frontier.hypervolume(np.ones((2, 5)), ["low"] * 5, reference=[2] * 5)
  with pytest.raises(ArgumentError, match="reference has 1 rows"):
    frontier.hypervolume(np.ones((2, 1)), ["low"], reference=[np.inf])
  with pytest.raises(ArgumentError, match="infinitely good"):
    frontier.hypervolume([[-np.inf]], ["low"], reference=[1])
