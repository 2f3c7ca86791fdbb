import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models

KEY = jax.random.key(0)
X = np.random.default_rng(0).standard_normal((4, 5), np.float32)


class Net(nn.Module):
  width: int = 6
  norm: type | None = None
  rate: float = 0.0

  @nn.compact
  def __call__(self, x, deterministic=False):
    x = nn.Dense(self.width)(x)
    if self.norm is nn.BatchNorm:
      x = nn.BatchNorm(use_running_average=False)(x)
    if self.rate:
      x = nn.Dropout(self.rate, deterministic=deterministic)(x)
    return nn.Dense(2)(nn.relu(x))


def haiku_net(x):
  return hk.nets.MLP([6, 2])(x)


@pytest.mark.slow
def test_from_flax_is_the_module():
  model, module = models.from_flax(Net()), Net()
  params = model.init(KEY, X[0])
  theirs = module.init(KEY, X[:1])["params"]
  for a, b in zip(*map(jax.tree.leaves, (params, theirs)), strict=True):
    np.testing.assert_array_equal(a, b)
  np.testing.assert_array_equal(model.apply(params, X), module.apply({"params": params}, X))


def test_equal_flax_modules_give_the_same_model():
  assert models.from_flax(Net(7)) is models.from_flax(Net(7))
  assert models.from_flax(Net(7)) is not models.from_flax(Net(8))
  switched = models.from_flax(Net(7), deterministic=True)
  assert switched is models.from_flax(Net(7), deterministic=True)
  assert switched is not models.from_flax(Net(7))


def test_a_flax_module_that_cannot_be_hashed_still_works():
  class Table(nn.Module):
    start: np.ndarray

    @nn.compact
    def __call__(self, x):
      return x @ self.param("w", lambda _: jnp.asarray(self.start))

  model = models.from_flax(Table(np.ones((5, 2), np.float32)))
  logits = model.apply(model.init(KEY, X[0]), X)
  np.testing.assert_allclose(logits[:, 1], X.sum(1), rtol=1e-5)


def test_batch_statistics_of_flax_are_refused():
  model = models.from_flax(Net(norm=nn.BatchNorm))
  with pytest.raises(checks.ArgumentError, match=r"batch_stats.*GroupNorm"):
    model.init(KEY, X[0])


def test_dropout_of_flax_is_refused_unless_it_is_off():
  with pytest.raises(checks.ArgumentError, match="deterministic=True"):
    models.from_flax(Net(rate=0.5)).init(KEY, X[0])
  off = models.from_flax(Net(rate=0.5), deterministic=True)
  params = off.init(KEY, X[0])
  np.testing.assert_array_equal(off.apply(params, X), off.apply(params, X))


def test_flax_parameters_of_another_shape_are_refused():
  model = models.from_flax(Net())
  params = model.init(KEY, X[0])
  with pytest.raises(checks.ArgumentError, match=r"x of shape \(4, 3\)"):
    model.apply(params, X[:, :3])
  with pytest.raises(checks.ArgumentError, match="params do not fit"):
    model.apply({}, X)


def test_what_is_no_module_is_refused():
  with pytest.raises(checks.ArgumentError, match="not a flax"):
    models.from_flax(lambda x: x)
  with pytest.raises(checks.ArgumentError, match="cannot be called"):
    models.from_haiku(3)


@pytest.mark.slow
@pytest.mark.parametrize(
  "wrap", [lambda f: f, hk.transform, lambda f: hk.without_apply_rng(hk.transform(f))]
)
def test_from_haiku_is_the_network(wrap):
  model = models.from_haiku(wrap(haiku_net))
  pure = hk.without_apply_rng(hk.transform(haiku_net))
  params = model.init(KEY, X[0])
  theirs = pure.init(KEY, X[:1])
  for a, b in zip(*map(jax.tree.leaves, (params, theirs)), strict=True):
    np.testing.assert_array_equal(a, b)
  np.testing.assert_array_equal(model.apply(params, X), pure.apply(params, X))


def test_the_same_haiku_function_gives_the_same_model():
  assert models.from_haiku(haiku_net) is models.from_haiku(haiku_net)
  transformed = hk.transform(haiku_net)
  assert models.from_haiku(transformed) is models.from_haiku(transformed)


def normalized(x):
  return hk.BatchNorm(True, True, 0.9)(hk.Linear(3)(x), is_training=True)


@pytest.mark.slow
def test_state_of_haiku_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"transform_with_state.*Group"):
    models.from_haiku(hk.transform_with_state(normalized))
  for function in (normalized, hk.transform(normalized)):
    with pytest.raises(checks.ArgumentError, match=r"has state.*GroupNorm"):
      models.from_haiku(function).init(KEY, X[0])


def test_randomness_of_haiku_is_refused():
  def dropped(x):
    return hk.Linear(2)(hk.dropout(hk.next_rng_key(), 0.5, x))

  for function in (dropped, hk.without_apply_rng(hk.transform(dropped))):
    with pytest.raises(checks.ArgumentError, match="draws random numbers"):
      models.from_haiku(function).init(KEY, X[0])


def test_other_mistakes_in_a_haiku_function_are_its_own():
  def wrong(x):
    raise ValueError("no such layer")

  with pytest.raises(ValueError, match="no such layer"):
    models.from_haiku(wrong).init(KEY, X[0])
