"""The optax transformation: one's own loop gives what dp_sgd gives, in law."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks
from jaxfair.training import privatize

OPTIONS = {"sensitivity": 2.0, "noise_multiplier": 3.0, "expected_batch_size": 10.0}


@pytest.mark.slow
def test_update_is_sum_plus_noise_over_the_constant():
  transform = privatize(**OPTIONS, key=jax.random.key(0))
  total = {"w": jnp.full((2000,), 5.0), "b": jnp.full((3000,), -1.0)}
  state = transform.init(total)
  first, state = transform.update(total, state)
  second, state = transform.update(total, state)
  noise = np.concatenate([first["w"] - 0.5, first["b"] + 0.1])
  assert abs(noise.std() / 0.6 - 1) < 6 / np.sqrt(2 * 5000)
  assert abs(noise.mean()) < 6 * 0.6 / np.sqrt(5000)
  again = np.concatenate([second["w"] - 0.5, second["b"] + 0.1])
  assert abs(np.corrcoef(noise, again)[0, 1]) < 6 / np.sqrt(5000)


def test_chains_with_an_optimizer_under_jit():
  optimizer = optax.chain(
    privatize(**(OPTIONS | {"noise_multiplier": 0.0}), key=jax.random.key(0)), optax.sgd(0.5)
  )
  params = {"w": jnp.ones(3)}
  state = optimizer.init(params)
  updates, _ = jax.jit(optimizer.update)({"w": jnp.full(3, 4.0)}, state, params)
  np.testing.assert_allclose(updates["w"], -0.2, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_refused(name):
  with pytest.raises(checks.ArgumentError, match=name):
    privatize(**(OPTIONS | {name: -1.0}), key=jax.random.key(0))


def test_a_key_is_required():
  with pytest.raises(checks.ArgumentError, match="random key"):
    privatize(**OPTIONS, key=None)


PARAMS = {"w": jnp.ones(3), "b": jnp.ones(2)}
MANY = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), PARAMS)
KEYS = jax.random.split(jax.random.key(1), 4)


def one(key=KEYS[0]):
  return privatize(**OPTIONS, key=key)


def test_one_transformation_is_for_one_state():
  transform = one()
  transform.init(PARAMS)
  with pytest.raises(checks.ArgumentError, match="called before"):
    transform.init(PARAMS)


@pytest.mark.parametrize(
  "traced",
  [
    lambda init: jax.vmap(init)(MANY),
    lambda init: jax.jit(init)(PARAMS),
    lambda init: jax.eval_shape(init, PARAMS),
  ],
)
def test_a_traced_init_needs_a_traced_key(traced):
  with pytest.raises(checks.ArgumentError, match="same noise"):
    traced(one().init)


@pytest.mark.slow
def test_members_with_keys_of_their_own_have_noise_of_their_own():
  transform = one()
  states = jax.vmap(lambda key: one(key).init(PARAMS))(KEYS)
  first, states = jax.vmap(transform.update)(MANY, states)
  second, _ = jax.vmap(transform.update)(MANY, states)
  drawn = np.concatenate([first["w"], second["w"]])
  assert len(np.unique(drawn)) == drawn.size


@pytest.mark.parametrize("wrap", [lambda update: update, jax.jit])
def test_members_that_share_a_state_are_refused(wrap):
  transform = one()
  state = transform.init(PARAMS)
  mapped = jax.vmap(wrap(transform.update), in_axes=(0, None))
  with pytest.raises(checks.ArgumentError, match="share their noise"):
    mapped(MANY, state)


@pytest.mark.parametrize(
  "wrapped",
  [
    lambda: optax.masked(one(), {"w": True, "b": False}),
    lambda: optax.multi_transform(
      {"one": one(KEYS[0]), "two": one(KEYS[1])}, {"w": "one", "b": "two"}
    ),
  ],
)
def test_all_parameters_get_noise_or_none(wrapped):
  with pytest.raises(checks.ArgumentError, match="chain it before"):
    wrapped().init(PARAMS)


@pytest.mark.slow
def test_what_masks_or_accumulates_goes_around_or_behind():
  behind = optax.masked(optax.add_decayed_weights(0.1), {"w": True, "b": False})
  quiet = privatize(**(OPTIONS | {"noise_multiplier": 0.0}), key=jax.random.key(0))
  optimizer = optax.MultiSteps(optax.chain(quiet, behind, optax.sgd(1.0)), 2, use_grad_mean=False)
  state = optimizer.init(PARAMS)
  for _ in range(2):
    updates, state = optimizer.update(PARAMS, state, PARAMS)
  np.testing.assert_allclose(updates["w"], -(2 / 10 + 0.1), rtol=1e-6)
  np.testing.assert_allclose(updates["b"], -2 / 10, rtol=1e-6)
