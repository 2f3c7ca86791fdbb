"""Training under constraints: limits, a solved example, what is refused."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, fairness, models, training, tree
from jaxfair.fairness import constraints
from jaxfair.training import LagrangianConfig, lagrangian
from jaxfair.types import Examples, Model

KEY = jax.random.key(5)
MODEL = models.logistic(2)
LOSS = models.cross_entropy
PARITY = constraints.demographic_parity(2)


def unequal(n=2000, seed=0):
  """Group 1 gets class 1 far less often, and one feature tells the group."""
  rng = np.random.default_rng(seed)
  group = rng.integers(0, 2, n).astype(np.int32)
  y = (rng.random(n) < np.where(group == 1, 0.25, 0.7)).astype(np.int32)
  x = rng.normal(size=(n, 4)).astype(np.float32)
  x[:, 0] += 2 * y - 1
  x[:, 1] += 2 * group - 1
  return Examples(x, y, group)


PEOPLE = unequal()
CONFIG = LagrangianConfig(constraint=PARITY, tolerance=0.03, learning_rate=0.05, batch_size=256)


SHORT = LagrangianConfig(
  constraint=PARITY, tolerance=0.03, rounds=3, steps_per_round=4, batch_size=64, dual_size=50
)


def train(config, people=PEOPLE, **options):
  return lagrangian(MODEL, LOSS, people, config, key=KEY, **options)


def told(params, people=PEOPLE):
  scores = MODEL.apply(params, people.x)
  right = float(jnp.mean(jnp.argmax(scores, -1) == people.y))
  return right, float(PARITY.largest(scores, people.y, people.group))


@pytest.fixture(scope="module")
def fair():
  return train(CONFIG)


@pytest.mark.slow
def test_the_violation_asked_for_is_reached(fair):
  free = train(LagrangianConfig(learning_rate=0.05, batch_size=256))
  assert told(free.params)[1] > 0.2
  assert told(fair.params)[1] <= 0.03
  assert free.trace.violations.shape == (50, 0)


def test_the_trace_tells_what_the_multipliers_did(fair):
  trace, config = fair.trace, CONFIG
  before = np.concatenate([np.zeros((1, 4)), trace.multipliers[:-1]])
  step = config.dual_rate * (np.asarray(trace.violations) - config.tolerance)
  np.testing.assert_allclose(trace.multipliers, np.maximum(0, before + step), atol=1e-6)
  assert (np.asarray(trace.people).sum(axis=1) == 2 * len(PEOPLE.y)).all()
  assert (np.asarray(trace.empty) == 0).all()
  # The best of the last quarter's rounds within the limit are kept.
  late = slice(37, None)
  worst = np.asarray(trace.violations).max(axis=1)[late]
  allowed = np.flatnonzero(worst <= config.tolerance)
  kept = allowed[np.argmin(np.asarray(trace.loss)[late][allowed])]
  measured = fairness.demographic_parity_difference(
    PEOPLE.y,
    np.argmax(MODEL.apply(fair.params, PEOPLE.x), -1),
    sensitive_features=PEOPLE.group,
    method="to_overall",
  )
  np.testing.assert_allclose(worst[kept], measured, atol=1e-6)


@pytest.mark.slow
def test_without_a_constraint_it_is_plain_training():
  free = train(
    LagrangianConfig(
      learning_rate=0.1,
      rounds=4,
      steps_per_round=5,
      batch_size=64,
      weight_decay=0.1,
      decay=False,
      optimizer=optax.sgd,
    )
  )
  plain = training.fit(
    MODEL,
    LOSS,
    PEOPLE,
    training.FitConfig(
      learning_rate=0.1, steps=20, batch_size=64, weight_decay=0.1, optimizer=optax.sgd
    ),
    key=KEY,
  )
  jax.tree.map(np.testing.assert_array_equal, free.params, plain.params)


class _Point:
  """theta in the plane; the loss pulls it to (2, 1)."""

  model = Model(lambda key, x: jnp.zeros(2), lambda params, x: jnp.tile(params, (len(x), 1)))

  @staticmethod
  def loss(theta, y):
    del y
    return jnp.sum(jnp.square(theta - jnp.array([2.0, 1.0])), axis=-1)


def first_coordinate(params, batch):
  del batch
  return params[:1]


def solve_point(**changes):
  config = LagrangianConfig(
    learning_rate=0.1,
    rounds=200,
    steps_per_round=10,
    batch_size=None,
    decay=False,
    optimizer=optax.sgd,
    constraint=first_coordinate,
    tolerance=0.5,
    **changes,
  )
  people = Examples(np.zeros((3, 1), np.float32), np.zeros(3), np.zeros(3))
  return config, people


@pytest.mark.slow
def test_any_function_is_a_constraint_and_kkt_holds():
  # min |theta - (2, 1)|^2 with theta_0 <= 1/2: theta = (1/2, 1), mu = 3.
  config, people = solve_point()
  found = lagrangian(_Point.model, _Point.loss, people, config, key=KEY)
  np.testing.assert_allclose(found.params, [0.5, 1.0], atol=1e-3)
  np.testing.assert_allclose(found.trace.multipliers[-1], [3.0], atol=5e-3)
  # With 2 |theta - (0, 0)|^2 on top: theta = (1/2, 1/3), mu = 3 - 2.
  config, people = solve_point(proximity=4.0)
  found = lagrangian(_Point.model, _Point.loss, people, config, key=KEY, anchor=jnp.zeros(2))
  np.testing.assert_allclose(found.params, [0.5, 1 / 3], atol=1e-3)
  np.testing.assert_allclose(found.trace.multipliers[-1], [1.0], atol=5e-3)


def test_a_start_and_a_mask_are_kept_to():
  config, people = solve_point()
  mask = jnp.array([1.0, 0.0])
  found = lagrangian(
    _Point.model, _Point.loss, people, config, key=KEY, initial=jnp.array([5.0, 5.0]), mask=mask
  )
  np.testing.assert_allclose(found.params, [0.5, 0.0], atol=1e-3)


@pytest.mark.slow
def test_a_group_nobody_is_in_changes_nothing():
  people = PEOPLE._replace(group=np.zeros_like(PEOPLE.group))
  found = train(SHORT, people).trace
  assert (np.asarray(found.empty) == 4 * 2).all()  # steps, two sides
  assert (np.asarray(found.people)[:, [1, 3]] == 0).all()
  assert (np.asarray(found.multipliers)[:, [1, 3]] == 0).all()


@pytest.mark.slow
def test_many_settings_are_one_program_and_equal_single_trainings():
  rates = np.array([0.01, 1e-3], np.float32)
  keys = jax.random.split(KEY, 2)
  many = training.fit_many(
    MODEL,
    LOSS,
    PEOPLE,
    dataclasses.replace(SHORT, learning_rate=rates),
    keys=keys,
    trainer=lagrangian,
  )
  alone = lagrangian(MODEL, LOSS, PEOPLE, SHORT, key=keys[1])
  close(tree.take(many, 1), alone)


@pytest.mark.slow
def test_both_loops_give_the_same():
  scan, step = (train(dataclasses.replace(SHORT, loop=loop)) for loop in ("scan", "step"))
  close(scan, step)
  # The multipliers looked at a sample of 50, from two sides.
  assert (np.asarray(scan.trace.people).sum(axis=1) == 100).all()


def close(ours, theirs):
  for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
    np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"tolerance": -0.1}, "tolerance=-0.1"),
    ({"dual_rate": np.nan}, "dual_rate=nan"),
    ({"rounds": 0}, "rounds=0"),
    ({"keep": "first"}, "use one of best, last"),
    ({"batch_size": 5000}, "batch_size=None uses all"),
    ({"dual_size": 5000}, "dual_size=None uses all"),
    ({"constraint": "parity"}, "demographic_parity"),
    ({"constraint": constraints.demographic_parity(1)}, r"examples\.group"),
    ({"proximity": 1.0}, "pass anchor=parameters"),
  ],
)
def test_what_cannot_be_trained_with_is_refused(changes, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(LagrangianConfig(**{"constraint": PARITY, **changes}))
