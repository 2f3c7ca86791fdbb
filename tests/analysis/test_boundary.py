"""Closeness at its ends, and margins."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.analysis import closeness
from jaxfair.analysis._boundary import top_two_margin


def test_closeness_is_largest_when_all_classes_are_alike():
  logits = jnp.array([[0.0, 0.0, 0.0], [1e4, 0.0, 0.0], [1.0, 0.0, -1.0]])
  f = np.exp([1.0, 0.0, -1.0]) / np.exp([1.0, 0.0, -1.0]).sum()
  np.testing.assert_allclose(closeness(logits), [2 / 3, 0.0, 1 - np.sum(f**2)], rtol=1e-6)


def test_the_margin_is_between_the_best_two():
  scores = np.array([[0.1, 0.7, 0.2], [0.4, 0.2, 0.4]])
  np.testing.assert_allclose(top_two_margin(scores), [0.5, 0.0], atol=1e-6)
  with pytest.raises(checks.ArgumentError, match="two classes"):
    top_two_margin(np.ones((3, 1)))
