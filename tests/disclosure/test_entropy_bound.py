"""Proposition 7.1: the entropy that a core set leaves."""

import math

import jax
import numpy as np
import pytest

from jaxfair import checks, disclosure
from jaxfair.disclosure import _beliefs


def test_hand_values():
  assert disclosure.entropy_bound(0.0) == 0
  quarter = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
  assert disclosure.entropy_bound(0.25) == pytest.approx(quarter, rel=1e-6)
  # Three classes: probabilities 0.8, 0.1, 0.1.
  three = -0.8 * math.log(0.8) - 0.2 * math.log(0.1)
  assert disclosure.entropy_bound(0.2, num_classes=3) == pytest.approx(three, rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_no_label_with_a_core_set_is_more_uncertain(classes):
  rng = np.random.default_rng(0)
  rest = rng.dirichlet(np.full(classes - 1, 3.0), 2000)
  failure = rng.uniform(0, 0.3, (2000, 1))
  drawn = np.concatenate([1 - failure, failure * rest], axis=1)
  found = np.asarray(_beliefs.entropy(drawn))
  bound = float(disclosure.entropy_bound(0.3, num_classes=classes))
  assert found.max() <= bound + 1e-6
  assert found.max() > 0.95 * bound


def test_it_rises_with_delta_at_the_rate_of_its_derivative():
  deltas = np.linspace(0.01, 0.49, 25)
  bounds = disclosure.entropy_bound(deltas, num_classes=4)
  assert np.all(np.diff(bounds) > 0)
  slope = jax.vmap(jax.grad(lambda d: disclosure.entropy_bound(d, num_classes=4)))(deltas)
  np.testing.assert_allclose(slope, np.log((1 - deltas) * 3 / deltas), rtol=1e-5)
  assert jax.grad(disclosure.entropy_bound)(0.0) == math.inf


@pytest.mark.parametrize("delta", [-0.1, 0.5])
def test_other_deltas_are_refused(delta):
  with pytest.raises(checks.ArgumentError, match="delta"):
    disclosure.entropy_bound(delta)
