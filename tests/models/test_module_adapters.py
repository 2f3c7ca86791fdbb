import flax.linen as nn
import haiku as hk
import jax
import numpy as np
import optax
import pytest
from flax import nnx

from jaxfair import checks, models, privacy, training
from jaxfair.types import Examples

KEY = jax.random.key(0)
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((40, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)
PEOPLE = Examples(X, Y, np.zeros(40, np.int32))


class Net(nnx.Module):
  def __init__(self, rngs, rate=0.0, norm=False):
    self.layers = nnx.List([nnx.Linear(5, 6, rngs=rngs), nnx.Linear(6, 2, rngs=rngs)])
    self.drop = nnx.Dropout(rate, rngs=rngs) if rate else None
    self.norm = nnx.BatchNorm(6, rngs=rngs) if norm else None

  def __call__(self, x):
    x = nnx.relu(self.layers[0](x))
    x = x if self.norm is None else self.norm(x)
    return self.layers[1](x if self.drop is None else self.drop(x))


def net(rngs):
  return Net(rngs)


def mlp(key):
  import equinox as eqx

  return eqx.nn.MLP(5, 2, 6, 1, key=key)


def plain_mlp(params, x):
  """The same network by hand, from a list of (weights [in, out], bias)."""
  (w, b), (v, c) = params
  return np.maximum(x @ np.asarray(w) + b, 0) @ np.asarray(v) + c


@pytest.mark.slow
def test_from_nnx_is_the_module():
  module = Net(nnx.Rngs(KEY))
  for model in (models.from_nnx(net), models.from_nnx(module)):
    params = model.init(KEY, X[0])
    assert sorted(params) == ["layers.0", "layers.1"]
    by_hand = plain_mlp([(own["kernel"], own["bias"]) for own in params.values()], X)
    np.testing.assert_allclose(model.apply(params, X), by_hand, atol=1e-5)
    np.testing.assert_array_equal(model.apply(params, X), module(X))


@pytest.mark.slow
def test_from_equinox_is_the_module():
  pytest.importorskip("equinox", reason="equinox is in the extra 'equinox'")
  module = mlp(KEY)
  for model in (models.from_equinox(mlp), models.from_equinox(module)):
    params = model.init(KEY, X[0])
    assert sorted(params) == ["layers.0", "layers.1"]
    by_hand = plain_mlp([(own["weight"].T, own["bias"]) for own in params.values()], X)
    np.testing.assert_allclose(model.apply(params, X), by_hand, atol=1e-5)
    np.testing.assert_array_equal(model.apply(params, X), jax.vmap(module)(X))


def test_a_function_draws_for_every_key_and_a_module_starts_where_it_is():
  other = jax.random.key(1)
  drawn, own = models.from_nnx(net), models.from_nnx(Net(nnx.Rngs(0)))
  kernel = [
    model.init(key, X[0])["layers.0"]["kernel"] for model in (drawn, own) for key in (KEY, other)
  ]
  assert not np.array_equal(kernel[0], kernel[1])
  np.testing.assert_array_equal(kernel[2], kernel[3])
  assert models.from_nnx(net) is drawn


def test_batch_statistics_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"BatchStat.*GroupNorm"):
    models.from_nnx(lambda rngs: Net(rngs, norm=True))
  eqx = pytest.importorskip("equinox", reason="equinox is in the extra 'equinox'")
  with pytest.raises(checks.ArgumentError, match=r"StateIndex.*GroupNorm"):
    models.from_equinox(eqx.nn.BatchNorm(5, "batch", mode="ema"))


def test_dropout_is_refused_unless_it_is_off():
  with pytest.raises(checks.ArgumentError, match=r"draws random numbers.*deterministic=True"):
    models.from_nnx(lambda rngs: Net(rngs, rate=0.5)).init(KEY, X[0])
  module = Net(nnx.Rngs(0), rate=0.5)
  module.eval()
  model = models.from_nnx(module)
  params = model.init(KEY, X[0])
  np.testing.assert_array_equal(model.apply(params, X), model.apply(params, X))
  eqx = pytest.importorskip("equinox", reason="equinox is in the extra 'equinox'")
  dropped = eqx.nn.Sequential([mlp(KEY), eqx.nn.Dropout(0.5)])
  with pytest.raises(checks.ArgumentError, match=r"draws random numbers.*inference_mode"):
    models.from_equinox(dropped).init(KEY, X[0])
  off = models.from_equinox(eqx.nn.inference_mode(dropped))
  assert off.apply(off.init(KEY, X[0]), X).shape == (40, 2)


def haiku_net(x):
  return hk.Linear(2)(x)


WRONG = [
  (models.from_flax, Net(nnx.Rngs(0)), "models.from_nnx"),
  (models.from_haiku, Net(nnx.Rngs(0)), "models.from_nnx"),
  (models.from_nnx, nn.Dense(2), "models.from_flax"),
  (models.from_equinox, nn.Dense(2), "models.from_flax"),
  (models.from_nnx, hk.transform(haiku_net), "models.from_haiku"),
  (models.from_flax, hk.transform(haiku_net), "models.from_haiku"),
  (models.from_flax, nn.Dense, "it is the class Dense"),
  (models.from_nnx, nnx.Linear, "it is the class Linear"),
  (models.from_nnx, models.logistic(2), "a Model already"),
  (models.from_haiku, models.logistic(2), "a Model already|cannot be called"),
  (models.from_nnx, lambda rngs: 3, "what module returns is not a flax.nnx module"),
  (models.from_equinox, 3, "function of a key"),
]


@pytest.mark.parametrize(("adapter", "module", "told"), WRONG)
def test_the_right_adapter_is_named_in_one_line(adapter, module, told):
  with pytest.raises(checks.ArgumentError, match=told) as raised:
    adapter(module)
  assert len(str(raised.value)) < 200
  assert "\n" not in str(raised.value)


def test_equinox_modules_elsewhere_are_told_where_to_go():
  pytest.importorskip("equinox", reason="equinox is in the extra 'equinox'")
  for adapter in (models.from_flax, models.from_haiku, models.from_nnx):
    with pytest.raises(checks.ArgumentError, match=r"models\.from_equinox$"):
      adapter(mlp(KEY))


def test_features_of_another_width_are_refused_by_init():
  with pytest.raises(checks.ArgumentError, match=r"x of shape \(1, 3\)"):
    models.from_nnx(net).init(KEY, X[0, :3])


def adapted(kind):
  """The same three lines with each library: model, settings, training."""
  if kind == "equinox":
    pytest.importorskip("equinox", reason="equinox is in the extra 'equinox'")
    return models.from_equinox(mlp)
  if kind == "nnx":
    return models.from_nnx(net)
  if kind == "haiku":
    return models.from_haiku(lambda x: hk.nets.MLP([6, 2])(x))
  return models.from_flax(nn.Sequential([nn.Dense(6), nn.relu, nn.Dense(2)]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nnx", "equinox", "linen", "haiku"])
def test_networks_of_every_library_train_privately_in_three_lines(kind):
  model = adapted(kind)
  config = training.DpSgdConfig(steps=2, batch_size=20, optimizer=optax.adamw(0.05))
  fit = training.train_to_budget(
    model, models.cross_entropy, PEOPLE, config, epsilon=2.0, delta=1e-3, key=KEY
  )
  assert fit.guarantee.epsilon <= 2.0
  before = model.init(jax.random.key(0), X[0])
  assert jax.tree.structure(before) == jax.tree.structure(fit.params)
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(fit.params))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nnx", "equinox"])
def test_clipping_reads_the_program_of_the_module(kind):
  """The fast path (any parameter that it cannot read is a warning, which fails) is exact."""
  model = adapted(kind)
  params = model.init(KEY, X[0])
  clipped = jax.jit(privacy.clipped_grad(model, models.cross_entropy, l2_clip=0.5))
  found = clipped(params, PEOPLE)

  def loss(params, x, y):
    return models.cross_entropy(model.apply(params, x[None]), y[None])[0]

  each = jax.jit(jax.vmap(jax.grad(loss), (None, 0, 0)))(params, X, Y)
  squares = sum(
    np.square(np.asarray(g, np.float64)).reshape(40, -1).sum(1) for g in jax.tree.leaves(each)
  )
  factor = np.minimum(1, 0.5 / np.sqrt(squares))
  assert np.mean(factor < 1) > 0.1
  for got, raw in zip(jax.tree.leaves(found.total), jax.tree.leaves(each), strict=True):
    np.testing.assert_allclose(got, np.tensordot(factor, raw, 1), atol=2e-4)
