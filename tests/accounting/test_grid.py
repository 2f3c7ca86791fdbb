"""Gaussian noise on a grid: priced against the discrete law itself."""

import math

import numpy as np
import pytest
from scipy import special

from jaxfair import accounting
from jaxfair.accounting import _gaussian, _grid
from jaxfair.privacy import grid


def hockey_stick(steps, shift, epsilon):
  """Of discrete Gaussians whose means are `shift` apart, by summation."""
  n = np.arange(-30 * steps, 30 * steps + 1, dtype=float)
  log_p = -(n**2) / (2 * steps**2)
  log_p -= special.logsumexp(log_p)
  loss = (2 * n * shift + shift**2) / (2 * steps**2)
  return float(np.sum(np.exp(log_p) * np.maximum(0, -np.expm1(epsilon - loss))))


@pytest.mark.parametrize("multiplier", [0.7, 1.0, 4.0])
def test_the_event_covers_the_discrete_law_at_every_epsilon(multiplier):
  steps = 400
  shift = round(steps / multiplier)
  extra = _grid.grid_delta(noise_multiplier=multiplier, distance=grid.distance(1, steps=steps))
  assert extra < 0.01
  for epsilon in np.linspace(0, 30, 31):
    smooth = math.exp(_gaussian._log_delta(1 / multiplier, epsilon))
    assert hockey_stick(steps, shift, epsilon) <= extra + (1 - extra) * smooth


@pytest.mark.parametrize("multiplier", [4.0, 40.0])
def test_no_less_than_the_distance_is_added(multiplier):
  """At epsilon 0 two laws, each that far from its own, differ by twice that."""
  extra = _grid.grid_delta(noise_multiplier=multiplier, distance=1e-9)
  assert 2e-9 <= extra < 1e-6


def test_the_grid_adds_next_to_nothing():
  event = _grid.grid_gaussian(noise_multiplier=2.0, distance=grid.distance(10_000))
  gaussian, extra = event.events
  assert gaussian == accounting.Gaussian(2.0)
  assert 0 < extra.delta < 1e-15
  on_grid, plain = (
    accounting.composed_guarantee(
      [e, e, e], delta=1e-6, relation=accounting.Relation.REPLACE_ONE
    ).epsilon
    for e in (event, gaussian)
  )
  assert plain <= on_grid <= plain * (1 + 1e-8)


def test_with_hardly_any_noise_the_discrete_bound_is_charged():
  event = _grid.grid_gaussian(noise_multiplier=0.1, distance=grid.distance(100))
  assert isinstance(event, accounting.ZCdp)
  assert 50.0 <= event.rho < 50.001


def test_spent_delta_is_taken_off():
  distance = 1e-9
  sigma = accounting.grid_sigma(epsilon=1.0, delta=1e-7, distance=distance)
  left = 1e-7 - (1 + math.e) * distance
  assert sigma == accounting.gaussian_sigma(epsilon=1.0, delta=left)
  discrete = accounting.discrete_gaussian_sigma(epsilon=1.0, delta=1e-7)
  assert sigma < discrete
  far = accounting.grid_sigma(epsilon=1.0, delta=1e-7, distance=1e-7)
  assert far == discrete
  huge = accounting.grid_sigma(epsilon=1e6, delta=1e-5, distance=1e-20)
  assert huge == accounting.discrete_gaussian_sigma(epsilon=1e6, delta=1e-5)


def test_a_spent_delta_counts_in_closed_form():
  events = [accounting.Gaussian(1.5), accounting.ApproxDp(0.0, 4e-6)]
  found = accounting.composed_guarantee(
    events, delta=1e-5, relation=accounting.Relation.REPLACE_ONE
  )
  assert found.accountant == "exact Gaussian"
  expected = _gaussian.gaussian_epsilon(sigma=1.5, delta=6e-6)
  assert found.epsilon == pytest.approx(expected, rel=1e-9)
