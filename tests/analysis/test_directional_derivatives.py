"""Derivatives along a direction, and work in chunks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import moved, people
from jaxfair import checks, models
from jaxfair.analysis._directional_derivatives import along, in_chunks

PEOPLE = people(6)
MODEL = models.logistic(3)


def test_slopes_and_curvatures_of_softmax_regression():
  params, ahead = moved(MODEL, PEOPLE), moved(MODEL, PEOPLE, 1.0)
  found = jax.jit(lambda p, v: along(MODEL, models.cross_entropy, p, PEOPLE, v))(params, ahead)
  f = np.asarray(jax.nn.softmax(MODEL.apply(params, PEOPLE.x)))
  z = np.asarray(MODEL.apply(ahead, PEOPLE.x))  # what the logits move by
  slope = np.sum((f - np.eye(3)[PEOPLE.y]) * z, axis=1)
  bend = np.sum(f * z**2, axis=1) - np.sum(f * z, axis=1) ** 2
  np.testing.assert_allclose(found.slopes, slope, rtol=1e-5)
  np.testing.assert_allclose(found.curvatures, bend, rtol=1e-4, atol=1e-5)
  np.testing.assert_allclose(found.losses, -np.log(f[np.arange(6), PEOPLE.y]), rtol=1e-5)


@pytest.mark.parametrize("size", [3, 100])
def test_chunks_change_nothing(size):
  rows = {"a": np.arange(10.0), "b": np.arange(20.0).reshape(10, 2)}
  found = in_chunks(lambda r: r["a"] + r["b"].sum(1), rows, size)
  np.testing.assert_array_equal(found, rows["a"] + rows["b"].sum(1))


def test_refuses_a_loss_that_takes_the_mean():
  with pytest.raises(checks.ArgumentError, match="one number per example"):
    along(
      MODEL,
      lambda z, y: jnp.mean(models.cross_entropy(z, y)),
      moved(MODEL, PEOPLE),
      PEOPLE,
      moved(MODEL, PEOPLE),
    )
