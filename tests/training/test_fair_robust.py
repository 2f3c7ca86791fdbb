"""The fair and robust objective: its limits, its parts, what it does."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, models, robustness
from jaxfair.training import FairRobustConfig, FitConfig, fair_robust, fit
from jaxfair.training._fair_robust import group_objective
from jaxfair.types import Examples

KEY = jax.random.key(2)
MODEL = models.logistic(2)
LOSS = models.cross_entropy
PLAIN = FitConfig(learning_rate=0.1, steps=150, batch_size=64, optimizer=optax.sgd)
PGD = robustness.pgd(input_range=(-9.0, 9.0), steps=2)


class _Penalty(NamedTuple):
  def check(self, model):
    pass


NO_PENALTY = _Penalty()


def make(n=256, seed=0):
  """Group 1 is smaller, and needs the opposite of what suits group 0."""
  rng = np.random.default_rng(seed)
  group = (rng.random(n) < 0.25).astype(np.int32)
  y = rng.integers(0, 2, n).astype(np.int32)
  sign = np.where(group == 1, -0.5, 1.0)
  x = rng.normal(size=(n, 3)) * 0.7
  x[:, 0] += (2 * y - 1) * sign
  x[:, 1] += (2 * y - 1) * 0.3
  return Examples(np.clip(x, -9, 9).astype(np.float32), y, group)


PEOPLE = make()


def train(people=PEOPLE, key=KEY, plain=PLAIN, **options):
  config = FairRobustConfig(num_groups=2, plain=plain, **options)
  return fair_robust(MODEL, LOSS, people, config, key=key)


def losses(params, people=PEOPLE):
  return np.asarray(LOSS(MODEL.apply(params, people.x), people.y))


def gap(params):
  own = losses(params)
  return abs(own[PEOPLE.group == 1].mean() - own.mean())


@pytest.mark.slow
def test_without_weights_it_is_plain_training():
  ours = train().params
  plain = fit(MODEL, LOSS, PEOPLE, PLAIN, key=KEY).params
  for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.slow
def test_the_objective_by_hand():
  own = jnp.array([1.0, 3.0, 2.0, 6.0])
  group = jnp.array([0, 0, 1, 1])
  value = group_objective(own, group, num_groups=3, penalty=0.5, focus=None)
  assert float(value) == pytest.approx(3 + 0.5 * (1 + 1))  # L = 3, L_a = 2, 4
  focused = group_objective(own, group, num_groups=3, penalty=0.0, focus=2.0)
  assert float(focused) == pytest.approx((2**3 + 4**3) / 3)


@pytest.mark.slow
def test_an_empty_group_does_not_poison_the_gradient():
  def value(own):
    return group_objective(own, jnp.array([0, 0, 2]), num_groups=3, penalty=1.0, focus=1.0)

  slope = jax.grad(value)(jnp.array([1.0, 2.0, 4.0]))
  assert np.isfinite(slope).all()


@pytest.mark.slow
def test_the_focus_weighs_the_group_that_loses_most():
  def value(own):
    return group_objective(own, jnp.array([0, 1]), num_groups=2, penalty=0.0, focus=2.0)

  slope = jax.grad(value)(jnp.array([1.0, 3.0]))
  np.testing.assert_allclose(slope, [1.0, 9.0], rtol=1e-6)  # L_a^q


@pytest.mark.slow
def test_fairness_closes_the_gap():
  natural = gap(train().params)
  assert gap(train(penalty=2.0).params) < 0.5 * natural
  assert gap(train(focus=2.0).params) < 0.8 * natural


@pytest.mark.slow
def test_pgd_training_holds_against_pgd():
  plain = train().params
  hardened = train(adversary=PGD, epsilon=0.3).params
  under = []
  for params in (plain, hardened):
    found = robustness.attack(MODEL, params, PEOPLE, PGD, epsilons=(0.3,), key=KEY)
    under.append(found.loss.mean())
  assert under[1] < under[0]
  # The objective by hand: the mean loss twice, once after the worst push,
  # which for a linear model is epsilon times the slope's l1 norm.
  step = dataclasses.replace(PLAIN, steps=1, batch_size=None)
  start = {"w": jnp.asarray([[0.3, -0.2], [0.1, 0.4], [0.0, 0.5]]), "b": jnp.zeros(2)}
  config = FairRobustConfig(num_groups=2, plain=step, adversary=PGD, epsilon=0.3, robust_weight=0.5)
  found = fair_robust(MODEL, LOSS, PEOPLE, config, key=KEY, initial=start).trace.loss[0]
  away = np.where(PEOPLE.y[:, None] == 0, 1, -1) * np.sign(start["w"][:, 1] - start["w"][:, 0])
  worst = PEOPLE._replace(x=np.clip(PEOPLE.x + 0.3 * away, -9, 9))
  expected = losses(start).mean() + 0.5 * losses(start, worst).mean()
  assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_weight_decay_pulls_to_zero():
  decayed = dataclasses.replace(PLAIN, weight_decay=1.0)
  small, large = train(plain=decayed).params["w"], train().params["w"]
  assert np.linalg.norm(small) < 0.6 * np.linalg.norm(large)


@pytest.mark.slow
def test_both_loops_agree():
  stepped = dataclasses.replace(PLAIN, loop="step")
  found = [train(plain=p, penalty=1.0).params["w"] for p in (PLAIN, stepped)]
  np.testing.assert_allclose(*found, atol=1e-5)


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"epsilon": 0.1}, "needs an attack"),
    ({"penalty": -1.0}, "penalty"),
    ({"focus": -0.5}, "focus"),
    ({"plain": dataclasses.replace(PLAIN, sampling="poisson")}, "sampling"),
    ({"plain": dataclasses.replace(PLAIN, proximity=1.0)}, "proximity"),
    ({"plain": dataclasses.replace(PLAIN, penalties=(NO_PENALTY,))}, "plain.penalties"),
    (
      {"adversary": robustness.pgd(input_range=(0.0, 1.0)), "epsilon": 0.1},
      "outside the declared input_range",
    ),
    ({"people": PEOPLE._replace(group=PEOPLE.group + 1)}, "group"),
  ],
)
def test_what_cannot_be_trained_with_is_refused(options, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(**options)
