"""Audits of mechanisms whose epsilon is known."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import accounting, checks, privacy
from jaxfair.auditing import audit_mechanism
from jaxfair.auditing._mechanisms import attack_scores
from jaxfair.privacy import noise

DELTA = 1e-5


@functools.cache
def gaussian(sigma):
  return lambda value, key: noise.gaussian(value, sigma=sigma, key=key)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_gaussian_noise_shows_most_of_its_epsilon(epsilon):
  """At least 60%, and at this confidence never more than all of it."""
  sigma = accounting.gaussian_sigma(epsilon=epsilon, delta=DELTA)
  for seed in range(3):
    found = audit_mechanism(
      gaussian(sigma),
      jnp.zeros(3),
      jnp.array([1.0, 0.0, 0.0]),
      num_runs=100_000,
      delta=DELTA,
      key=jax.random.key(seed),
      method="gaussian",
      chunk=2048,
      confidence=1 - 1e-7,
    )
    assert 0.6 * epsilon < found.epsilon <= epsilon
    assert found.num_runs == 100_000


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_without_assumptions_a_million_runs_show_most_of_it(epsilon):
  sigma = accounting.gaussian_sigma(epsilon=epsilon, delta=DELTA)
  shares = [
    audit_mechanism(
      gaussian(sigma),
      jnp.zeros(1),
      jnp.ones(1),
      num_runs=1_000_000,
      delta=DELTA,
      key=jax.random.key(seed),
      chunk=4096,
    ).epsilon
    / epsilon
    for seed in range(3)
  ]
  assert 0.6 < np.mean(shares) < 1


def test_laplace_noise_shows_most_of_its_epsilon():
  """Pure privacy: delta = 0, and no threshold is better than another."""

  def mechanism(value, key):
    return noise.laplace(value, scale=0.5, key=key)

  found = audit_mechanism(
    mechanism,
    jnp.zeros(1),
    jnp.ones(1),
    num_runs=100_000,
    delta=0.0,
    key=jax.random.key(0),
    confidence=1 - 1e-7,
  )
  assert 0.6 * 2.0 < found.epsilon <= 2.0


def test_randomized_response_shows_nearly_all_of_it():
  """Integers, one event: log(3) up to the width of two exact intervals."""
  keep = 0.75

  def mechanism(value, key):
    return jnp.where(jax.random.bernoulli(key, keep), value, 1 - value)

  found = audit_mechanism(
    mechanism,
    jnp.array(0),
    jnp.array(1),
    num_runs=100_000,
    delta=0.0,
    key=jax.random.key(0),
    confidence=1 - 1e-7,
  )
  assert 0.93 * math.log(3) < found.epsilon <= math.log(3)


def test_equal_inputs_show_nothing():
  found = audit_mechanism(
    gaussian(1.0),
    jnp.zeros(2),
    jnp.zeros(2),
    num_runs=4000,
    delta=DELTA,
    key=jax.random.key(0),
    confidence=1 - 1e-7,
  )
  assert found.epsilon == 0.0


@pytest.mark.slow
def test_every_run_has_its_own_key_and_chunks_do_not_matter():
  def mechanism(value, key):
    return {"noise": jax.random.normal(key, (2,)), "value": value}

  def mixed(without, present):
    del without, present
    return lambda outputs: outputs[:, 0] + math.pi * outputs[:, 1]

  found = [
    attack_scores(
      mechanism,
      jnp.zeros(1),
      jnp.ones(1),
      num_runs=1000,
      key=jax.random.key(3),
      attack=mixed,
      chunk=chunk,
    )
    for chunk in (7, 1000, 5000)
  ]
  for other in found[1:]:
    np.testing.assert_array_equal(np.stack(found[0]), np.stack(other))
  scores = np.concatenate(found[0])
  assert len(scores) == 1500  # a quarter of each taught the attack
  assert len(np.unique(scores)) == 1500


def test_attacks_are_judged_on_runs_they_have_not_seen():
  def remembers(without, present):
    known = {tuple(row) for row in present}
    del without
    return lambda rows: np.array([tuple(row) in known for row in rows], float)

  found = audit_mechanism(
    gaussian(1.0),
    jnp.zeros(2),
    jnp.zeros(2),
    num_runs=400,
    delta=0.0,
    key=jax.random.key(0),
    attack=remembers,
  )
  assert found.epsilon == 0.0


def test_neighbors_of_one_shape_share_one_compilation():
  traced = []

  def mechanism(value, key):
    traced.append(1)
    return value + jax.random.normal(key)

  for seed in range(3):
    audit_mechanism(
      mechanism, jnp.zeros(1), jnp.ones(1), num_runs=64, delta=DELTA, key=jax.random.key(seed)
    )
  assert len(traced) == 1


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"num_runs": 10}, "num_runs=10 must be at least 32"),
    ({"key": 0}, "key must be a random key"),
    ({"key": jax.random.split(jax.random.key(0))}, "an array of 2 keys"),
    ({"chunk": 0}, "chunk=0 must be at least 1"),
    ({"delta": 2.0}, "delta=2.0 must be in"),
    ({"method": "gausian"}, "did you mean gaussian"),
    ({"mechanism": 3}, "mechanism must be a function"),
    ({"second": jnp.zeros(3)}, "releases 2 numbers .* and 3"),
  ],
)
def test_what_cannot_be_audited_is_refused(change, told):
  settings = {
    "mechanism": gaussian(1.0),
    "first": jnp.zeros(2),
    "second": jnp.ones(2),
    "num_runs": 64,
    "delta": DELTA,
    "key": privacy.os_key(),
  }
  with pytest.raises(checks.ArgumentError, match=told):
    audit_mechanism(**(settings | change))
