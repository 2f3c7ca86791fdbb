"""Only what is trained is in the parameters, and only that is clipped and noised."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models, training
from jaxfair.privacy._clipping import SlowClippingWarning
from jaxfair.types import Examples

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def network():
  model = models.mlp((5,), 2)
  rng = np.random.default_rng(0)
  x = rng.normal(size=(40, 3)).astype(np.float32)
  y = (x[:, 0] > 0).astype(np.int32)
  return model, model.init(KEY, x[0]), Examples(x, y, y)


def names(params):
  return [
    jax.tree_util.keystr(p, simple=True, separator="/")
    for p, _ in jax.tree_util.tree_leaves_with_path(params)
  ]


def test_frozen_starts_as_the_model_and_holds_the_trained_part_only(network):
  model, params, people = network
  last = names(params)[-1].split("/")[0]
  part = models.frozen(model, params, trainable=[last])
  start = part.init(jax.random.key(7), people.x[0])
  assert sorted(start) == [f"{last}/b", f"{last}/w"]
  np.testing.assert_array_equal(part.apply(start, people.x), model.apply(params, people.x))
  trained = {**start, f"{last}/b": start[f"{last}/b"] + 1}
  np.testing.assert_allclose(
    part.apply(trained, people.x), model.apply(params, people.x) + 1, rtol=1e-5
  )


@pytest.mark.slow
def test_dp_sgd_of_the_last_layer_is_dp_sgd_on_its_inputs(network):
  """The oracle: softmax regression on the frozen layer's outputs, with the same key."""
  model, params, people = network
  first, last = (name for name in params)
  hidden = jax.nn.relu(people.x @ params[first]["w"] + params[first]["b"])
  config = training.DpSgdConfig(
    learning_rate=0.5, l2_clip=0.3, noise_multiplier=0.0, steps=5, batch_size=20
  )
  part = models.frozen(model, params, trainable=[last])
  found = training.dp_sgd(part, models.cross_entropy, people, config, key=KEY)
  expected = training.dp_sgd(
    models.logistic(2),
    models.cross_entropy,
    people._replace(x=np.asarray(hidden)),
    config,
    key=KEY,
    initial=params[last],
  )
  np.testing.assert_allclose(found.params[f"{last}/w"], expected.params["w"], atol=1e-6)
  np.testing.assert_allclose(found.trace.mean_norm, expected.trace.mean_norm, rtol=1e-5)


@pytest.mark.slow
def test_low_rank_changes_start_at_nothing_and_are_what_is_clipped(network):
  model, params, people = network
  first, last = (name for name in params)
  part = models.low_rank(model, params, layers=[first], rank=2, trainable=[last])
  start = part.init(KEY, people.x[0])
  np.testing.assert_array_equal(part.apply(start, people.x), model.apply(params, people.x))
  assert start[f"{first}/w"]["a"].shape == (3, 2)
  assert start[f"{first}/w"]["b"].shape == (2, 5)
  assert f"{first}/b" not in start
  changed = {**start, f"{first}/w": {"a": jnp.ones((3, 2)), "b": jnp.ones((2, 5))}}
  whole = {**params, first: {**params[first], "w": params[first]["w"] + 2}}
  np.testing.assert_allclose(
    part.apply(changed, people.x), model.apply(whole, people.x), rtol=1e-4, atol=1e-5
  )
  config = training.DpSgdConfig(l2_clip=1.0, noise_multiplier=0.5, steps=3, batch_size=20)
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", SlowClippingWarning)
    fit = training.dp_sgd(part, models.cross_entropy, people, config, key=KEY)
  assert jax.tree.structure(fit.params) == jax.tree.structure(start)
  assert np.abs(fit.params[f"{first}/w"]["b"]).max() > 0


def test_refuses_names_that_are_not_there(network):
  model, params, _ = network
  with pytest.raises(checks.ArgumentError, match="trainable='head' names no parameter"):
    models.frozen(model, params, trainable=["head"])
  with pytest.raises(checks.ArgumentError, match="must be a list of names"):
    models.frozen(model, params, trainable="head")
  with pytest.raises(checks.ArgumentError, match="rank=0"):
    models.low_rank(model, params, layers=list(params), rank=0)
  with pytest.raises(checks.ArgumentError, match="has no matrix"):
    models.low_rank(model, params, layers=list(params), trainable=list(params))
