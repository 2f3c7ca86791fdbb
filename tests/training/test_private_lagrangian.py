"""PF-LD: exact without noise, priced with it, and what it refuses."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from jaxfair import accounting, checks, models
from jaxfair.accounting import _dp_sgd, _gaussian
from jaxfair.fairness import constraints
from jaxfair.privacy._sampling import Batch
from jaxfair.training import PrivateLagrangianConfig, private_lagrangian
from jaxfair.training._private_lagrangian import (
  PrivateLagrangianProgram,
  _Feed,
  _Inputs,
  _State,
  _Sums,
)
from jaxfair.types import Examples

KEY = jax.random.key(2)
MODEL = models.logistic(2)
LOSS = models.cross_entropy
ODDS = constraints.equalized_odds(2)


def make(n=60, seed=0):
  rng = np.random.default_rng(seed)
  group = rng.integers(0, 2, n).astype(np.int32)
  y = (rng.random(n) < np.where(group == 1, 0.3, 0.7)).astype(np.int32)
  x = rng.normal(size=(n, 3)).astype(np.float32)
  x[:, 0] += y + 0.5 * group
  return Examples(x, y, group)


PEOPLE = make()
EXACT = PrivateLagrangianConfig(
  constraint=ODDS,
  learning_rate=0.3,
  dual_rate=2.0,
  tolerance=0.01,
  l2_clip=1e3,
  noise_multiplier=0.0,
  dual_noise=0.0,
  count_noise=0.0,
  rounds=3,
  steps_per_round=2,
  batch_size=60,
  optimizer=optax.sgd,
)


@pytest.mark.slow
def test_without_noise_it_follows_the_lagrangian():
  found = private_lagrangian(MODEL, LOSS, PEOPLE, EXACT, key=KEY)
  params = MODEL.init(KEY, PEOPLE.x[0])
  up = down = np.zeros((2, 2, 1))

  def gaps(params, statistic):
    scores = MODEL.apply(params, PEOPLE.x)
    return ODDS.gaps(statistic(scores, PEOPLE.y), PEOPLE.y, PEOPLE.group).gap

  @jax.jit
  @jax.grad
  def slope(params, signed):
    loss = jnp.mean(LOSS(MODEL.apply(params, PEOPLE.x), PEOPLE.y))
    return loss + jnp.sum(signed * gaps(params, ODDS.statistic))

  for turn in range(3):
    for _ in range(2):
      step = slope(params, up - down)
      params = jax.tree.map(lambda p, g: p - 0.3 * g, params, step)
    gap = np.asarray(gaps(params, ODDS.decision))
    np.testing.assert_allclose(found.trace.gaps[turn], gap, atol=1e-5)
    up = np.maximum(0, up + 2.0 * (gap - 0.01))
    down = np.maximum(0, down + 2.0 * (-gap - 0.01))
  assert np.abs(up - down).max() > 0.1  # the constraints were at work
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found.params, params)


def test_only_clipped_and_noised_terms_know_groups():
  # Nothing can pass a clip of almost 0 and infinitely slow multipliers.
  config = dataclasses.replace(EXACT, l2_clip=1e-12, dual_rate=1e-12)
  both = [
    private_lagrangian(MODEL, LOSS, who, config, key=KEY).params
    for who in (PEOPLE, PEOPLE._replace(group=1 - PEOPLE.group))
  ]
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), *both)


@pytest.mark.slow
def test_what_is_computed_without_noise_does_not_tell_the_secret_sample():
  """Amplified only while nobody knows who was sampled; the loss would tell."""
  config = dataclasses.replace(EXACT, batch_size=15, rounds=100, steps_per_round=5)
  names = ("secret", "primal", "dual", "public")
  keys = {name: jax.random.fold_in(KEY, i) for i, name in enumerate(names)}
  program, inputs = PrivateLagrangianProgram(MODEL, LOSS), _Inputs(PEOPLE, config, None, None, None)
  feeds, _ = jax.jit(lambda keys: program.feed(keys, inputs, 0, config.rounds))(keys)

  def drawn(batch):
    rows, mask = (np.asarray(a).reshape(500, -1) for a in batch)
    table = np.zeros((500, 61))
    np.put_along_axis(table, np.where(mask, rows, 60), 1.0, axis=1)
    return table[:, :60] - 0.25

  shared = np.mean(drawn(feeds.public) * drawn(feeds.secret)) / (0.25 * 0.75)
  assert abs(shared) < 6 / math.sqrt(500 * 60)


@pytest.mark.slow
def test_noise_has_the_size_it_is_charged_for():
  def variance(draws, sigma):
    # A sample variance of m normal draws has relative error sqrt(2 / m).
    assert abs(draws.var() / sigma**2 - 1) < 6 * math.sqrt(2 / draws.size)

  @jax.vmap
  def train(key):
    return private_lagrangian(MODEL, LOSS, PEOPLE, config, key=key)

  keys = jax.random.split(KEY, 1000)
  base = dataclasses.replace(EXACT, rounds=2, steps_per_round=1, l2_clip=0.5)
  # Multipliers that do not move: gaps differ by the noise on sums alone.
  config = dataclasses.replace(base, dual_noise=0.5, dual_rate=0.0)
  found = train(keys)
  sizes = np.asarray(found.trace.sizes[0])
  gaps = np.asarray(found.trace.gaps[:, 0]) * sizes[..., None]
  variance(gaps - gaps.mean(axis=0), 0.5 * math.sqrt(2))
  # The second step alone has prices, and noise of C times half their range.
  config = dataclasses.replace(base, noise_multiplier=0.1)
  found = train(keys)
  up, down = np.asarray(found.trace.multipliers[0, 0])[..., 0]
  price = 60 * (up - down) / sizes
  reach = (price.max(axis=1) - price.min(axis=1)).max() / 2
  assert reach > 0.1
  weights = np.concatenate(
    [leaf.reshape(1000, -1) for leaf in jax.tree.leaves(found.params)], axis=1
  )
  variance(weights - weights.mean(axis=0), 0.3 / 60 * 0.1 * 0.5 * reach)
  config = dataclasses.replace(base, count_noise=0.5, dual_rate=0.0)
  counts = np.bincount(2 * PEOPLE.y + PEOPLE.group, minlength=4)
  apart = np.asarray(train(keys).trace.sizes).reshape(-1, 4) - counts
  variance(apart, 0.5 * math.sqrt(2))


def test_noise_does_not_vanish_where_float32_ends():
  config = dataclasses.replace(EXACT, noise_multiplier=0.3, l2_clip=2.0**-125)
  sums = {"w": jnp.full((3, 2), 2.0**-120), "b": jnp.zeros(2)}
  zeros = jax.tree.map(jnp.zeros_like, sums)
  inputs = _Inputs(PEOPLE, config, None, jnp.ones((2, 2)), jnp.ones(2))
  program = PrivateLagrangianProgram(MODEL, LOSS)

  @jax.jit
  def released(config, key):
    total = _Sums(zeros, zeros, sums, jnp.float32(1.0))
    return program.release(total, None, _Feed(None, None, key), inputs._replace(config=config))

  first, second = (released(config, jax.random.key(i)) for i in range(2))
  assert np.all(np.asarray(first["w"]) != np.asarray(second["w"]))
  exact = released(dataclasses.replace(config, noise_multiplier=0.0), KEY)
  np.testing.assert_array_equal(exact["w"], sums["w"] / config.batch_size)


def test_one_group_changed_moves_what_the_noise_is_scaled_to():
  notion = constraints.demographic_parity(3, 3)  # d = 3
  model = models.logistic(3)
  rng = np.random.default_rng(1)
  people = Examples(
    (3 * rng.normal(size=(8, 2))).astype(np.float32),
    rng.integers(0, 3, 8).astype(np.int32),
    rng.integers(0, 3, 8).astype(np.int32),
  )
  params = jax.tree.map(
    lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32), model.init(KEY, people.x[0])
  )
  config = dataclasses.replace(EXACT, constraint=notion, l2_clip=0.05)
  multipliers = jnp.asarray(rng.random((2, 1, 3, 3)), jnp.float32)
  state = _State(params, None, multipliers)
  prices = 8 * (multipliers[0] - multipliers[1])[0] / 2.5
  beyond = prices - (prices.max(axis=0) + prices.min(axis=0)) / 2
  reach = float(jnp.linalg.norm(beyond, axis=-1).max())

  @jax.jit
  def released(group):
    inputs = _Inputs(
      people._replace(group=group), config, None, jnp.full((1, 3), 2.5), jnp.array([8])
    )
    everybody = Batch(jnp.arange(8), jnp.ones(8, bool))
    program = PrivateLagrangianProgram(model, LOSS)
    term = program._priced(params, everybody, inputs, lambda stratum, group: beyond[group])
    _, (gaps, _) = program.dual(state, KEY, inputs)
    return ravel_pytree(term)[0], 2.5 * gaps.ravel()

  neighbors = np.tile(people.group, (8, 3, 1))
  for person in range(8):
    neighbors[person, :, person] = np.arange(3)
  terms, sums = jax.vmap(jax.vmap(released))(jnp.asarray(neighbors))

  def farthest(values):
    return np.linalg.norm(values[:, :, None] - values[:, None], axis=-1).max()

  # Twice what one person adds; and that is no idle bound.
  assert reach * 0.05 < farthest(np.asarray(terms)) <= 2 * reach * 0.05
  assert 1 < farthest(np.asarray(sums)) <= math.sqrt(2 * 3)


def test_what_is_no_number_tells_nobody_s_group():
  def broken(scores, y):
    return jnp.where(jnp.arange(len(y)) == 0, jnp.nan, jax.nn.sigmoid(scores[:, 1]))

  notion = constraints.equal_losses(2, broken, bound=1.0)
  config = dataclasses.replace(EXACT, constraint=notion, rounds=1)
  found = private_lagrangian(MODEL, LOSS, PEOPLE, config, key=KEY)
  assert np.isfinite(found.trace.gaps).all()


@pytest.mark.slow
def test_statistics_stay_within_the_bound_the_noise_is_scaled_to():
  def far(scores, y):
    return jnp.where(jnp.arange(len(y)) == 0, 50.0, 0.0 * scores[:, 1])

  notion = constraints.equal_losses(2, far, bound=1.0)
  config = dataclasses.replace(EXACT, constraint=notion, rounds=1)
  found = private_lagrangian(MODEL, LOSS, PEOPLE, config, key=KEY)
  own = PEOPLE.group == PEOPLE.group[0]  # in whose sum the statistic is 1
  gap = np.asarray(found.trace.gaps)[0, 0, PEOPLE.group[0], 0]
  assert gap == pytest.approx(1 / own.sum() - 1 / 60, rel=1e-5)


def test_every_step_round_and_size_is_charged():
  config = dataclasses.replace(
    EXACT, noise_multiplier=1.5, dual_noise=20.0, count_noise=15.0, batch_size=6
  )
  primal, dual, sizes, _ = config.event(60).events
  cap = config.sampler(60).max_batch
  assert primal == accounting.DpSgd(1.5, 0.1, 3 * 2, 60, cap)
  assert dual == accounting.Repeated(accounting.Gaussian(20.0), 3)
  assert sizes == accounting.Gaussian(15.0)


@pytest.mark.slow
def test_the_price_is_that_of_composed_gaussians():
  config = dataclasses.replace(
    EXACT, noise_multiplier=1.5, dual_noise=20.0, count_noise=15.0, batch_size=6
  )
  delta = 1e-5
  found = config.guarantee(60, delta=delta).epsilon
  assert config.guarantee(60, delta=delta).relation.value == "attribute"
  # The unsampled part alone is one Gaussian: a lower bound.
  signal = math.sqrt(3 / 20.0**2 + 1 / 15.0**2)
  least = _gaussian.gaussian_epsilon(sigma=1 / signal, delta=delta)
  # Without amplification all of it is one Gaussian; a group changed moves a
  # clipped sum by twice the clip.
  signal = math.sqrt(signal**2 + 6 * (2 / 1.5) ** 2)
  most = _gaussian.gaussian_epsilon(sigma=1 / signal, delta=delta)
  assert least < found < most
  sampled = _dp_sgd.dp_sgd_epsilon(
    noise_multiplier=1.5,
    sampling_rate=0.1,
    steps=6,
    delta=delta / 2,
    relation=accounting.Relation.ATTRIBUTE,
  )
  rest = _gaussian.gaussian_epsilon(sigma=1 / math.sqrt(3 / 20.0**2 + 1 / 15.0**2), delta=delta / 2)
  assert found <= sampled + rest + 1e-6


@pytest.mark.slow
def test_calibration_meets_the_budget():
  epsilon = 0.5
  config = PrivateLagrangianConfig(constraint=ODDS, rounds=5, batch_size=100)
  found = config.calibrated(4000, epsilon=epsilon, delta=1e-5)
  spent = found.guarantee(4000, delta=1e-5).epsilon
  assert 0.999 * epsilon < spent <= epsilon


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"constraint": lambda p, b: p}, "must be a notion"),
    ({"constraint": None}, "must be a notion"),
    ({"constraint": constraints.equal_losses(2, LOSS)}, "has no bound"),
    ({"batch_size": 100}, "batch_size=100"),
    ({"dual_noise": -1.0}, "dual_noise=-1"),
    ({"loop": "steps"}, "loop='steps'"),
    ({"proximity": 1.0}, "pass anchor"),
  ],
)
def test_what_cannot_be_protected_is_refused(changes, told):
  config = dataclasses.replace(EXACT, **changes)
  with pytest.raises(checks.ArgumentError, match=told):
    private_lagrangian(MODEL, LOSS, PEOPLE, config, key=KEY)
