"""Gradients of kernels, a few examples at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import _jaxpr
from jaxfair.privacy import _conv_factors, _taps
from jaxfair.privacy._one_pass import one_pass_sums

CHANNELS, OUT = 3, 5


def loss(leaves, x):
  (kernel,) = leaves
  found = jax.lax.conv_general_dilated(
    x[None], kernel, (2, 1), [(0, 1), (2, 0)], dimension_numbers=("NHWC", "HWIO", "NHWC")
  )
  return jnp.sum(jnp.sin(found))


def sums(x, kernel):
  """One total for each example, as a training would clip them: with weights that are told apart."""
  reading = _taps.read(loss, [kernel], jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
  weights = jnp.arange(1.0, 1 + len(x))

  def weigh(squared, largest):
    return weights[None], jnp.sqrt(squared[0]), ~jnp.isfinite(largest[0])

  found = one_pass_sums(reading, [kernel], x, weigh)
  return found.totals[0], found.norms


@pytest.mark.parametrize(("count", "at_a_time"), [(6, 2), (7, 3)])
def test_chunks_are_those_of_every_example(monkeypatch, count, at_a_time):
  draw = np.random.default_rng(count)
  x = jnp.asarray(draw.normal(size=(count, 9, 8, CHANNELS)), jnp.float32)
  kernel = jnp.asarray(draw.normal(size=(3, 3, CHANNELS, OUT)), jnp.float32)
  patches = 4 * 8 * 9 * CHANNELS * 4  # bytes of one example
  monkeypatch.setattr(_conv_factors, "PATCHES", at_a_time * patches)
  each = jax.vmap(jax.grad(lambda k, one: loss([k], one)), (None, 0))(kernel, x)
  total, norms = sums(x, kernel)
  np.testing.assert_allclose(norms, jnp.sqrt(jnp.sum(each**2, (1, 2, 3, 4))), rtol=1e-5)
  weighted = jnp.tensordot(jnp.arange(1.0, 1 + count), each, 1)
  np.testing.assert_allclose(total, weighted, rtol=1e-5, atol=1e-4)


def test_patches_of_all_examples_are_never_there():
  x = jnp.zeros((64, 32, 32, CHANNELS))
  program = jax.make_jaxpr(sums)(x, jnp.zeros((3, 3, CHANNELS, OUT)))
  largest = max(
    out.aval.size for equation in _jaxpr.equations(program.jaxpr) for out in equation.outvars
  )
  results = 64 * 16 * 32 * OUT  # the largest arrays of the plain gradient, or the images
  assert largest <= 1.2 * max(results, x.size)


@pytest.mark.parametrize(
  ("n", "most", "size"), [(256, 37, 32), (341, 37, 31), (257, 5, 5), (7, 100, 7)]
)
def test_chunks_divide_the_examples_where_they_can(n, most, size):
  assert _conv_factors._chunk_size(n, most) == size


def test_only_a_cpu_goes_chunk_by_chunk(monkeypatch):
  x, kernel = jnp.ones((6, 9, 8, CHANNELS)), jnp.ones((3, 3, CHANNELS, OUT))
  monkeypatch.setattr(_conv_factors, "PATCHES", 1)

  def loops():
    traced = jax.make_jaxpr(lambda people: sums(people, kernel))(x)
    return [one for one in _jaxpr.equations(traced) if one.primitive.name == "scan"]

  assert loops()
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
  assert not loops()
