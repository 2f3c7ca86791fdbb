"""Every network of the library goes through the same tests."""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models, tree

KEY = jax.random.key(0)
NUM_CLASSES = 3
IMAGE = (16, 16, 3)


class FlaxNet(nn.Module):
  """A network as a user would bring it."""

  @nn.compact
  def __call__(self, x):
    x = nn.relu(nn.LayerNorm()(nn.Dense(8)(x)))
    return nn.Dense(NUM_CLASSES)(x)


def haiku_net(x):
  return hk.nets.MLP([8, NUM_CLASSES])(x)


C = NUM_CLASSES
# name: (constructor, shape of one example)
LIGHT = {
  "logistic": (lambda: models.logistic(C), (7,)),
  "mlp relu": (lambda: models.mlp((8, 6), C), (7,)),
  "mlp tanh": (lambda: models.mlp(8, C, "tanh"), (2, 3)),
  "mlp gelu": (lambda: models.mlp([8], C, "gelu"), (7,)),
  "convnet": (lambda: models.convnet(C), IMAGE),
  "convnet_color_mnist": (lambda: models.convnet_color_mnist(C), IMAGE),
  "convnet_celeba": (lambda: models.convnet_celeba(C, width=4), (46, 46, 3)),
  "convnet_medium": (lambda: models.convnet_medium(C, width=4), IMAGE),
  "from_flax": (lambda: models.from_flax(FlaxNet()), (7,)),
  "from_haiku": (lambda: models.from_haiku(haiku_net), (7,)),
}
HEAVY = {
  "vgg 13": (lambda: models.vgg(13, C, width=4), IMAGE),
  "resnet 18": (lambda: models.resnet(18, C, width=4), (8, 8, 3)),
  "resnet 18 large": (lambda: models.resnet(18, C, width=4, small_images=False), (32, 32, 3)),
  "resnet 50": (lambda: models.resnet(50, C, width=4), (8, 8, 3)),
  "vgg 19": (lambda: models.vgg(19, C, width=4), (28, 28, 1)),
}
ALL = LIGHT | HEAVY
# The other deep networks are made of the same blocks: shapes tell what is new.
WITH_SLOW = [
  *LIGHT,
  *(pytest.param(name, marks=pytest.mark.slow) for name in ("vgg 13", "resnet 18", "resnet 50")),
]


def examples(name, n):
  shape = (n, *ALL[name][1])
  return np.random.default_rng(1).standard_normal(shape, np.float32)


@functools.cache
def shapes(name):
  """The parameters' shapes; tracing a deep network takes a while."""
  return jax.eval_shape(ALL[name][0]().init, KEY, examples(name, 1)[0])


def loss(model, params, x):
  y = jnp.arange(x.shape[0]) % NUM_CLASSES
  return jnp.mean(models.cross_entropy(model.apply(params, x), y))


@pytest.mark.parametrize("name", ALL)
def test_same_arguments_give_the_same_object(name):
  assert ALL[name][0]() is ALL[name][0]()


@pytest.mark.parametrize("name", ALL)
def test_is_a_static_argument_of_jit(name):
  model = ALL[name][0]()
  assert hash(model) == hash(ALL[name][0]())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [0, 5])
def test_maps_n_examples_to_n_rows_of_float32_logits(name, n):
  model, params = ALL[name][0](), shapes(name)
  logits = jax.eval_shape(model.apply, params, examples(name, n))
  assert logits.shape == (n, NUM_CLASSES)
  assert {leaf.dtype for leaf in jax.tree.leaves((params, logits))} == {jnp.dtype("float32")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_examples_are_proved_independent(name):
  model, params = ALL[name][0](), shapes(name)
  models.check_independent(model, params, examples(name, 2))


class Computed(NamedTuple):
  """What the tests on values share, so that each network compiles once."""

  params: Any  # two of them, stacked
  logits: Any  # of both parameters
  grads: Any


@functools.cache
def computed(name):
  model, x = ALL[name][0](), examples(name, 8)
  params = [model.init(jax.random.key(seed), x[0]) for seed in (0, 1)]

  def logits_and_grads(params, x):
    return model.apply(params, x), jax.grad(loss, 1)(model, params, x)

  if name in LIGHT:
    stacked = tree.stack(params)
    compiled = jax.jit(jax.vmap(logits_and_grads, (0, None)))
    return Computed(stacked, *compiled(stacked, x))
  compiled = jax.jit(logits_and_grads)
  results = [compiled(each, x) for each in params]
  return Computed(tree.stack(params), *tree.stack(results))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_SLOW)
def test_initial_parameters_follow_the_key(name):
  model, params = ALL[name][0](), computed(name).params
  again = model.init(jax.random.key(1), examples(name, 1)[0])
  for ours, theirs in zip(*map(jax.tree.leaves, (params, again)), strict=True):
    np.testing.assert_array_equal(ours[1], theirs)
  both = tree.take(params, 0), tree.take(params, 1)
  assert bool(tree.norm(tree.subtract(*both)) > 0) == (name != "logistic")


@pytest.mark.parametrize("name", WITH_SLOW)
def test_gradients_are_finite_and_move_every_parameter(name):
  for leaf in jax.tree.leaves(computed(name).grads):
    assert np.all(np.isfinite(leaf))
    assert np.any(np.asarray(leaf) != 0)


@pytest.mark.parametrize("name", WITH_SLOW)
def test_initial_logits_are_of_order_one(name):
  logits = computed(name).logits
  assert logits.shape == (2, 8, NUM_CLASSES)
  size = float(np.sqrt(np.mean(np.square(logits))))
  assert size == 0 if name == "logistic" else 0.1 < size < 10


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT)
def test_one_of_a_stack_gives_what_it_gives_alone(name):
  params, logits, _ = computed(name)
  apply = jax.jit(ALL[name][0]().apply)
  one = apply(tree.take(params, 1), examples(name, 8)[6:7])
  np.testing.assert_allclose(one, logits[1, 6:7], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_deep_networks_can_be_stacked(name):
  model, x = ALL[name][0](), examples(name, 4)
  keys = jax.random.split(KEY, 2)
  params = jax.eval_shape(jax.vmap(model.init, (0, None)), keys, x[0])
  logits = jax.eval_shape(jax.vmap(model.apply, (0, None)), params, x)
  assert logits.shape == (2, 4, NUM_CLASSES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp relu", "convnet"])
def test_stacked_initial_parameters_are_those_of_each_key(name):
  model, one = ALL[name][0](), examples(name, 1)[0]
  keys = jax.random.split(KEY, 3)
  stacked = jax.vmap(model.init, (0, None))(keys, one)
  alone = model.init(keys[2], one)
  for ours, theirs in zip(*map(jax.tree.leaves, (stacked, alone)), strict=True):
    np.testing.assert_array_equal(ours[2], theirs)


@pytest.mark.parametrize("name", [n for n in ALL if not n.startswith("from")])
def test_wrong_input_is_refused_with_the_shape(name):
  model, params, one = ALL[name][0](), shapes(name), examples(name, 1)[0]
  with pytest.raises(checks.ArgumentError, match=r"x has shape .* batch"):
    jax.eval_shape(model.apply, params, one)
  if one.ndim == 3 and not name.startswith("mlp"):
    with pytest.raises(checks.ArgumentError, match=r"\[h, w, c\]"):
      model.init(KEY, one[..., 0])


@pytest.mark.parametrize("name", ALL)
def test_an_old_style_key_is_refused(name):
  with pytest.raises(checks.ArgumentError, match="random key"):
    ALL[name][0]().init(jnp.zeros(2, jnp.uint32), examples(name, 1)[0])


PASSED_ON = {"reshape", "broadcast_in_dim", "convert_element_type"}
PLAIN = {"dot_general", "conv_general_dilated", "add", "mul"}


def primitives_that_use_parameters(jaxpr, from_params):
  """Names of the operations that first combine a parameter with anything."""
  found = set()
  for eqn in jaxpr.eqns:
    takes = [
      not isinstance(atom, jax.extend.core.Literal) and atom in from_params for atom in eqn.invars
    ]
    if not any(takes):
      continue
    name = eqn.primitive.name
    if name in PASSED_ON:
      from_params |= set(eqn.outvars)
    elif name == "jit":
      inner = eqn.params["jaxpr"].jaxpr
      marked = {v for v, t in zip(inner.invars, takes, strict=True) if t}
      found |= primitives_that_use_parameters(inner, marked)
    else:
      found.add(name)
  return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_parameters_enter_through_plain_operations(name):
  """What ghost clipping relies on to read gradient norms off the layers."""
  model, params = ALL[name][0](), shapes(name)
  jaxpr = jax.make_jaxpr(model.apply)(params, examples(name, 1)).jaxpr
  num_leaves = len(jax.tree.leaves(params))
  used = primitives_that_use_parameters(jaxpr, set(jaxpr.invars[:num_leaves]))
  assert used <= PLAIN
