"""Whole Hessians of group losses, against matrices worked out by hand."""

import jax
import numpy as np
import pytest

from helpers.curved import KEY, people
from jaxfair import checks, models
from jaxfair.analysis._hessian import group_hessians
from jaxfair.models import _losses


def test_squared_loss_gives_the_second_moments_of_each_group():
  examples = people()
  targets = np.ones(examples.size, np.float32)
  model = models.logistic(1)
  params = model.init(KEY, examples.x[0])
  found = group_hessians(model, _losses.squared, params, examples._replace(y=targets), num_groups=3)
  # Flattened parameters are (b, w): inputs are (1, x).
  inputs = np.c_[np.ones(examples.size), examples.x]
  for a in (0, 1):
    own = inputs[examples.group == a]
    np.testing.assert_allclose(found.group[a], 2 * own.T @ own / len(own), rtol=1e-5, atol=1e-6)
  assert np.isnan(found.group[2]).all()
  everybody = 2 * inputs.T @ inputs / len(inputs)
  np.testing.assert_allclose(found.population, everybody, rtol=1e-5, atol=1e-6)


def test_refuses_a_model_that_is_too_large():
  model = models.mlp(1000, 2)
  examples = people(num_classes=2)
  params = jax.eval_shape(model.init, KEY, examples.x[0])
  with pytest.raises(checks.ArgumentError, match="at most 4000"):
    group_hessians(model, models.cross_entropy, params, examples, num_groups=2)
