"""Sites of a loss: which calls are read through, and which stay closed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair.privacy import _tapped_run, _taps

LEAF = jax.ShapeDtypeStruct((3, 2), jnp.float32)
ROW = jax.ShapeDtypeStruct((3,), jnp.float32)


def product(w, x):
  return x @ w


def with_jvp():
  """A product whose derivative is three times that of a product."""
  function = jax.custom_jvp(product)
  function.defjvp(lambda values, tangents: (product(*values), 3 * product(*tangents)))
  return function


def with_vjp():
  function = jax.custom_vjp(product)
  function.defvjp(
    lambda w, x: (product(w, x), (w, x)),
    lambda kept, signal: (3 * jnp.outer(kept[1], signal), kept[0] @ signal),
  )
  return function


def in_a_loop(w, x):
  def add(total, _):
    return total + product(w, x), None

  return jax.lax.scan(add, 0 * x[:2], length=2)[0]


def carried(w, x):
  """A parameter in the carry of a loop: after a round it may be anything."""

  def step(carry, _):
    w, total = carry
    return (jnp.sin(w), total + product(w, x)), None

  return jax.lax.scan(step, (w, 0 * x[:2]), length=2)[0][1]


def read(function):
  return _taps.read(lambda ls, x: function(ls[0], x).sum(), [LEAF], ROW)


@pytest.mark.parametrize("wrap", [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(f))])
def test_plain_calls_and_rematerialized_parts_are_read_through(wrap):
  found = read(wrap(product))
  assert [site.kind for site in found.sites] == ["dense"]
  assert not found.whole


def test_rounds_of_a_loop_share_a_site():
  found = read(in_a_loop)
  (site,) = found.sites
  assert (site.kind, site.loops, site.shares) == ("dense", (2,), True)
  assert [slot.shape for slot in found.taps] == [(2, 2)]
  assert not found.whole


def test_analyses_of_curvature_read_no_loops():
  found = _taps.read(lambda ls, x: in_a_loop(ls[0], x).sum(), [LEAF], ROW, plain=True)
  assert (found.sites, found.whole) == ((), {0})


def test_a_product_and_the_bias_added_to_it_have_one_signal():
  def function(leaves, x):
    return jnp.sin(x @ leaves[0] + leaves[1] + x[:2]).sum()

  bias = jax.ShapeDtypeStruct((2,), jnp.float32)
  found = _taps.read(function, [LEAF, bias], ROW)
  assert len(found.sites) == 2
  assert len(found.taps) == 1
  plain = _taps.read(function, [LEAF, bias], ROW, plain=True)
  assert len(plain.taps) == 2


def test_a_sum_that_is_used_twice_keeps_the_signals_apart():
  def function(leaves, x):
    product = x @ leaves[0]
    return (jnp.sin(product + leaves[1]) + product).sum()

  bias = jax.ShapeDtypeStruct((2,), jnp.float32)
  assert len(_taps.read(function, [LEAF, bias], ROW).taps) == 2


@pytest.mark.parametrize("make", [with_jvp, with_vjp, lambda: carried])
def test_custom_derivatives_and_carried_parameters_stay_closed(make):
  """A tap inside would see the derivative of what is computed, not theirs."""
  found = read(make())
  assert found.sites == ()
  assert found.whole == {0}


def test_evaluating_with_taps_of_zero_changes_nothing():
  def function(leaves, x):
    return jax.checkpoint(product)(leaves[0], x).sum()

  rng = np.random.default_rng(0)
  w, x = np.float32(rng.normal(size=(3, 2))), np.float32(rng.normal(size=3))
  found = _taps.read(function, [LEAF], ROW)
  zeros = [jnp.zeros(site.output.shape) for site in found.sites]
  value, (data,) = _tapped_run.evaluate(found, [w], zeros, x)
  np.testing.assert_allclose(value, (x @ w).sum(), rtol=1e-6)
  np.testing.assert_array_equal(data, x)
