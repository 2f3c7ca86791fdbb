"""Programs at the edges of what clipping reads: types, modes, empty shapes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.quick_compile import as_users
from jaxfair import _jaxpr, checks, models, training, tree
from jaxfair.privacy import _taps
from jaxfair.privacy._clip_factors import weights_of
from jaxfair.privacy._clipping import SlowClippingWarning, clipped_grad
from jaxfair.types import Examples, Model


def examples_of(x, y=None):
  count = len(x)
  y = jnp.zeros(count, jnp.int32) if y is None else jnp.asarray(y)
  return Examples(jnp.asarray(x), y, jnp.zeros(count, jnp.int32))


def sums_of(model, loss, params, x, clip, method="ghost"):
  """Totals of one person each: float64 trees."""

  def alone(params, examples, mask):
    gradient = clipped_grad(model, loss, l2_clip=clip, method=method)
    return gradient(params, examples, mask).total

  with warnings.catch_warnings():
    warnings.simplefilter("ignore", SlowClippingWarning)
    totals = as_users(jax.vmap(alone, in_axes=(None, None, 0)))(
      params, examples_of(x), jnp.eye(len(x), dtype=bool)
    )
  return people_in_float64(totals, len(x))


def people_in_float64(stacked, count):
  wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), stacked)
  return [tree.take(wide, i) for i in range(count)]


def norm(total):
  return np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(total)))


def first(logits, y):
  del y
  return logits[:, 0]


def plain_gradients(model, loss, params, x):
  """Gradients of one person each, by jax.grad: float64 trees."""

  def one(p, row):
    return loss(model.apply(p, row[None]), jnp.zeros(1, jnp.int32))[0]

  found = as_users(jax.vmap(jax.grad(one), in_axes=(None, 0)))(params, x)
  return people_in_float64(found, len(x))


def table_model(mode, height, width=3):
  """Looks up ids as they come, without jnp's promotion to int32."""
  numbers = jax.lax.GatherDimensionNumbers(
    offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,)
  )
  rng = np.random.default_rng(0)
  scale = rng.normal(size=width).astype(np.float32)

  def apply(params, ids):
    found = jax.lax.gather(
      params["table"], ids[..., None], numbers, (1, width), mode=mode, fill_value=0
    )
    return jnp.sin(found * scale).sum((1, 2))[:, None]

  table = jnp.asarray(rng.normal(size=(height, width)), jnp.float32)
  return Model(lambda key, x: {"table": table}, apply), {"table": table}, scale


def table_gradients(mode, table, scale, ids):
  """Gradients of one person each, by hand: a person has two rows, fewer where ids are outside."""
  table = np.asarray(table, np.float64)
  for own in ids.astype(np.int64):
    inside = (own >= 0) & (own < len(table))
    rows = np.clip(own, 0, len(table) - 1) if mode == "clip" else own[inside]
    gradient = np.zeros(table.shape)
    np.add.at(gradient, rows, np.cos(table[rows] * scale) * scale)
    yield gradient


IDS = {
  "uint8": [[0, 3], [255, 255], [44, 255]],
  "int8": [[0, 3], [127, 127], [-1, 5]],
  "uint16": [[0, 3], [65535, 65535], [44, 65535]],
  "int16": [[0, 3], [32767, 32767], [-7, 300]],
  "uint32": [[0, 3], [2**32 - 1, 255], [2**31, 299]],
  "int32": [[0, 3], [-(2**31), 2**31 - 1], [-1, 255]],
}


@pytest.mark.parametrize("dtype", sorted(IDS))
@pytest.mark.parametrize("height", [255, 256, 300, 65537])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_row_numbers_of_every_type_and_table(dtype, height, mode):
  """Short ids used to wrap: one person moved the sum by 3.3 clip bounds."""
  model, params, scale = table_model(mode, height)
  ids = np.array(IDS[dtype]).astype(dtype)
  alone = sums_of(model, first, params, ids, 0.5)
  by_hand = table_gradients(mode, params["table"], scale, ids)
  for found, plain in zip(alone, by_hand, strict=True):
    size = norm(plain)
    assert norm(found) <= 0.5 * (1 + 1e-6)
    factor = min(1.0, 0.5 / size) if size else 1.0
    # Of a few hundred to 65,537 rows: see `hidden_by_rounding`.
    np.testing.assert_allclose(found["table"], factor * plain, rtol=2.0**-12)


def short_model(kind, dtype):
  rng = np.random.default_rng(0)
  w = jnp.asarray(rng.normal(size=(40, 30)), jnp.float32)
  numbers = (((1,), (0,)), ((), ()))

  def apply(params, x):
    match kind:
      case "result":  # float32 in, short out
        h = jax.lax.dot_general(x, params["w"], numbers, preferred_element_type=dtype)
      case "data":  # short data, float32 weights
        h = jax.lax.dot_general(
          x.astype(dtype), params["w"], numbers, preferred_element_type=jnp.float32
        )
      case "weights":
        h = x.astype(dtype) @ params["w"].astype(dtype)
      case "bias":
        h = (x[:, :30].astype(dtype) + params["w"][0].astype(dtype)) * 3
      case "complex":
        h = jnp.abs((x * 1j) @ params["w"])
    return jnp.sum(h.astype(jnp.float32) ** 2 / 256, axis=1)[:, None]

  return Model(lambda key, x: {"w": w}, apply), {"w": w}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["result", "data", "weights", "bias"])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("size", [1.0, 300.0])
def test_short_numbers_inside_a_model(kind, dtype, size):
  """bfloat16 exceeded the bound by 0.1%; float16 squares became 0."""
  model, params = short_model(kind, dtype)
  rng = np.random.default_rng(1)
  x = np.float32(size * rng.normal(size=(4, 40)))
  plain = plain_gradients(model, first, params, x)
  for clip in (1e-3, 1e6):
    alone = sums_of(model, first, params, x, clip)
    for found, gradient in zip(alone, plain, strict=True):
      assert norm(found) <= clip * (1 + 1e-6)
      factor = min(1.0, clip / norm(gradient))
      # The compiler may keep more digits than the type has.
      apart = np.linalg.norm(found["w"] - factor * gradient["w"])
      assert apart <= 2.0**-6 * factor * norm(gradient)


@pytest.mark.slow
def test_complex_numbers_inside_a_model_are_differentiated_plainly():
  model, params = short_model("complex", None)
  x = np.float32(np.random.default_rng(1).normal(size=(2, 40)))
  alone = sums_of(model, first, params, x, 1e6)
  for found, gradient in zip(alone, plain_gradients(model, first, params, x), strict=True):
    np.testing.assert_allclose(found["w"], gradient["w"], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_a_loss_without_data_has_the_gradient_that_everybody_shares(method):
  def apply(params, x):
    return jnp.broadcast_to(jnp.sum(params["a"] ** 2), (x.shape[0], 1))

  model = Model(lambda key, x: None, apply)
  params = {"a": jnp.arange(1.0, 4.0), "b": jnp.float32(2.0)}
  for found in sums_of(model, first, params, np.ones((2, 1)), 1e6, method):
    np.testing.assert_allclose(found["a"], [2.0, 4.0, 6.0])
    assert found["b"] == 0
  itself = Model(lambda key, x: None, lambda p, x: jnp.broadcast_to(p["b"], (x.shape[0], 1)))
  for found in sums_of(itself, first, params, np.ones((2, 1)), 0.5, method):
    assert 0.4999 < found["b"] <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_empty_parameters_and_empty_batches(method):
  def apply(params, x):
    h = jnp.tanh(x @ params["empty"]) @ params["none"] + x @ params["w"]
    return h + params["nothing"].sum()

  params = {
    "empty": jnp.zeros((3, 0)),
    "none": jnp.zeros((0, 2)),
    "w": jnp.ones((3, 2)),
    "nothing": jnp.zeros(0),
  }
  model = Model(lambda key, x: params, apply)
  x = np.ones((2, 3), np.float32)
  for found in sums_of(model, first, params, x, 1e6, method):
    assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in params.items()}
    np.testing.assert_allclose(found["w"], [[1, 0]] * 3)
  gradient = clipped_grad(model, first, l2_clip=1.0, method=method)
  nobody = gradient(params, examples_of(x[:0]))
  assert nobody.norms.shape == (0,)
  assert not nobody.total["w"].any()


@pytest.mark.slow
def test_rematerialized_layers_have_the_fast_rule():
  def layer(w, x):
    return jnp.tanh(x @ w)

  def model_of(wrap):
    def apply(params, x):
      h = wrap(layer)(params["a"], x)
      return wrap(layer)(params["b"], h)

    return Model(lambda key, x: None, apply)

  rng = np.random.default_rng(0)
  params = {
    "a": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32),
    "b": jnp.asarray(rng.normal(size=(4, 2)), jnp.float32),
  }
  x = np.float32(rng.normal(size=(3, 3)))
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    again, once = (
      clipped_grad(model_of(wrap), first, l2_clip=0.1)(params, examples_of(x))
      for wrap in (jax.checkpoint, lambda f: f)
    )
  np.testing.assert_allclose(again.norms, once.norms, rtol=1e-6)
  for name in params:
    np.testing.assert_allclose(again.total[name], once.total[name], rtol=1e-5, atol=1e-8)


def test_a_transpose_that_changes_nothing_is_read_as_such():
  """A matrix of 3 x 3 would pass every check of shapes."""

  def apply(params, x):
    w = jax.lax.transpose_p.bind(params["w"], permutation=(0, 1))
    return jnp.tanh(x @ w)

  rng = np.random.default_rng(0)
  w = jnp.asarray(rng.normal(size=(3, 3)), jnp.float32)
  model = Model(lambda key, x: None, apply)
  x = np.float32(rng.normal(size=(2, 3)))
  for found, plain in zip(
    sums_of(model, first, {"w": w}, x, 1e6), plain_gradients(model, first, {"w": w}, x), strict=True
  ):
    np.testing.assert_allclose(found["w"], plain["w"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_parameters_that_are_numpy_arrays_of_float64(method):
  params = {"w": np.ones((3, 2))}
  model = Model(lambda key, x: None, lambda p, x: x @ p["w"])
  (found,) = sums_of(model, first, params, np.ones((1, 3)), 1e6, method)
  np.testing.assert_allclose(found["w"], [[1, 0]] * 3)


@pytest.mark.parametrize(
  ("params", "told"),
  [
    ({"w": jnp.ones((3, 2), jnp.bfloat16)}, "bfloat16 numbers, whose precision is too low"),
    ({"w": jnp.ones((3, 2), jnp.float8_e4m3fn)}, "precision is too low"),
    ({"w": jnp.ones((3, 2), jnp.complex64)}, "complex64 numbers, which have"),
    ({"w": jnp.ones((3, 2), jnp.int32)}, "int32 numbers, which have"),
    ({}, "params hold no arrays"),
  ],
)
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_parameters_that_are_refused(params, told, method):
  model = Model(lambda key, x: None, lambda p, x: x)
  gradient = clipped_grad(model, first, l2_clip=1.0, method=method)
  with pytest.raises(checks.ArgumentError, match=told):
    gradient(params, examples_of(np.ones((2, 3), np.float32)))


@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_64_bit_mode_is_refused_at_the_door(method):
  model = models.logistic(3)
  x = np.ones((8, 3), np.float32)
  with jax.enable_x64(True):
    with pytest.raises(checks.ArgumentError, match=r"jax.enable_x64\(False\)"):
      clipped_grad(model, first, l2_clip=1.0, method=method)
    config = training.DpSgdConfig(steps=1, batch_size=4, method=method)
    with pytest.raises(checks.ArgumentError, match=r"jax.enable_x64\(False\)"):
      config.check(model, first, examples_of(x))


def test_a_norm_that_cannot_be_bounded_leaves_the_example_out():
  """Whatever the bound on its norm is, not a number must not mean 1."""
  squared = jnp.array([[4.0, 4.0, 4.0]])
  largest = jnp.array([[4.0, jnp.nan, jnp.inf]])
  everybody = jnp.ones(3, bool)
  weights, _, bad = weights_of(
    squared,
    largest,
    {"w": jnp.zeros(1)},
    l2_clip=1.0,
    per_layer=False,
    rule="clip",
    mask=everybody,
    finite=everybody,
  )
  assert bad.tolist() == [False, True, True]
  assert weights[0, 1:].tolist() == [0, 0]
  assert 0.499 < weights[0, 0] < 0.5


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64])
def test_casts_of_parameters_are_read_through_and_complex_numbers_are_not(dtype):
  shapes = [jax.ShapeDtypeStruct((3, 2), jnp.float32)]
  one = jax.ShapeDtypeStruct((1, 3), dtype)

  def function(leaves, x):
    return jnp.sum(jnp.abs(x @ leaves[0].astype(dtype)))

  reading = _taps.read(function, shapes, one)
  fast = dtype != jnp.complex64
  assert [site.kind for site in reading.sites] == ["dense"] * fast
  assert (reading.whole == {0}) != fast
  plain = _taps.read(function, shapes, one, plain=True)
  assert (plain.whole == {0}) == (dtype != jnp.float32)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_factors_of_short_numbers_are_stored_before_they_are_cast(dtype):
  """Otherwise the compiler may give a norm other digits than the sum that it bounds."""
  model, params = short_model("weights", dtype)
  gradient = clipped_grad(model, first, l2_clip=1.0)
  program = jax.make_jaxpr(gradient)(params, examples_of(np.ones((2, 40), np.float32)))
  found = list(_jaxpr.equations(program))
  stored = [e for e in found if e.primitive.name == "optimization_barrier"]
  assert sum(v.aval.dtype == dtype for e in stored for v in e.outvars) == 2
  sums = [e for e in found if e.primitive.name == "dot_general"]
  assert any(e.outvars[0].aval.shape[-2:] == (40, 30) for e in sums)
  for equation in sums:
    if equation.outvars[0].aval.shape[-2:] == (40, 30):
      assert {v.aval.dtype for v in (*equation.invars, *equation.outvars)} == {
        jnp.dtype(jnp.float32)
      }


def tall_look_up(table, rows):
  numbers = jax.lax.GatherDimensionNumbers((rows.ndim,), (0,), (0,))
  return jax.lax.gather(table, rows[..., None], numbers, (1, 1), mode="clip")


@pytest.mark.parametrize("method", ["ghost", "two_pass", "vmap"])
def test_short_row_numbers_of_a_tall_table(method):
  # XLA's older emitters, which tests compile with, compare them with a height in their own type.
  model = Model(None, lambda p, x: jnp.sum(tall_look_up(p, x), axis=1))
  rows = np.array([[1, 3], [7, 127]], np.int8)
  gradient = clipped_grad(model, first, l2_clip=10.0, method=method)
  total = jax.jit(gradient)(jnp.ones((300, 1)), examples_of(rows)).total
  assert np.flatnonzero(total).tolist() == [1, 3, 7, 127]


def in_a_loop(p, x):
  one = jax.vmap(lambda rows: jax.lax.map(lambda row: tall_look_up(p, row[None])[0, 0], rows))
  return jnp.sum(one(x), axis=1, keepdims=True)


def test_short_row_numbers_in_a_loop_are_refused():
  gradient = clipped_grad(Model(None, in_a_loop), first, l2_clip=1.0, method="vmap")
  with pytest.raises(checks.ArgumentError, match="convert them to int32"):
    gradient(jnp.ones((300, 1)), examples_of(np.array([[1, 3]], np.int8)))


def looked_up_outputs(loop):
  """Outputs of a layer that are looked up by short numbers; the layer itself has rules."""

  def one(params, rows):
    h = jnp.tanh(rows.astype(jnp.float32)[:, None] * params)  # [300, 2]
    numbers = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))

    def look_up(rows):
      return jax.lax.gather(h, rows[:, None], numbers, (1, 2), mode="clip")

    found = jax.lax.map(lambda row: look_up(row[None])[0], rows) if loop else look_up(rows)
    return jnp.mean(found * jnp.arange(300)[:, None], axis=0)

  return Model(None, lambda params, x: jax.vmap(lambda rows: one(params, rows))(x))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "two_pass", "vmap"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_outputs_that_are_looked_up_by_short_row_numbers(method, kind):
  rng = np.random.default_rng(0)
  rows = rng.integers(0, np.iinfo(kind).max, (3, 300)).astype(kind)
  params = jnp.array([0.02, -0.01])
  gradient = clipped_grad(looked_up_outputs(False), first, l2_clip=1e6, method=method)
  found = jax.jit(gradient)(params, examples_of(rows)).total
  plain = plain_gradients(looked_up_outputs(False), first, params, rows.astype(np.int32))
  np.testing.assert_allclose(found, sum(plain), rtol=1e-4)


@pytest.mark.parametrize("method", ["ghost", "two_pass", "vmap"])
def test_outputs_that_a_loop_looks_up_by_short_row_numbers_are_refused(method):
  gradient = clipped_grad(looked_up_outputs(True), first, l2_clip=1.0, method=method)
  with pytest.raises(checks.ArgumentError, match="convert them to int32"):
    gradient(jnp.ones(2), examples_of(np.zeros((2, 300), np.int8)))


def test_tables_that_a_loop_looks_up_by_short_row_numbers_have_a_rule():
  rows = np.array([[1, 3], [7, 127]], np.int8)
  gradient = clipped_grad(Model(None, in_a_loop), first, l2_clip=10.0, method="ghost")
  total = jax.jit(gradient)(jnp.ones((300, 1)), examples_of(rows)).total
  assert np.flatnonzero(total).tolist() == [1, 3, 7, 127]
