"""The optax transformation: one's own loop gives what dp_sgd gives, in law."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks
from jaxfair.training import privatise

OPTIONS = {
  "sensitivity": 2.0, "noise_multiplier": 3.0, "expected_batch_size": 10.0
}  # fmt: skip


@pytest.mark.slow
def test_update_is_sum_plus_noise_over_the_constant():
  transform = privatise(**OPTIONS, key=jax.random.key(0))
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
    privatise(**(OPTIONS | {"noise_multiplier": 0.0}), key=jax.random.key(0)),
    optax.sgd(0.5),
  )
  params = {"w": jnp.ones(3)}
  state = optimizer.init(params)
  updates, _ = jax.jit(optimizer.update)({"w": jnp.full(3, 4.0)}, state, params)
  np.testing.assert_allclose(updates["w"], -0.2, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_refused(name):
  with pytest.raises(checks.ArgumentError, match=name):
    privatise(**(OPTIONS | {name: -1.0}), key=jax.random.key(0))


def test_a_key_is_required():
  with pytest.raises(checks.ArgumentError, match="random key"):
    privatise(**OPTIONS, key=None)
