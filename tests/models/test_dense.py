import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import LogisticRegression

from jaxfair import checks, models, tree

KEY = jax.random.key(0)


def test_logistic_is_an_affine_map_of_the_flattened_features():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(5, 2, 3)).astype(np.float32)
  w = rng.normal(size=(6, 4)).astype(np.float32)
  b = rng.normal(size=4).astype(np.float32)
  logits = models.logistic(4).apply({"w": w, "b": b}, x)
  np.testing.assert_allclose(logits, x.reshape(5, 6).astype(float) @ w + b, rtol=1e-5, atol=1e-6)


def test_logistic_starts_at_zero():
  params = models.logistic(4).init(KEY, np.ones((2, 3)))
  assert params["w"].shape == (6, 4)
  assert params["b"].shape == (4,)
  assert all(not np.any(leaf) for leaf in jax.tree.leaves(params))


def test_logistic_gives_scikit_learns_probabilities():
  rng = np.random.default_rng(1)
  x = rng.normal(size=(200, 5)).astype(np.float32)
  y = (x @ rng.normal(size=(5, 3))).argmax(1)
  fitted = LogisticRegression().fit(x, y)
  params = {"w": fitted.coef_.T, "b": fitted.intercept_}
  np.testing.assert_allclose(
    models.scores(models.logistic(3), params, x), fitted.predict_proba(x), atol=1e-5
  )


ACTIVATIONS = {"relu": nn.relu, "tanh": nn.tanh, "gelu": lambda x: nn.gelu(x, approximate=False)}


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_mlp_equals_the_flax_network_with_the_same_weights(activation):
  class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
      for width in (8, 5):
        x = ACTIVATIONS[activation](nn.Dense(width)(x))
      return nn.Dense(3)(x)

  model = models.mlp((8, 5), 3, activation)
  x = np.random.default_rng(0).standard_normal((6, 4), np.float32)
  params = model.init(KEY, x[0])
  for layer in params.values():
    layer["b"] = layer["b"] + 0.1
  in_flax = {
    f"Dense_{i}": {"kernel": layer["w"], "bias": layer["b"]}
    for i, layer in enumerate(params.values())
  }
  np.testing.assert_allclose(
    model.apply(params, x), Net().apply({"params": in_flax}, x), rtol=1e-6, atol=1e-6
  )


def test_no_hidden_layer_is_a_softmax_regression():
  model = models.mlp((), 3)
  x = np.random.default_rng(0).standard_normal((6, 4), np.float32)
  params = model.init(KEY, x[0])
  np.testing.assert_array_equal(
    model.apply(params, x), models.logistic(3).apply(params["layer_0"], x)
  )


def test_number_of_parameters():
  params = models.mlp((128, 128), 2).init(KEY, np.zeros(100))
  by_hand = 100 * 128 + 128 + 128 * 128 + 128 + 128 * 2 + 2
  assert tree.size(params) == by_hand == 29_698


@pytest.mark.parametrize(("activation", "gain"), [("relu", 2), ("tanh", 1)])
def test_weights_start_with_the_stated_variance(activation, gain):
  fan_in, width = 50, 4000
  params = models.mlp(width, 10, activation).init(KEY, np.zeros(fan_in))
  w = np.asarray(params["layer_0"]["w"], np.float64)
  scaled = np.sum(w**2) * fan_in / gain  # chi-squared with w.size degrees
  low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], w.size)
  assert low < scaled < high
  last = np.asarray(params["layer_1"]["w"], np.float64)
  low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], last.size)
  assert low < np.sum(last**2) * width < high
  assert not np.any(params["layer_0"]["b"])


def test_layers_start_independently():
  params = models.mlp((30, 30), 30).init(KEY, np.zeros(30))
  a, b, c = (np.ravel(layer["w"]) for layer in params.values())
  # |correlation| of 900 independent pairs exceeds 5.5 / sqrt(900) less often
  # than once in 1e7.
  for first, second in ((a, b), (b, c), (a, c)):
    assert abs(np.corrcoef(first, second)[0, 1]) < 5.5 / 30


def test_arguments_of_any_equal_form_give_the_same_object():
  assert models.mlp([8], 2) is models.mlp((np.int64(8),), 2, "relu")
  assert models.mlp(8, 2) is models.mlp((8,), 2)
  assert models.mlp(8, 2) is not models.mlp(8, 2, "tanh")
  assert models.logistic(2) is models.logistic(np.int32(2))


def test_float64_inputs_stay_float64():
  with jax.enable_x64(True):
    model = models.mlp(4, 2)
    params = tree.scale(np.float64(1), model.init(KEY, jnp.zeros(3)))
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params)
    logits = model.apply(params, jnp.ones((2, 3), jnp.float64))
    assert logits.dtype == jnp.float64


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: models.logistic(0), "num_classes=0 must be at least 1"),
    (lambda: models.logistic(2.0), "num_classes=2.0 must be a whole number"),
    (lambda: models.mlp((8, 0), 2), "hidden=0 must be at least 1"),
    (lambda: models.mlp(8, 2, "relo"), "did you mean relu"),
  ],
)
def test_bad_arguments_are_refused(make, message):
  with pytest.raises(checks.ArgumentError, match=message):
    make()


def test_other_features_than_at_init_are_refused():
  model = models.mlp(4, 2)
  params = model.init(KEY, np.zeros(3))
  with pytest.raises(checks.ArgumentError, match="take 3 features"):
    model.apply(params, np.zeros((5, 4)))
  with pytest.raises(checks.ArgumentError, match="no features"):
    model.init(KEY, np.zeros((0,)))
