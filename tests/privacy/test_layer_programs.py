"""Loops, rematerialized layers, grouped convolutions, heads and short numbers, by every method."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import layer_programs as programs
from helpers import quick_compile
from jaxfair.privacy import _taps
from jaxfair.privacy._clipping import SlowClippingWarning, clipped_grad
from jaxfair.types import Examples, Model

COUNT = 3
ALL = programs.PROGRAMS | programs.SLOW


def loss(logits, y):
  return jax.nn.logsumexp(logits, axis=-1) - logits[jnp.arange(len(y)), y]


def people():
  x = np.random.default_rng(5).normal(size=(COUNT, programs.LENGTH, programs.WIDTH))
  y = np.arange(COUNT) % 2
  return Examples(np.float32(x), np.int32(y), np.int32(y))


@functools.cache
def in_float64(name):
  """[n, ...] per-example gradients."""
  params, apply = ALL[name]()

  def one(p, x, y):
    return loss(apply(p, x[None]), y[None])[0]

  with jax.enable_x64(True):
    wide = jax.tree.map(np.float64, params)
    gradient = jax.jit(
      jax.vmap(jax.grad(one), in_axes=(None, 0, 0)), compiler_options=quick_compile.OPTIONS
    )
    return jax.device_get(gradient(wide, np.float64(people().x), people().y))


def norms_of(stacked):
  return np.sqrt(sum(np.sum(v.reshape(len(v), -1) ** 2, 1) for v in jax.tree.leaves(stacked)))


def found_by(name, method):
  """Gradients in float64, the clip, and what each person alone and everybody adds up to."""
  params, apply = ALL[name]()
  exact = in_float64(name)
  clip = 0.9 * float(np.median(norms_of(exact)))
  masks = jnp.concatenate([jnp.eye(COUNT, dtype=bool), jnp.ones((1, COUNT), bool)])

  @functools.partial(jax.jit, compiler_options=quick_compile.OPTIONS)
  def run(params, examples):
    gradient = clipped_grad(Model(lambda key, x: None, apply), loss, l2_clip=clip, method=method)
    return jax.vmap(lambda mask: gradient(params, examples, mask))(masks)

  found = run(params, people())
  return exact, clip, jax.tree.map(lambda v: np.asarray(v, np.float64), found)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "two_pass"])
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_gradients_are_those_of_float64_and_nothing_is_built(name, method):
  with warnings.catch_warnings():
    warnings.simplefilter("error", SlowClippingWarning)
    exact, clip, found = found_by(name, method)
  sizes = norms_of(exact)
  np.testing.assert_allclose(found.norms[-1], sizes, rtol=2e-5, atol=2e-5 * clip)
  factor = np.minimum(1, clip / sizes)
  for parts, goal in zip(jax.tree.leaves(found.total), jax.tree.leaves(exact), strict=True):
    weighted = goal * factor.reshape(-1, *(1,) * (goal.ndim - 1))
    # Clipped gradients are shortened by what rounding may have hidden: of the some hundred numbers
    # behind these norms.
    np.testing.assert_allclose(parts[:COUNT], weighted, rtol=2e-4, atol=2e-5 * clip)
    np.testing.assert_allclose(parts[-1], weighted.sum(0), rtol=2e-4, atol=4e-5 * clip)
  assert norms_of(jax.tree.map(lambda v: v[:COUNT], found.total)).max() <= clip * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", programs.SLOW)
def test_slices_of_a_repeated_parameter_are_one_parameter(name):
  """The sum of their squared norms is not the squared norm of their sum."""
  with pytest.warns(SlowClippingWarning, match=r"\['b'\]"):
    exact, _, found = found_by(name, "two_pass")
  np.testing.assert_allclose(found.norms[-1], norms_of(exact), rtol=2e-5)


def test_what_has_no_rule_is_built_whole():
  def function(leaves, x):
    found = jax.lax.conv_general_dilated(
      x, leaves[0], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), batch_group_count=2
    )
    return jnp.sin(found).sum()

  kernel = jax.ShapeDtypeStruct((3, 4, 2), jnp.float32)
  reading = _taps.read(function, [kernel], jax.ShapeDtypeStruct((2, 6, 4), jnp.float32))
  assert (reading.sites, reading.whole) == ((), {0})
