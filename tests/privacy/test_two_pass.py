"""Two passes: one loop body, a bound on what is released, and the choice between one and two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import layer_programs
from jaxfair import _jaxpr, checks, models
from jaxfair.privacy import _pass_choice, _taps, _two_pass
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.types import Examples, Model


def examples(count=3):
  x = np.float32(np.random.default_rng(0).normal(size=(count, 6, 4)))
  return Examples(x, np.zeros(count, np.int32), np.zeros(count, np.int32))


def dense_site(positions, height, width):
  """The one site of a product at several positions."""
  shape = jax.ShapeDtypeStruct((height, width), jnp.float32)
  one = jax.ShapeDtypeStruct((positions, height), jnp.float32)
  reading = _taps.read(lambda ls, x: jnp.sin(x @ ls[0]).sum(), [shape], one)
  return reading.sites[0], shape


@pytest.mark.parametrize(("positions", "height", "width"), [(9, 40, 30), (40, 3, 2)])
def test_the_bound_counts_the_roundings_of_the_sum(positions, height, width):
  """gamma of 4 T, of the entries summed for the norm, and of what is told, times S."""
  site, leaf = dense_site(positions, height, width)
  rng = np.random.default_rng(0)
  data, signal = (
    jnp.asarray(rng.normal(size=(5, positions, size)), jnp.float32) for size in (height, width)
  )
  squared, largest = jax.jit(lambda d, s: _two_pass._bounds([(site, d, s)], leaf, 7))(data, signal)
  data, signal = (np.asarray(v, np.float64) for v in (data, signal))
  exact = np.sum(np.einsum("nth,ntw->nhw", data, signal) ** 2, axis=(1, 2))
  sizes = np.sum(np.linalg.norm(data, axis=2) * np.linalg.norm(signal, axis=2), axis=1) ** 2
  np.testing.assert_allclose(squared, exact, rtol=1e-5)
  roundings = 4 * positions + height + width + 7
  assert (np.asarray(largest, np.float64) >= exact + roundings * 2.0**-24 * sizes * 0.999).all()
  assert (largest <= exact * (1 + 1e-5) + 2 * (roundings + 40) * 2.0**-24 * sizes).all()


def test_a_shift_is_bounded_by_the_sizes_of_what_it_adds_up():
  """Signals that cancel leave a small norm, and rounding as large as ever."""
  leaf = jax.ShapeDtypeStruct((2,), jnp.float32)
  one = jax.ShapeDtypeStruct((50, 2), jnp.float32)
  reading = _taps.read(lambda ls, x: jnp.sin(x - ls[0]).sum(), [leaf], one)
  signal = jnp.asarray(np.repeat([[1.0, 2.0], [-1.0, -2.0]], 25, axis=0)[None], jnp.float32)
  squared, largest = _two_pass._bounds([(reading.sites[0], signal, signal)], leaf, 0)
  assert squared[0] == 0
  sizes = 50.0**2 + 100.0**2
  assert 200 * 2.0**-24 * sizes <= largest[0] <= 400 * 2.0**-24 * sizes


def test_both_passes_are_rounds_of_one_loop():
  """Two programs would round differently, and no bound covers that."""
  params, apply = layer_programs.layers_in_a_scan()
  gradient = clipped_grad(
    Model(lambda key, x: None, apply), models.cross_entropy, l2_clip=1.0, method="two_pass"
  )
  program = jax.make_jaxpr(lambda p, e: gradient(p, e).total)(params, examples())
  outer = [e for e in program.eqns if e.primitive.name in ("scan", "while")]
  assert len(outer) == 1
  assert outer[0].params["length"] == 2
  inside = {id(e) for e in _jaxpr.equations(outer[0].params["jaxpr"])}
  products = [e for e in _jaxpr.equations(program) if e.primitive.name == "dot_general"]
  assert products
  assert all(id(e) in inside for e in products)


def test_the_gradient_of_the_second_pass_keeps_all_digits_of_short_numbers():
  weights = {"w": np.ones((4, 3), np.float32)}

  def apply(p, x):
    return (x.astype(jnp.bfloat16) @ p["w"].astype(jnp.bfloat16)).astype(jnp.float32).sum(1)

  gradient = clipped_grad(
    Model(lambda key, x: None, apply), models.cross_entropy, l2_clip=1.0, method="two_pass"
  )
  program = jax.make_jaxpr(lambda p, e: gradient(p, e).total)(weights, examples())
  sums = [
    e
    for e in _jaxpr.equations(program)
    if e.primitive.name == "dot_general" and sorted(e.outvars[0].aval.shape) == [3, 4]
  ]
  assert sums
  highest = (jax.lax.Precision.HIGHEST,) * 2
  for equation in sums:
    assert equation.outvars[0].aval.dtype == jnp.float32
    assert all(v.aval.dtype == jnp.float32 for v in equation.invars)
    assert equation.params["precision"] == highest


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_norms_are_those_of_the_released_numbers_in_short_types(dtype):
  """A norm of factors that were rounded once more is 6e-4 off, which is no bound."""
  rng = np.random.default_rng(0)
  params = {
    "v": np.float32(rng.normal(size=(4, 16))),
    "w": np.float32(rng.normal(size=(16, 8)) / 4),
  }

  def apply(p, x):
    hidden = jnp.tanh(x.astype(dtype) @ p["v"].astype(dtype))
    return (hidden @ p["w"].astype(dtype)).astype(jnp.float32).sum(1)

  model, people = Model(lambda key, x: None, apply), examples()

  def alone(mask, clip):
    gradient = clipped_grad(model, models.cross_entropy, l2_clip=clip, method="two_pass")
    return gradient(params, people, mask)

  def plain(x, y):
    return jax.grad(lambda p: models.cross_entropy(apply(p, x[None]), y[None])[0])(params)

  def sizes(sums):
    leaves = (np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(sums))
    return np.sqrt(sum(np.sum(leaf**2, axis=(1, 2)) for leaf in leaves))

  each = jax.jit(jax.vmap(alone, in_axes=(0, None)))
  whole, cut = (each(jnp.eye(3, dtype=bool), clip) for clip in (1e6, 1e-2))
  for found in (whole, cut):
    # The norms before clipping; of others than the one who takes part they are 0.
    np.testing.assert_allclose(np.sum(found.norms, axis=1), sizes(whole.total), rtol=1e-5)
  assert (sizes(cut.total) <= 1e-2 * (1 + 1e-6)).all()
  assert (sizes(cut.total) >= 1e-2 * 0.999).all()
  np.testing.assert_allclose(
    sizes(whole.total), sizes(jax.vmap(plain)(people.x, people.y)), rtol=2.0**-6
  )


@pytest.mark.parametrize("wrap", [lambda f: f, jax.checkpoint])
def test_two_passes_are_taken_where_one_would_fill_the_memory(wrap):
  params, apply = layer_programs.layers_in_a_scan(wrap)

  def one(leaves, x):
    return apply(dict(zip(sorted(params), leaves, strict=True)), x[None]).sum()

  shapes = [jax.ShapeDtypeStruct(params[k].shape, jnp.float32) for k in sorted(params)]
  reading = _taps.read(one, shapes, jax.ShapeDtypeStruct((6, 4), jnp.float32))
  held = _pass_choice.held_bytes((*reading.taps, *reading.sources), 1)
  # In three layers, at six positions: inputs of scale, w and v, signals of scale, w and b, v.
  # The shift needs no input.
  assert held == 4 * 3 * 6 * ((4 + 4 + 5) + (4 + 5 + 4))
  rematerialized = wrap is jax.checkpoint
  limit = _pass_choice.MOST_REMAT_LOOP_BYTES if rematerialized else _pass_choice.MOST_BYTES
  many = limit // held
  assert not _pass_choice.takes_two("auto", reading, many)
  assert _pass_choice.takes_two("auto", reading, many + 1)
  assert not _pass_choice.takes_two("ghost", reading, many + 1)
  assert _pass_choice.takes_two("two_pass", reading, 1)
  assert not _pass_choice.takes_two("two_pass", reading, 0)
  whole = reading._replace(whole=frozenset({0}))
  assert not _pass_choice.takes_two("two_pass", whole, many + 1)


@pytest.mark.slow
def test_infinite_activations_of_one_example_move_nothing():
  """Its weight is 0, and 0 times infinity is no number."""
  weights = {"w": np.ones((4, 3), np.float32)}
  model = Model(lambda key, x: None, lambda p, x: jnp.square(x.sum(1)) @ p["w"])
  gradient = clipped_grad(model, models.cross_entropy, l2_clip=1.0, method="two_pass")
  people = examples()
  people.x[1, 0] = 1e30
  found = gradient(weights, people)
  without = gradient(weights, people, jnp.array([True, False, True]))
  assert found.num_nonfinite == 1
  assert np.isfinite(found.total["w"]).all()
  assert found.total["w"].any()
  np.testing.assert_array_equal(found.total["w"], without.total["w"])


def test_an_unknown_method_is_refused_with_the_one_that_was_meant():
  with pytest.raises(checks.ArgumentError, match="did you mean two_pass"):
    clipped_grad(models.logistic(2), models.cross_entropy, l2_clip=1.0, method="twopass")
