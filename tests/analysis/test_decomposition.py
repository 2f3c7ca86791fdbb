"""The terms of Theorem 3.2 against simulations of the same step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from helpers.curved import KEY, moved, people
from jaxfair import checks, models
from jaxfair.analysis import StepSettings, decompose

PEOPLE = people(40, num_classes=2)
SETTINGS = StepSettings(learning_rate=0.05, l2_clip=0.5, noise_multiplier=4.0, sampling_rate=0.25)


def simulate(model, params, draws=8_000):
  """Changes of group losses, for plain, clipped and noisy steps on one batch.

  The noise is used with both signs, and the two changes averaged: what is odd
  in it, by far the most, has mean zero and would only hide the rest.

  Returns [draws, 3, G + 1] changes and their [draws, 3, G + 1] parts of third
  order.
  """
  flat, unravel = ravel_pytree(params)
  n = PEOPLE.size
  rate, clip, multiplier, q = SETTINGS
  member = np.stack([PEOPLE.group == 0, PEOPLE.group == 1, np.ones(n, bool)])
  weights = jnp.asarray(member / member.sum(1, keepdims=True), jnp.float32)

  def losses(v):
    return models.cross_entropy(model.apply(unravel(v), PEOPLE.x), PEOPLE.y)

  def means(v):
    return weights @ losses(v)

  gradients = jax.jit(jax.jacrev(losses))(flat)
  norms = jnp.linalg.norm(gradients, axis=1, keepdims=True)
  clipped = gradients * jnp.minimum(1.0, clip / norms)

  slopes = weights @ gradients
  expected = -rate * jnp.stack([gradients.mean(0), *[clipped.mean(0)] * 3])

  def step(key):
    key_batch, key_noise = jax.random.split(key)
    batch = jax.random.bernoulli(key_batch, q, (n,)).astype(jnp.float32)
    noise = clip * multiplier * jax.random.normal(key_noise, flat.shape)
    plain, short = batch @ gradients, batch @ clipped
    sums = jnp.stack([plain, short, short + noise, short - noise])
    return -rate / (q * n) * sums

  @jax.jit
  def changes(keys):
    steps = jax.vmap(step)(keys).reshape(-1, flat.size)
    ahead, back = (jax.vmap(lambda s, sign=sign: means(flat + sign * s))(steps) for sign in (1, -1))
    # The slope's part is known in the mean; its scatter would hide the rest.
    scatter = (steps.reshape(-1, 4, flat.size) - expected).reshape(steps.shape)
    change = ahead - means(flat) - scatter @ slopes.T
    # What is odd in the step and not its slope is of third order.
    odd = (ahead - back) / 2 - steps @ slopes.T
    found = []
    for values in (change, odd):
      values = values.reshape(-1, 4, 3)
      both = (values[:, 2:3] + values[:, 3:4]) / 2
      found.append(jnp.concatenate([values[:, :2], both], axis=1))
    return found

  return changes(jax.random.split(KEY, draws))


@pytest.mark.slow
def test_the_terms_explain_the_simulated_change_of_every_group():
  model = models.mlp(3, 2, "tanh")
  params = moved(model, PEOPLE)
  found = decompose(model, models.cross_entropy, params, PEOPLE, SETTINGS, num_groups=2)
  changes, thirds = (np.asarray(v, np.float64) for v in simulate(model, params))
  terms = [
    np.append(t.group, t.population) for t in (found.non_private, found.clipping, found.noise)
  ]
  # Plain steps; what clipping changes on the same batch; what noise changes.
  simulated = np.diff(changes, axis=1, prepend=0.0)
  remainder = np.diff(thirds, axis=1, prepend=0.0)
  for i, term in enumerate(terms):
    mean = simulated[:, i].mean(axis=0)
    error = simulated[:, i].std(axis=0) / np.sqrt(len(simulated))
    # Of the third order the mean is known too; twice it covers what follows.
    beyond = 2 * np.abs(remainder[:, i].mean(axis=0))
    allowed = 5.5 * error + beyond
    assert np.all(np.abs(mean - term) < allowed), i
    # The test can tell: terms are many times what is allowed.
    assert np.all(np.abs(term) > 5 * allowed), (i, term, allowed)
  total = np.append(found.total.group, found.total.population)
  np.testing.assert_allclose(total, sum(terms), rtol=1e-5)


def terms(settings, method, **more):
  model = models.logistic(2)
  return decompose(
    model,
    models.cross_entropy,
    moved(model, PEOPLE),
    PEOPLE,
    settings,
    num_groups=2,
    method=method,
    **more,
  )


@pytest.mark.slow
def test_probes_agree_with_whole_hessians():
  exact = terms(SETTINGS, "exact")
  probed = terms(SETTINGS, "probes", key=KEY, probes=400)
  np.testing.assert_allclose(probed.clipping_slope.group, exact.clipping_slope.group, rtol=1e-4)
  off = np.abs(probed.total.group - exact.total.group)
  assert np.all(off < 5.5 * probed.standard_error.group)
  assert not np.any(exact.standard_error.group)


def test_a_loose_clip_has_no_clipping_term_and_no_noise_no_noise_term():
  loose = SETTINGS._replace(l2_clip=1e3, noise_multiplier=0.0)
  found = terms(loose, "probes", key=KEY, probes=400)
  np.testing.assert_allclose(found.clipping.group, 0.0, atol=1e-7)
  np.testing.assert_array_equal(found.noise.group, 0.0)


def test_refuses():
  for change, more, message in (
    ({"sampling_rate": 0.0}, {}, "sampling_rate=0.0"),
    ({"l2_clip": -1.0}, {}, "l2_clip=-1.0"),
    ({}, {"method": "probes"}, "pass key="),
  ):
    with pytest.raises(checks.ArgumentError, match=message):
      terms(SETTINGS._replace(**change), **{"method": "exact", **more})
