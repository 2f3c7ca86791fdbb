"""Clipped sums: ghost, vmap and float64 gradients agree on every model."""

import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.clipping_models import IMAGE, zoo
from helpers.crowds import crowd
from jaxfair import checks, models, tree
from jaxfair.models import _losses
from jaxfair.privacy import _clip_factors
from jaxfair.privacy._clipping import SlowClippingWarning, clipped_grad
from jaxfair.types import Examples, Model


def people(count, seed=0, shape=IMAGE):
  return jax.tree.map(jnp.asarray, crowd(count, shape, classes=3, seed=seed))


def jitted(model, method="auto", per_layer=False):
  """(params, examples, mask, clip) -> Clipped, compiled once per shape."""

  @jax.jit
  def gradient(params, examples, mask, clip):
    return clipped_grad(
      model, models.cross_entropy, l2_clip=clip, method=method, per_layer=per_layer, microbatch=4
    )(params, examples, mask)

  def quietly(*arguments):
    with warnings.catch_warnings():
      warnings.simplefilter("ignore", SlowClippingWarning)
      return gradient(*arguments)

  return quietly


def gradients_in_float64(model, params, examples):
  """[n, ...] per-example gradients, by vmap of the plain gradient."""
  with jax.enable_x64(True):
    wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)

    def loss(p, x, y):
      return models.cross_entropy(model.apply(p, x[None]), y[None])[0]

    gradient = jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))
    x = np.asarray(examples.x, np.float64)
    return jax.device_get(gradient(wide, x, np.asarray(examples.y)))


def clipped_by_definition(gradients, params, clip, mask, per_layer):
  """sum_i mask_i g_i min(1, clip / ||g_i||), layer by layer if asked."""
  leaves, structure = jax.tree.flatten(gradients)
  squares = np.stack([np.sum(g**2, axis=tuple(range(1, g.ndim))) for g in leaves])
  layer = np.array(_clip_factors.layer_ids(params)) if per_layer else np.zeros(len(leaves), int)
  sums = np.zeros((layer.max() + 1, len(mask)))
  np.add.at(sums, layer, squares)
  bound = clip / np.sqrt(len(sums))
  factor = np.minimum(1, bound / np.sqrt(np.maximum(sums, 1e-300)))[layer] * mask
  total = [np.tensordot(f, g, 1) for f, g in zip(factor, leaves, strict=True)]
  norms = np.sqrt(squares.sum(0)) * mask
  return jax.tree.unflatten(structure, total), norms


def distance(a, b):
  """||a - b|| / ||b|| in float64."""
  pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
  difference = size = 0.0
  for u, v in pairs:
    u, v = np.asarray(u, np.float64), np.asarray(v, np.float64)
    difference += np.sum((u - v) ** 2)
    size += np.sum(v**2)
  return np.sqrt(difference / size)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo()))
def test_methods_agree_with_float64(name):
  model, examples = zoo()[name], people(6)
  params = model.init(jax.random.key(1), examples.x[0])
  mask = jnp.array([True, True, False, True, True, True])
  gradients = gradients_in_float64(model, params, examples)
  for method, per_layer in itertools.product(("ghost", "vmap"), (False, True)):
    gradient = jitted(model, method, per_layer)
    # What is clipped is shorter by what rounding may hide: of the few hundred
    # numbers behind these norms, at most 2^-16 of the norm, with canceling
    # positions twice that.
    for clip, close in ((0.05, 2.0**-15), (1e4, 1e-5)):
      expected, norms = clipped_by_definition(gradients, params, clip, np.asarray(mask), per_layer)
      found = gradient(params, examples, mask, clip)
      assert distance(found.total, expected) < close, (method, per_layer, clip)
      np.testing.assert_allclose(found.norms, norms, rtol=1e-5, atol=1e-7)
      assert found.num_nonfinite == 0


SHAPES = [(1, 1, ()), (5, 3, (4,)), (9, 6, (2, 5))]  # people, features, hidden


@functools.cache
def both_methods(hidden):
  model = models.mlp(hidden, 3)
  return model, [jitted(model, method) for method in ("ghost", "vmap")]


@pytest.mark.slow
@given(
  shape=st.sampled_from(SHAPES),
  clip=st.floats(1e-3, 1e3),
  seed=st.integers(0, 100),
  broken=st.sampled_from([None, np.nan, np.inf, 3e38]),
  data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_ghost_equals_vmap_for_any_mask_and_broken_row(shape, clip, seed, broken, data):
  count, features, hidden = shape
  examples = people(count, seed, (features,))
  drawn = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
  if broken is not None:
    examples = examples._replace(x=examples.x.at[count // 2].set(broken))
  model, methods = both_methods(hidden)
  params = model.init(jax.random.key(seed), examples.x[0])
  mask = jnp.asarray(drawn)
  found = [method(params, examples, mask, clip) for method in methods]
  counts = [int(f.num_nonfinite) for f in found]
  if broken == 3e38 and counts[0] != counts[1]:
    # One saw 0 * infinity, the other 0. Then the one has left the row out.
    fewer = counts.index(min(counts))
    without = mask.at[count // 2].set(False)
    found[fewer] = methods[fewer](params, examples, without, clip)
  else:
    assert counts[0] == counts[1]
    np.testing.assert_allclose(found[0].norms, found[1].norms, rtol=1e-5)
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found[0].total))
  for a, b in zip(*(jax.tree.leaves(f.total) for f in found), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * clip)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_broken_example_is_left_out_and_counted(method, value):
  model, examples = models.mlp((4,), 3), people(5, shape=(3,))
  params = model.init(jax.random.key(0), examples.x[0])
  gradient = clipped_grad(model, models.cross_entropy, l2_clip=1.0, method=method)
  broken = examples._replace(x=examples.x.at[2].set(value))
  found = gradient(params, broken)
  without = gradient(params, examples, jnp.arange(5) != 2)
  assert found.num_nonfinite == 1
  assert found.norms[2] == 0
  assert distance(found.total, without.total) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "two_pass", "vmap"])
def test_an_example_whose_norm_overflows_moves_nothing(method):
  model, examples = models.logistic(3), people(5, shape=(3,))
  params = model.init(jax.random.key(0), examples.x[0])
  gradient = clipped_grad(model, models.cross_entropy, l2_clip=1.0, method=method)
  broken = examples._replace(x=examples.x.at[2].set(1e38))
  without = gradient(params, examples, jnp.arange(5) != 2)
  assert distance(gradient(params, broken).total, without.total) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "two_pass"])
def test_non_finite_parameters_leave_everybody_out(method):
  model, examples = models.logistic(3), people(4, shape=(3,))
  params = jax.tree.map(lambda leaf: leaf + jnp.nan, model.init(jax.random.key(0), examples.x[0]))
  found = clipped_grad(model, models.cross_entropy, l2_clip=1.0, method=method)(params, examples)
  assert found.num_nonfinite == 4
  assert tree.norm(found.total) == 0


def test_empty_batch_is_a_normal_step():
  model, examples = models.mlp((4,), 3), people(5, shape=(3,))
  params = model.init(jax.random.key(0), examples.x[0])
  gradient = jax.jit(clipped_grad(model, models.cross_entropy, l2_clip=1.0))
  found = gradient(params, examples, jnp.zeros(5, bool))
  assert tree.norm(found.total) == 0
  assert found.num_nonfinite == 0


@pytest.mark.slow
def test_infinite_clip_is_the_plain_gradient_to_the_last_bit():
  model, examples = models.mlp((16, 8), 3), people(32, shape=(7,))
  params = model.init(jax.random.key(0), examples.x[0])

  def total_loss(p):
    return jnp.sum(models.cross_entropy(model.apply(p, examples.x), examples.y))

  plain = jax.jit(jax.grad(total_loss))(params)
  gradient = clipped_grad(model, models.cross_entropy, l2_clip=1e30)
  found = jax.jit(gradient)(params, examples).total
  for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo()))
def test_no_example_contributes_more_than_the_bound(name):
  """In float64, for one example at a time: the bound itself, not nearly it."""
  model, examples = zoo()[name], people(4, seed=3)
  params = model.init(jax.random.key(1), examples.x[0])
  for per_layer in (False, True):
    gradient = jitted(model, "ghost", per_layer)
    for i in range(4):
      total = gradient(params, examples, jnp.arange(4) == i, 0.01).total
      squares = sum(np.sum(np.asarray(leaf, np.float64) ** 2) for leaf in jax.tree.leaves(total))
      assert 0.009 < np.sqrt(squares) <= 0.01


def canceling(kind):
  """A model whose gradient is a difference of two positions' or uses'."""
  rng = np.random.default_rng(0)
  head = jnp.asarray(rng.normal(size=(64, 3)), jnp.float32)

  def init(key, x):
    del key, x
    return {"w": jnp.zeros((64, 64), jnp.float32)}

  def apply(params, x):
    if kind == "positions":
      hidden = x @ params["w"]
      return (hidden[:, 0] - hidden[:, 1]) @ head
    return (x[:, 0] @ params["w"]) @ head - (x[:, 1] @ params["w"]) @ head

  return Model(init, apply)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["positions", "uses"])
def test_a_gradient_whose_parts_cancel_is_within_the_bound(kind):
  """Its norm, from Gram matrices in float32, is nothing but rounding."""
  rng, count = np.random.default_rng(1), 120
  one = rng.normal(size=(count, 64))
  apart = 10.0 ** rng.uniform(-5, 0, (count, 1)) * rng.normal(size=one.shape)
  size = 10.0 ** rng.uniform(0, 8, (count, 1, 1))
  x = jnp.asarray(size * np.stack([one, one + apart], 1), jnp.float32)
  zeros = jnp.zeros(count, jnp.int32)
  model, examples = canceling(kind), Examples(x, zeros, zeros)
  gradient = jitted(model, "ghost")
  alone = jax.vmap(gradient, in_axes=(None, None, 0, None))(
    model.init(None, None), examples, jnp.eye(count, dtype=bool), 1.0
  )
  norms = np.linalg.norm(np.asarray(alone.total["w"], np.float64), axis=(1, 2))
  assert norms.max() <= 1.0
  little = (np.abs(apart).mean(1) > 0.2) & (size[:, 0, 0] > 10)
  assert norms[little].min() > 0.999  # nobody else is silenced by that


def test_a_huge_signal_does_not_lift_a_vanishing_input_over_the_bound():
  """The input's square is zero in float32; the signal's is nearly infinite."""
  model = Model(lambda key, x: {"w": jnp.zeros((4000, 1))}, lambda p, x: x @ p["w"])
  x = jnp.full((1, 4000), 1e-19, jnp.float32)
  target = jnp.full((1,), 5e18, jnp.float32)
  examples = Examples(x, target, jnp.zeros(1, jnp.int32))
  gradient = clipped_grad(model, _losses.squared, l2_clip=1.0)
  total = gradient(model.init(None, None), examples).total["w"]
  assert np.linalg.norm(np.asarray(total, np.float64)) <= 1.0


@pytest.mark.slow
def test_known_layers_are_not_built_and_unknown_ones_are_named():
  examples = people(2)
  fast = zoo()["convolutions"]
  params = fast.init(jax.random.key(0), examples.x[0])
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    jax.eval_shape(clipped_grad(fast, models.cross_entropy, l2_clip=1.0), params, examples)
  odd = zoo()["odd"]
  params = odd.init(jax.random.key(0), examples.x[0])
  with pytest.warns(SlowClippingWarning, match=r"rule for \['gate'\]: "):
    jax.eval_shape(clipped_grad(odd, models.cross_entropy, l2_clip=1.0), params, examples)


def test_a_loss_that_is_a_mean_is_refused():
  model, examples = models.logistic(3), people(4, shape=(3,))
  params = model.init(jax.random.key(0), examples.x[0])

  def mean(logits, y):
    return jnp.mean(models.cross_entropy(logits, y))

  for method in ("ghost", "vmap"):
    with pytest.raises(checks.ArgumentError, match="one number per example"):
      clipped_grad(model, mean, l2_clip=1.0, method=method)(params, examples)


@pytest.mark.slow
def test_vmaps_over_clip_bounds_and_parameters():
  model, examples = models.mlp((4,), 3), people(5, shape=(3,))
  params = jax.vmap(lambda k: model.init(k, examples.x[0]))(jax.random.split(jax.random.key(0), 3))
  clips = jnp.array([0.1, 1.0, 10.0])

  def one(p, clip):
    return clipped_grad(model, models.cross_entropy, l2_clip=clip)(p, examples)

  together = jax.vmap(one)(params, clips)
  for i in range(3):
    alone = one(tree.take(params, i), clips[i])
    assert distance(tree.take(together.total, i), alone.total) < 1e-5


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"l2_clip": 0.0}, "l2_clip=0.0 must be above 0"),
    ({"l2_clip": -1.0}, "l2_clip=-1.0"),
    ({"l2_clip": float("nan")}, "l2_clip=nan"),
    ({"l2_clip": 1.0, "method": "gost"}, "did you mean ghost"),
    ({"l2_clip": 1.0, "microbatch": 0}, "microbatch=0"),
  ],
)
def test_refused(options, told):
  with pytest.raises(checks.ArgumentError) as caught:
    clipped_grad(models.logistic(2), models.cross_entropy, **options)
  assert told in str(caught.value)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_short_floats_are_refused(dtype, method):
  """Their norms and sums are rounded to a few digits: 228 times the bound."""
  model, examples = models.logistic(3), people(2)
  params = jax.tree.map(
    lambda leaf: leaf.astype(dtype), model.init(jax.random.key(0), examples.x[0])
  )
  gradient = clipped_grad(model, models.cross_entropy, l2_clip=1.0, method=method)
  with pytest.raises(checks.ArgumentError, match="keep them in float32"):
    gradient(params, examples)


def test_layers_are_the_leaves_under_one_node():
  params = {"a": {"w": 0, "b": 0}, "c": {"w": 0}, "d": {"e": {"w": 0, "b": 0}}}
  assert _clip_factors.layer_ids(params) == (0, 0, 1, 2, 2)


@pytest.mark.slow
def test_integer_inputs_are_always_finite():
  table = jnp.arange(12.0).reshape(4, 3)
  model = Model(lambda key, x: {"t": table}, lambda p, x: p["t"][x].sum(1))
  examples = Examples(jnp.array([[0, 1], [3, 3], [2, 9]]), jnp.array([0, 1, 2]), jnp.zeros(3, int))
  found = [
    clipped_grad(model, models.cross_entropy, l2_clip=100.0, method=m)({"t": table}, examples)
    for m in ("ghost", "vmap")
  ]
  np.testing.assert_allclose(found[0].total["t"], found[1].total["t"], rtol=1e-6)


def test_clip_factors_by_hand():
  """Below the bound nothing changes; above it the length is a hair below."""
  squared = jnp.array([0.0, 1e-30, 0.09, 0.25, 1.0, 16.0, 1e20])
  factor = np.asarray(_clip_factors.clip_factor(squared, 0.5), np.float64)
  np.testing.assert_array_equal(factor[:3], 1.0)
  lengths = factor[3:] * np.sqrt(np.asarray(squared, np.float64)[3:])
  assert (lengths < 0.5).all()
  np.testing.assert_allclose(lengths, 0.5, rtol=2e-6)
