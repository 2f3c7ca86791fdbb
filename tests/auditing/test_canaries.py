"""Gradient canaries: ordinary records to the trainer, plain to the auditor."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.crowds import crowd
from jaxfair import auditing, checks, data, models, training
from jaxfair.privacy._clip_factors import ROUNDING_MARGIN
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.training import DpSgdConfig, dp_sgd


def people(shape=(4,), n=30, dtype=np.float32):
  own = crowd(n, shape, classes=3, scale=4.0)
  return own._replace(x=own.x.astype(dtype))


def added(examples, model=models.logistic(3), num_canaries=6, **settings):
  return auditing.gradient_canaries(
    model, models.cross_entropy, examples, num_canaries=num_canaries, **settings
  )


COINS = np.array([1, 0, 0, 1, 1, 0], bool)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
@pytest.mark.parametrize("shape", [(4,), (3, 2)])
def test_each_canary_moves_its_own_coordinate_by_the_clip_bound(method, shape):
  examples, l2_clip = people(shape), 0.7
  model = models.mlp((5,), 3)
  canaries = added(examples, model)
  rows = canaries.hide(examples, COINS)
  params = jax.jit(canaries.model.init)(jax.random.key(1), rows.x[0])
  gradient = clipped_grad(canaries.model, canaries.loss, l2_clip=l2_clip, method=method)
  found = jax.jit(gradient)(params, rows)
  bound = np.float32(ROUNDING_MARGIN * l2_clip)
  np.testing.assert_allclose(found.total["canaries"][:, 0], np.where(COINS, bound, 0.0), rtol=1e-6)
  # The people train the same model as without canaries.
  alone = jax.jit(clipped_grad(model, models.cross_entropy, l2_clip=l2_clip, method=method))(
    params["model"], examples
  )
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    found.total["model"],
    alone.total,
  )
  np.testing.assert_array_equal(found.norms[30:] > 0, COINS)  # an empty record contributes nothing
  assert found.num_nonfinite == 0


def test_rows_tell_people_canaries_and_empty_records_apart():
  examples = people((2, 2))
  rows = added(examples).hide(examples, COINS)
  assert rows.x.shape == (36, 5)
  np.testing.assert_array_equal(rows.x[:30, :4], examples.x.reshape(30, 4))
  np.testing.assert_array_equal(rows.x[30:, -1], [1, -1, -1, 4, 5, -1])
  assert not rows.x[:30, -1].any()
  assert not rows.x[30:, :-1].any()
  assert rows.y.shape == rows.group.shape == (36,)


def test_integer_features_stay_integers():
  examples = people(dtype=np.int32)
  rows = added(examples).hide(examples, COINS)
  assert rows.x.dtype == jnp.int32
  np.testing.assert_array_equal(rows.x[:30, :4], examples.x)


def test_coins_are_fair_and_follow_the_key():
  canaries = added(people(), num_canaries=10_000)
  coins = canaries.flip(key=jax.random.key(0))
  assert coins.dtype == bool
  assert abs(float(coins.mean()) - 0.5) < 5.5 * 0.005
  other = canaries.flip(key=jax.random.key(1))
  assert 0.4 < float((coins == other).mean()) < 0.6


CONFIG = DpSgdConfig(learning_rate=0.5, l2_clip=2.0, noise_multiplier=0.8, steps=5, batch_size=12)


def trained(canaries, examples, config, seed=0):
  return dp_sgd(
    canaries.model, canaries.loss, canaries.hide(examples, COINS), config, key=jax.random.key(seed)
  )


@pytest.mark.slow
def test_an_unchanged_trainer_takes_them_and_its_scores_order_them():
  examples, config = people(), dataclasses.replace(CONFIG, noise_multiplier=0.0)
  canaries = added(examples)
  scores = canaries.scores(trained(canaries, examples, config).params)
  assert np.asarray(scores[COINS]).min() > 0
  np.testing.assert_array_equal(scores[~COINS], 0.0)


def record(noise=0.8, optimizer=optax.sgd):
  return auditing.likelihood_recorder(
    optimizer, sampling_rate=12 / 36, noise_multiplier=noise, l2_clip=2.0, batch_size=12
  )


def test_the_recorder_adds_up_log_likelihood_ratios():
  """Against a mixture of normal densities, by SciPy's definition."""
  from scipy import stats

  rng = np.random.default_rng(1)
  seen = rng.normal(0.3, 0.8, size=(7, 6, 1))  # noisy sums over the clip bound
  optimizer = record()(0.1)
  params = {"model": jnp.ones(2), "canaries": jnp.zeros((6, 1))}
  state = optimizer.init(params)
  for one in seen:
    gradient = {"model": jnp.ones(2), "canaries": jnp.asarray(one * 2.0 / 12)}
    updates, state = optimizer.update(gradient, state, params)
    params = optax.apply_updates(params, updates)
  q = 12 / 36
  there = q * stats.norm.pdf(seen, 1, 0.8) + (1 - q) * stats.norm.pdf(seen, 0, 0.8)
  expected = np.log(there / stats.norm.pdf(seen, 0, 0.8)).sum(0)[:, 0]
  np.testing.assert_allclose(-params["canaries"][:, 0], expected, rtol=1e-4)
  np.testing.assert_allclose(params["model"], 1 - 7 * 0.1, rtol=1e-6)


def test_full_batches_make_the_ratio_linear():
  optimizer = auditing.likelihood_recorder(
    optax.sgd, sampling_rate=1.0, noise_multiplier=2.0, l2_clip=1.0, batch_size=4
  )(0.1)
  params = {"model": jnp.zeros(1), "canaries": jnp.zeros((2, 1))}
  gradient = {"model": jnp.zeros(1), "canaries": jnp.array([[0.25], [-0.5]])}
  updates, _ = optimizer.update(gradient, optimizer.init(params), params)
  np.testing.assert_allclose(-updates["canaries"][:, 0], [0.5 / 4, -2.5 / 4], rtol=1e-6)


@pytest.mark.slow
def test_the_recorder_trains_the_model_as_the_optimizer_does():
  examples, optimizer = people(), optax.adam
  canaries = added(examples)
  plain = dataclasses.replace(CONFIG, optimizer=optimizer)
  recorded = dataclasses.replace(CONFIG, optimizer=record(optimizer=optimizer))
  fits = [trained(canaries, examples, config) for config in (plain, recorded)]
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    fits[0].params["model"],
    fits[1].params["model"],
  )


def test_separation_is_that_of_the_recorded_evidence():
  """Means apart by mu standard deviations, for many steps of little signal."""
  q, noise, steps = 0.1, 2.0, 400
  rng = np.random.default_rng(0)
  there = rng.random((4000, steps)) < q
  evidence = []
  for joined in (np.zeros_like(there), there):
    seen = joined + noise * rng.normal(size=there.shape)
    ratio = np.exp((seen - 0.5) / noise**2)
    evidence.append(np.log1p(q * (ratio - 1)).sum(1))
  spread = math.sqrt((evidence[0].var() + evidence[1].var()) / 2)
  found = (evidence[1].mean() - evidence[0].mean()) / spread
  planned = auditing.likelihood_separation(sampling_rate=q, noise_multiplier=noise, steps=steps)
  assert planned == pytest.approx(found, abs=0.12)  # 5 standard errors
  whole = auditing.likelihood_separation(sampling_rate=1.0, noise_multiplier=0.1, steps=4)
  assert whole == pytest.approx(20.0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 4.0, 8.0])
def test_one_training_shows_at_least_thirty_percent_of_its_epsilon(epsilon):
  delta, m, seeds = 1e-5, 4000, 8
  examples = data.two_gaussians((2000, 2000), key=jax.random.key(0)).examples
  canaries = auditing.gradient_canaries(
    models.logistic(2), models.cross_entropy, examples, num_canaries=m
  )
  config = training.calibrate(
    DpSgdConfig(learning_rate=0.5, steps=200, batch_size=800), 8000, epsilon=epsilon, delta=delta
  )
  noise = config.noise_multiplier
  recorder = auditing.likelihood_recorder(
    optax.sgd, sampling_rate=0.1, noise_multiplier=noise, l2_clip=1.0, batch_size=800
  )
  config = dataclasses.replace(config, optimizer=recorder)
  guesses = auditing.plan_guesses(
    m,
    delta=delta,
    separation=auditing.likelihood_separation(sampling_rate=0.1, noise_multiplier=noise, steps=200),
  )

  @jax.jit
  def run(key):
    coins = canaries.flip(key=jax.random.fold_in(key, 0))
    fitted = dp_sgd(
      canaries.model,
      canaries.loss,
      canaries.hide(examples, coins),
      config,
      key=jax.random.fold_in(key, 1),
    )
    return canaries.scores(fitted.params), coins

  bounds = []
  for seed in range(seeds):
    scores, coins = map(np.asarray, run(jax.random.key(seed)))
    found = auditing.audit_one_run(scores, coins, delta=delta, guesses=guesses)
    bounds.append(found.epsilon)
    sure = auditing.audit_one_run(scores, coins, delta=delta, guesses=guesses, confidence=1 - 1e-8)
    assert sure.epsilon <= epsilon
  # One bound deviates by 0.08 of epsilon between seeds, a mean of 8 by 0.03.
  assert np.mean(bounds) > 0.3 * epsilon


@pytest.mark.parametrize(
  ("call", "told"),
  [
    (lambda: added(people(), num_canaries=0), "num_canaries=0 must be at"),
    (lambda: added(people(), norm=0.0), "norm=0.0 must be above 0"),
    (lambda: added(people()).hide(people(), COINS[:3]), "each of the 6"),
    (lambda: added(people()).flip(key=3), "key must be a random key"),
    (lambda: record(noise=0.0), "noise_multiplier=0.0 must be above 0"),
  ],
)
def test_what_makes_no_canary_is_refused(call, told):
  with pytest.raises(checks.ArgumentError, match=told):
    call()
