import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair.models import _probe

X = np.random.default_rng(0).standard_normal((2, 3), np.float32)


def changes(function, x=X):
  return _probe.changes(lambda _, x: function(x), (), (x,))


def test_nan_finds_a_coupling_that_is_multiplied_by_zero():
  assert "NaN" in changes(lambda x: x + 0.0 * x.mean())


def test_parameters_that_are_zero_are_probed_away_from_zero():
  """Comparisons stop NaN, so that only a scale other than zero shows it."""

  def apply(scale, x):
    return x + scale * jnp.where(x[::-1] > 0, 1.0, 0.0)

  zero = np.float32(0)
  assert "each other" in _probe.changes(apply, zero, (X,))


def test_given_values_are_probed_beside_random_ones():
  """Random normals never reach 40, the given rows do."""

  def apply(_, x):
    return x + jnp.where(jnp.abs(x).max() > 2000, 1.0, 0.0)

  assert _probe.changes(apply, (), (X,)) == ""
  assert _probe.changes(apply, (), (40 * np.ones_like(X),))


def test_given_parameters_are_probed_beside_random_ones():
  """A normal number is never above 50."""

  def apply(switch, x):
    return jnp.where(switch > 50, x[::-1], x)

  assert _probe.changes(apply, np.float32(0), (X,)) == ""
  assert _probe.changes(apply, np.float32(100), (X,))


@pytest.mark.parametrize("axis_end", [1, -1])
def test_both_ends_of_the_batch_are_kept_in_turn(axis_end):
  assert changes(lambda x: jnp.cumsum(x[::axis_end], axis=0)[::axis_end])


def test_slopes_into_other_rows_are_found():
  @jax.custom_vjp
  def leaky(x):
    return x

  leaky.defvjp(lambda x: (x, None), lambda _, g: (g + g.mean(0),))
  assert "slope in another row" in changes(leaky)


def test_a_gradient_that_others_scale_is_found():
  @jax.custom_vjp
  def scaled(x):
    return x

  scaled.defvjp(lambda x: (x, x.mean()), lambda mean, g: (g * (1 + mean),))
  assert "gradient changes" in changes(scaled)


def test_infinite_slopes_of_other_rows_are_no_alarm():
  assert changes(lambda x: jnp.sqrt(jnp.abs(x - x))) == ""


def test_rows_without_values_are_drawn():
  shape = jax.ShapeDtypeStruct((1, 3), jnp.float32)
  assert changes(lambda x: x - x.mean(0), shape)
  assert changes(jnp.tanh, shape) == ""


def size_matters(function, *shape):
  rows = jax.ShapeDtypeStruct(shape, jnp.float32)
  return _probe.size_matters(lambda _, x: function(x), (), (rows,))


def test_the_size_of_the_batch_matters():
  assert size_matters(lambda x: x / x.shape[0], 4, 3)
  assert size_matters(lambda x: x - x.mean(0), 4, 3)


def test_rounding_in_wide_layers_does_not():
  w = np.random.default_rng(0).standard_normal((2048, 512), np.float32)
  assert size_matters(lambda x: jnp.tanh(x @ w / 45) @ w.T, 4, 2048) == ""
