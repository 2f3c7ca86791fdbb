"""The trainable disparity against the plain one, and its gradient."""

import functools

import jax
import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.fairness import _confusion, _soft


def people(size=60):
  rng = np.random.default_rng(0)
  return rng.normal(size=(size, 3)).astype(np.float32), rng.integers(0, 2, size)


@pytest.mark.slow
def test_of_certain_predictions_it_is_the_largest_disparity():
  logits, groups = people()
  labels = logits.argmax(1)
  counts = _confusion.prediction_counts(
    labels, sensitive_features=groups, num_groups=2, num_classes=3
  )
  largest = float(fairness.demographic_disparity(counts).max())
  found = _soft.soft_disparity(
    np.eye(3, dtype=np.float32)[labels], groups, num_groups=2, temperature=1e-4
  )
  np.testing.assert_allclose(found, largest, atol=1e-5)


@pytest.mark.slow
def test_its_gradient_is_that_of_finite_differences():
  logits, groups = people(60)
  logits = logits.astype(np.float64)

  def value(scale):
    return _soft.soft_disparity(
      jax.nn.softmax(scale * logits), groups, num_groups=2, temperature=0.1
    )

  with jax.enable_x64(True):
    h = 1e-5
    both = jax.jit(jax.value_and_grad(value))
    slope = (both(1 + h)[0] - both(1 - h)[0]) / (2 * h)
    np.testing.assert_allclose(both(1.0)[1], slope, rtol=1e-5)


@pytest.mark.slow
def test_an_empty_group_neither_counts_nor_spoils_the_gradient():
  logits, groups = people()

  @functools.partial(jax.jit, static_argnums=2)
  @jax.value_and_grad
  def both(x, groups, num_groups):
    return _soft.soft_disparity(jax.nn.softmax(x), groups, num_groups=num_groups)

  two, three = (both(logits, groups, count) for count in (2, 3))
  np.testing.assert_allclose(two[0], three[0], rtol=1e-5)
  np.testing.assert_allclose(two[1], three[1], atol=1e-6)
  alone = both(logits, np.zeros_like(groups), 2)
  assert alone[0] == 0
  assert (np.asarray(alone[1]) == 0).all()
