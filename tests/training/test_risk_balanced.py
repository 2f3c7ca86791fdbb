"""The penalty by brute force, its limits, and what may be said of its cost."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import checks, models, tree
from jaxfair.analysis import closeness
from jaxfair.analysis._by_group import mean_by_group
from jaxfair.training import DpSgdConfig, calibrate, dp_sgd, fit_many, risk_penalty, train_to_budget
from jaxfair.training._regularizers import UncoveredError
from jaxfair.training._risk_balanced import clipped_part_event

MODEL = models.logistic(3)
PEOPLE = people()
LOSS = models.cross_entropy
CONFIG = DpSgdConfig(learning_rate=0.5, steps=4, batch_size=8)


def penalty(**change):
  settings = {"num_groups": 2, "public": True, **change}
  return risk_penalty(MODEL, LOSS, PEOPLE, **settings)


def with_penalty(**change):
  return dataclasses.replace(CONFIG, penalties=(penalty(**change),))


def brute_force(params, clip, gammas):
  """Every gradient built, clipped and averaged; traces of whole Hessians."""

  def one(p, x, y):
    return LOSS(MODEL.apply(p, x[None]), y[None])[0]

  each = jax.vmap(jax.grad(one), (None, 0, 0))(params, PEOPLE.x, PEOPLE.y)
  g = jnp.concatenate([leaf.reshape(PEOPLE.size, -1) for leaf in jax.tree.leaves(each)], axis=1)
  norm = jnp.linalg.norm(g, axis=1, keepdims=True)
  clipped = g * jnp.minimum(1.0, clip / norm)
  f = jax.nn.softmax(MODEL.apply(params, PEOPLE.x))
  trace = (1 - jnp.sum(f**2, 1)) * (jnp.sum(PEOPLE.x**2, 1) + 1)
  total = 0.0
  for a in (0, 1):
    own = np.flatnonzero(PEOPLE.group == a)
    ahead = g[own].mean(0) - g.mean(0)
    total += gammas[0] * jnp.abs(ahead @ (g.mean(0) - clipped.mean(0)))
    total += gammas[1] * jnp.abs(trace[own].mean() - trace.mean())
  return total


@pytest.mark.slow
def test_value_and_gradient_are_those_of_the_formula():
  ours = penalty(clip_weight=0.7, noise_weight=0.3, form="trace")

  @jax.jit
  def both(params):
    return [
      jax.value_and_grad(value)(params)
      for value in (
        lambda p: ours.value(p, PEOPLE, l2_clip=0.8),
        lambda p: brute_force(p, 0.8, (0.7, 0.3)),
      )
    ]

  (value, found), (expected, gradient) = both(moved(MODEL, PEOPLE))
  np.testing.assert_allclose(value, expected, rtol=1e-4)
  for name in found:
    np.testing.assert_allclose(found[name], gradient[name], rtol=1e-3, atol=1e-5)


def test_the_cheap_form_balances_closeness_and_leaves_out_empty_groups():
  params = moved(MODEL, PEOPLE)
  ours = penalty(clip_weight=None, num_groups=3)

  @jax.jit
  def both(params):
    close = closeness(MODEL.apply(params, PEOPLE.x))
    gaps = mean_by_group(close, PEOPLE.group, 2).gap
    value = functools.partial(ours.value, people=PEOPLE, l2_clip=1.0)
    return jnp.sum(gaps), jax.value_and_grad(value)(params)

  expected, (value, gradient) = both(params)
  np.testing.assert_allclose(value, expected, rtol=1e-5)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_a_sample_holds_every_group_and_its_shares_make_means_unbiased():
  """Group 1 has 3 of 24 people: a plain sample of 6 would miss it nearly every second time."""
  few = PEOPLE._replace(group=np.repeat([0, 1], [21, 3]))
  ours = risk_penalty(MODEL, LOSS, few, num_groups=3, public=True, sample=13)
  values = np.random.default_rng(4).normal(size=24)
  rows, shares = jax.vmap(ours._strata)(jax.random.split(jax.random.key(1), 4000))
  assert rows.shape == (4000, 8)  # 13 // 3 of each of the two groups that occur
  assert (few.group[rows] == np.repeat([0, 1], 4)).all()
  np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
  drawn = (values[rows] * shares).sum(1)
  error = drawn.std() / 4000**0.5
  assert abs(drawn.mean() - values.mean()) < 5 * error < 0.05
  # With everybody once, shares are equal and the value is that of all people.
  params = moved(MODEL, PEOPLE)
  equal = jnp.full(24, 1 / 24)
  both = [ours.value(params, few, l2_clip=0.8, shares=own) for own in (None, equal)]
  assert both[0] == both[1]
  # A person who stands for two is two people.
  twice = few.take(np.append(np.arange(24), 23))
  weighted = jnp.append(jnp.full(23, 1 / 25), 2 / 25)
  clip = functools.partial(ours.clipping_gaps, params, l2_clip=0.8)
  majority = [clip(twice, jnp.full(25, 1 / 25))[0], clip(few, weighted)[0]]
  np.testing.assert_allclose(*majority, rtol=1e-4)


@pytest.mark.slow
def test_weights_can_be_swept_zero_changes_nothing_and_more_closes_the_gap():
  config = dataclasses.replace(CONFIG, steps=60, noise_multiplier=0.1)
  plain = dp_sgd(MODEL, LOSS, PEOPLE, config, key=KEY)
  own = jnp.concatenate([KEY[None], jax.random.split(jax.random.key(9), 23)])
  weights = np.tile([0.0, 5.0], len(own))
  swept = dataclasses.replace(
    config, penalties=(penalty(clip_weight=None, noise_weight=weights, sample=24),)
  )
  keys = jnp.repeat(own, 2, axis=0)
  found = fit_many(MODEL, LOSS, PEOPLE, swept, keys=keys, trainer=dp_sgd)
  for name, leaf in plain.params.items():
    np.testing.assert_allclose(found.params[name][0], leaf, rtol=1e-3)

  def gap(params):
    close = closeness(MODEL.apply(params, PEOPLE.x))
    return float(jnp.sum(mean_by_group(close, PEOPLE.group, 2).gap))

  gaps = np.array([gap(tree.take(found.params, i)) for i in range(len(weights))])
  unbalanced, balanced = gaps[::2], gaps[1::2]
  # One training is mostly its noise. Over keys the gap is halved, with a
  # standard error of 0.08 of it: three of them are left.
  assert balanced.mean() < 0.75 * unbalanced.mean()


@pytest.mark.slow
def test_public_people_cost_nothing():
  assert with_penalty().event(24) == CONFIG.event(24)
  budget = {"epsilon": 2.0, "delta": 1e-3}
  noise = calibrate(with_penalty(), 24, **budget).noise_multiplier
  assert noise == calibrate(CONFIG, 24, **budget).noise_multiplier


def test_private_people_have_no_epsilon_unless_asked_for_by_name():
  config = with_penalty(public=False)
  with pytest.raises(UncoveredError, match="no epsilon covers"):
    config.event(24)
  with pytest.raises(UncoveredError, match="no epsilon covers"):
    calibrate(config, 24, epsilon=1.0, delta=1e-3)
  with pytest.raises(UncoveredError, match="no epsilon covers"):
    train_to_budget(MODEL, LOSS, PEOPLE, config, epsilon=1.0, delta=1e-3)
  assert clipped_part_event(config, 24) == CONFIG.event(24)


def test_a_resumed_training_must_hold_the_same_people():
  other = PEOPLE._replace(x=PEOPLE.x + 1)
  told = str(penalty())
  assert told == str(penalty())
  assert told != str(risk_penalty(MODEL, LOSS, other, num_groups=2, public=True))


def test_refuses():
  for change, message in (
    ({"public": 1}, "public=1 must be True or False"),
    ({"form": "tracy"}, "did you mean trace"),
    ({"clip_weight": -1.0}, "clip_weight=-1.0"),
    ({"clip_weight": None, "noise_weight": None}, "both None"),
    ({"num_groups": 1}, "examples.group has ids"),
    ({"sample": 1}, "sample=1 .*shared out among the groups"),
  ):
    with pytest.raises(checks.ArgumentError, match=message):
      penalty(**change)
  with pytest.raises(checks.ArgumentError, match="another model"):
    dp_sgd(models.mlp(2, 3), LOSS, PEOPLE, with_penalty(), key=KEY)
