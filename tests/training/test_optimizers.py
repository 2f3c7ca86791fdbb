"""Optimizers, by name and your own: what they compute, beside formulas and plain optax."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import accounting, checks, methods, models, training
from jaxfair.methods._method import Sizes
from jaxfair.training import LagrangianConfig, _optimizers
from jaxfair.types import Examples

GRADIENTS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def path(optimizer, rate):
  """Parameters after each of the gradients, from zero."""
  made = optimizer(rate)
  params, found = jnp.zeros(3), []
  state = made.init(params)
  for gradient in jnp.asarray(GRADIENTS):
    updates, state = made.update(gradient, state, params)
    params = optax.apply_updates(params, updates)
    found.append(params)
  return np.stack(found)


def test_momentum_adds_nine_tenths_of_the_last_step():
  velocity, params, expected = np.zeros(3), np.zeros(3), []
  for gradient in GRADIENTS.astype(float):
    velocity = 0.9 * velocity + gradient
    params = params - 0.1 * velocity
    expected.append(params)
  np.testing.assert_allclose(path(_optimizers.OPTIMIZERS["momentum"], 0.1), expected, rtol=1e-5)


@pytest.mark.parametrize(
  ("schedule", "shares"),
  [("linear", 1 - np.arange(4) / 4), ("cosine", 0.5 + 0.5 * np.cos(np.pi * np.arange(4) / 4))],
)
def test_schedules_end_at_zero(schedule, shares):
  optimizer = training.named_optimizer("sgd", schedule, steps=4)
  expected = -np.cumsum(0.1 * shares[:, None] * GRADIENTS, axis=0)
  np.testing.assert_allclose(path(optimizer, 0.1), expected, rtol=1e-5, atol=1e-7)
  traced = jax.jit(lambda rate: optimizer(rate).init(jnp.zeros(3)))(0.1)
  assert len(jax.tree.leaves(traced)) == 1  # the number of the step


def test_equal_names_are_one_object():
  assert training.named_optimizer("adam") is optax.adam
  first, again = (training.named_optimizer("sgd", "cosine", steps=4) for _ in range(2))
  assert first is again


def test_bad_names_are_refused():
  with pytest.raises(checks.ArgumentError, match="name='lion'"):
    training.named_optimizer("lion")
  with pytest.raises(checks.ArgumentError, match="steps=None must be a whole number"):
    training.named_optimizer("sgd", "cosine")


PEOPLE = Examples(
  GRADIENTS.repeat(5, axis=0), np.arange(20, dtype=np.int32) % 2, np.zeros(20, np.int32)
)
MODEL = models.logistic(2)
CHAIN = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(optax.linear_schedule(0.1, 0.0, 5)))


@pytest.mark.slow
@pytest.mark.parametrize(
  ("trainer", "config"),
  [
    (training.fit, training.FitConfig(steps=3, batch_size=None)),
    (training.dp_sgd, training.DpSgdConfig(steps=3, batch_size=10)),
  ],
)
def test_an_optax_object_trains_as_the_function_that_makes_it(trainer, config):
  """The rate of a schedule and of the chain is the object's own; `learning_rate` is not used."""
  results = []
  for optimizer, rate in ((CHAIN, 7.0), (lambda rate: CHAIN, 0.1)):
    own = dataclasses.replace(config, optimizer=optimizer, learning_rate=rate)
    results.append(trainer(MODEL, models.cross_entropy, PEOPLE, own, key=jax.random.key(0)).params)
  jax.tree.map(np.testing.assert_array_equal, *results)
  assert all(np.any(leaf != 0) for leaf in jax.tree.leaves(results[0]))


@pytest.mark.parametrize(
  ("wrong", "told"),
  [
    ({"optimizer": "adam"}, r"optimizer='adam' is not an optimizer; pass an optax object"),
    (
      {"optimizer": optax.adam(0.1), "learning_rate": jnp.array([0.1, 0.2])},
      "learning_rate is swept, but optimizer is an optax object",
    ),
  ],
)
@pytest.mark.parametrize("config", [training.FitConfig, training.DpSgdConfig, LagrangianConfig])
def test_what_is_no_optimizer_is_refused(config, wrong, told):
  with pytest.raises(checks.ArgumentError, match=told):
    config(**wrong).check(MODEL, models.cross_entropy, PEOPLE)


def test_a_schedule_is_no_optimizer():
  config = training.FitConfig(optimizer=optax.linear_schedule(0.1, 0.0, 5))
  with pytest.raises(checks.ArgumentError, match=r"returned .*, which is not an optax optimizer"):
    _optimizers.optimizer_of(config)


def test_settings_of_methods_take_names_functions_and_objects():
  method = methods.get("dp_sgd")
  sizes = Sizes(private=100, public=0, shape=(3,), classes=2, groups=1)
  budget = accounting.Budget(1.0, 1e-5)
  for given, expected in (("adam", optax.adam), (optax.adamw, optax.adamw), (CHAIN, CHAIN)):
    plan = method.plan(method.settings(optimizer=given, steps=5), sizes, budget)
    assert plan.config.optimizer is expected
  with pytest.raises(checks.ArgumentError, match="optimizer='lion'"):
    method.settings(optimizer="lion")
  with pytest.raises(checks.ArgumentError, match="schedule='cosine' applies to optimizers by name"):
    method.plan(method.settings(optimizer=CHAIN, schedule="cosine", steps=5), sizes, budget)
  with pytest.raises(checks.ArgumentError, match="tuned_dp_sgd tries several"):
    methods.get("tuned_dp_sgd").settings(optimizer=CHAIN)


def test_gradients_of_dp_sgd_global_are_scaled_before_an_object_sees_them():
  settings = methods.get("dp_sgd_global").settings
  sizes = Sizes(private=100, public=0, shape=(3,), classes=2, groups=1)
  plan = methods.get("dp_sgd_global").plan(
    settings(optimizer=optax.sgd(0.1), bound=4.0, l2_clip=2.0, steps=5),
    sizes,
    accounting.Budget(1.0, 1e-5),
  )
  made = _optimizers.optimizer_of(plan.config)
  updates, _ = made.update(jnp.ones(3), made.init(jnp.ones(3)), jnp.ones(3))
  np.testing.assert_allclose(updates, -0.1 * 2 / 4, rtol=1e-6)


@pytest.mark.slow
def test_a_release_with_an_object_is_written_down_and_resumes(tmp_path):
  method = methods.get("dp_sgd")
  people = methods.Population(PEOPLE, ("no", "yes"), ("all",))
  for optimizer, told in ((CHAIN, None), (optax.sgd(0.1), "optimizer")):
    settings = method.settings(optimizer=optimizer, steps=2, batch_size=10)
    plan = method.plan(settings, people.sizes, accounting.Budget(5.0, 1e-3))
    if told is None:
      first = method.release(plan, people, folder=tmp_path, key=jax.random.key(0))
      again = method.release(plan, people, folder=tmp_path, key=jax.random.key(0))
      assert first.settings["optimizer"] == "own"
      np.testing.assert_array_equal(first.scores(PEOPLE.x), again.scores(PEOPLE.x))
    else:
      with pytest.raises(checks.JaxfairError, match=told):
        method.release(plan, people, folder=tmp_path, key=jax.random.key(0))
