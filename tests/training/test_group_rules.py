"""Rules that read groups: hand values, sensitivity, the law of the joint release, an audit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers import mutants
from helpers.crowds import crowd
from jaxfair import accounting, auditing, checks, models, training
from jaxfair.accounting import _composition
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.privacy._sampling import Batch
from jaxfair.training import DpSgdConfig
from jaxfair.training import _group_rules as rules
from jaxfair.training._dp_sgd import DpSgdInputs, DpSgdProgram, DpSgdState
from jaxfair.training._dp_sgd_feeds import Feed
from jaxfair.training._group_rules import GroupClip, GroupParity
from jaxfair.types import Examples

RULES = [GroupClip(2, count_noise=4.0), GroupParity(2, count_noise=4.0, memory=0.0)]
MODEL = models.logistic(2)


def test_bounds_by_hand():
  rule = GroupClip(3, largest=2.5)
  # Beyond: 1 of 4, 2 of 4, 0 of 2, and 3 of 10 of all.
  counts = jnp.array([[3.0, 1.0], [2.0, 2.0], [2.0, 0.0]])
  expected = np.minimum(1 + np.array([1 / 4, 2 / 4, 0.0]) / (3 / 10), 2.5)
  np.testing.assert_allclose(rule.update(rule.begin(2), counts), expected, rtol=1e-6)


@pytest.mark.parametrize("counts", [np.zeros((2, 2)), -np.ones((2, 2)), [[-5.0, 3.0], [0.0, -1.0]]])
def test_noise_cannot_move_bounds_out_of_their_limits(counts):
  factors = RULES[0].update(jnp.ones(2), jnp.asarray(counts))
  assert np.all(np.asarray(factors) >= 1)
  assert np.all(np.asarray(factors) <= RULES[0].largest)


def test_multipliers_by_hand():
  rule = GroupParity(2, max_gap=0.2, rate=0.5, weight=2.0, memory=0.0)
  counts = jnp.array([[6.0, 2.0], [1.0, 3.0]])  # rates of class 1: 1/4 and 3/4, middle 1/2
  state = rule.update(rule.begin(2), counts)
  # 1/4 away and 1/10 allowed: 0.5 (0.25 - 0.1)
  np.testing.assert_allclose(state.upper, [[0.075, 0], [0, 0.075]], atol=1e-6)
  np.testing.assert_allclose(state.lower, [[0, 0.075], [0.075, 0]], atol=1e-6)
  # Loss of a person of group 1, which is 4 of 12: force 0.075 + 2 0.15 on class 1, against class 0.
  loss = rule.loss(lambda outputs, y: y.astype(jnp.float32), state)
  outputs = jnp.log(jnp.array([[0.2, 0.8]]))
  y = rules.with_groups(jnp.array([1]), jnp.array([1]), 2)
  assert float(loss(outputs, y)[0]) == pytest.approx(1 + (0.375 / (1 / 3)) * (0.8 - 0.2), rel=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_classes_and_groups_come_apart_again(rule):
  y, group = np.divmod(np.arange(6), 2)
  seen = rule.loss(lambda outputs, y: y.astype(jnp.float32), rule.begin(3))
  packed = rules.with_groups(jnp.asarray(y), jnp.asarray(group), 2)
  np.testing.assert_array_equal(seen(jnp.zeros((6, 3)), packed), y)


@pytest.mark.parametrize("rule", [GroupClip(5), GroupParity(5)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_ids_of_eight_bits_do_not_wrap_around(rule, dtype):
  y, group = np.divmod(np.arange(500), 5)
  y, group = jnp.asarray(y, dtype), jnp.asarray(group, dtype)
  seen = rule.loss(lambda outputs, y: y.astype(jnp.float32), rule.begin(100))
  packed = rules.with_groups(y, group, 5)
  np.testing.assert_array_equal(seen(jnp.zeros((500, 100)), packed), y)
  counts = rules.count_people(group, rules.Categories(y, 100), jnp.ones(500, bool), 5)
  np.testing.assert_array_equal(counts, np.ones((5, 100)))


def test_one_person_is_counted_once_and_who_is_left_out_is_not():
  group, category = jnp.array([0, 1, 1, 2, -1]), jnp.array([1, 0, 1, 1, 1])
  mask = jnp.array([True, True, False, True, True])
  counts = rules.count_people(group, rules.Categories(category, 2), mask, 2)
  np.testing.assert_array_equal(counts, [[0, 1], [1, 0]])  # 2 and -1 are no groups


@pytest.mark.parametrize("method", ["ghost", "vmap"])
@pytest.mark.parametrize("per_layer", [False, True])
def test_own_bounds_are_kept_and_none_exceeds_the_sensitivity(method, per_layer):
  rng = np.random.default_rng(0)
  x = jnp.asarray(rng.normal(size=(5, 3)) * 10, jnp.float32)
  params = {"history": jnp.zeros((3, 1)), "w": jnp.zeros((3, 1))}
  gradient = clipped_grad(
    mutants.linear(1), mutants.linear_loss, l2_clip=2.0, method=method, per_layer=per_layer
  )
  bounds = jnp.array([0.5, 1.0, 2.0, 3.0, 100.0])
  nothing = jnp.zeros(5, jnp.int32)
  for one in range(5):
    mask = jnp.arange(5) == one
    total = gradient.with_losses(params, Examples(x, nothing, nothing), mask, bounds=bounds)[0]
    norm = float(jnp.linalg.norm(total.total["w"]))
    assert norm <= float(jnp.minimum(bounds, 2.0)[one]) * (1 + 1e-6)
    if not per_layer:
      assert norm == pytest.approx(min(float(bounds[one]), 2.0), rel=1e-3)


def released(rule, state, present, key, *, clip=2.0, size=10):
  """All of the noisy sum, and the rule's state after a step with or without the last person.

  A person's gradient is x, at place 3 to 5 of the sum; before it is a parameter nobody reads.
  """
  x = jnp.zeros((4, 3)).at[-1, 0].set(1e3)  # a gradient beyond every bound
  nothing = jnp.zeros(4, jnp.int32)
  group = nothing.at[-1].set(1)
  program = DpSgdProgram(mutants.linear(1), mutants.linear_loss)
  params = {"history": jnp.zeros((3, 1)), "w": jnp.zeros((3, 1))}
  config = DpSgdConfig(
    learning_rate=1.0, noise_multiplier=1.5, batch_size=size, l2_clip=clip, group_rule=rule
  )
  whole = jnp.ones(4, bool)
  batch = Batch(jnp.arange(4), whole.at[-1].set(present))
  keys = jax.random.split(key, 5)
  start = DpSgdState(params, optax.sgd(1.0).init(params), jnp.float32(clip), None, state)
  feed, inputs = Feed(batch, *keys), DpSgdInputs(Examples(x, nothing, group), config)
  sums, _ = program.sum(start, feed, inputs)
  mean, _, after, _ = program.release(sums, start, feed, inputs)
  return jnp.concatenate([mean["history"], mean["w"]])[:, 0] * size, after


@pytest.mark.slow
def test_sum_and_counts_are_one_gaussian_mechanism_of_the_charged_multiplier():
  """Half of the log-likelihood ratio is N(0 or mu^2, mu^2), mu one over the joint multiplier.

  With parity the counts can be read off the state (memory 0), so this is the law of all that a
  step releases.
  """
  rule, runs = RULES[1], 20_000
  keys = jax.random.split(jax.random.key(1), runs)
  state = rule.begin(1)

  @jax.jit
  @jax.vmap
  def ratio(key):
    def score(present):
      total, after = released(rule, state, present, key)
      score = total[3] / 2.0 / 1.5**2 + after.counts[1, 0] / 4.0**2
      return score, jnp.concatenate([total, after.counts[:, 0]])

    return score(False), score(True)

  (without, values), (present, _) = jax.tree.map(np.asarray, ratio(keys))
  away = np.abs(np.corrcoef(values.T) - np.eye(values.shape[1]))
  assert away.max() < 6 / np.sqrt(runs)  # no noise is used twice
  config = DpSgdConfig(noise_multiplier=1.5, steps=1, batch_size=10, group_rule=rule)
  mu = 1 / config.event(100).noise_multiplier
  for scores in (without, present):
    assert abs(scores.std() / mu - 1) < 6 / np.sqrt(2 * runs)
  np.testing.assert_allclose(present - without, mu**2, rtol=1e-3)


@pytest.mark.slow
def test_noise_is_scaled_to_the_widest_bound():
  """A person of a group with bound 3 C moves the sum by 3 C, in noise of 3 C z."""
  runs = 4_000
  keys = jax.random.split(jax.random.key(2), runs)
  rule, state = RULES[0], jnp.array([1.0, 3.0])
  one = jax.jit(jax.vmap(lambda key: [released(rule, state, p, key)[0][3] for p in (False, True)]))
  without, present = map(np.asarray, one(keys))
  assert abs(without.std() / (1.5 * 3 * 2.0) - 1) < 6 / np.sqrt(2 * runs)
  np.testing.assert_allclose(present - without, 3 * 2.0, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_an_audit_does_not_refute_the_claim(rule):
  """Two steps, so that the second uses what the counts of the first have set."""
  rng = np.random.default_rng(3)
  x = np.zeros((8, 2), np.float32)
  x[:7] = rng.normal(size=(7, 2))
  group = np.arange(8, dtype=np.int32) % 2
  config = DpSgdConfig(
    learning_rate=1.0,
    noise_multiplier=1.0,
    steps=2,
    batch_size=8,
    optimizer=mutants.recorder,
    group_rule=dataclasses.replace(rule, count_noise=1.0),
  )

  def mechanism(last, key):
    data = Examples(jnp.asarray(x).at[7].set(last), jnp.zeros(8, jnp.int32), jnp.asarray(group))
    return mutants.reference(config, data, key)

  bound = auditing.audit_mechanism(
    mechanism,
    jnp.full(2, jnp.nan),  # nobody
    jnp.array([50.0, 0.0]),
    num_runs=4_000,
    delta=mutants.DELTA,
    key=jax.random.key(5),
    confidence=1 - 1e-7,
  )
  claimed = _composition.composed_epsilon(
    [config.event(8)], delta=mutants.DELTA, relation=accounting.Relation.ZERO_OUT
  )
  assert 0.1 < bound.epsilon <= claimed


@pytest.mark.parametrize("rule", RULES)
def test_counts_are_charged_and_calibrated(rule):
  config = DpSgdConfig(noise_multiplier=2.0, steps=3, batch_size=10, group_rule=rule)
  joint = (2.0**-2 + 4.0**-2) ** -0.5  # one person moves the counts by 1
  assert config.event(50).noise_multiplier == pytest.approx(joint, rel=1e-12)
  assert rule.joint_multiplier(rule.sum_multiplier(1.7)) >= 1.7 * (1 - 1e-12)
  plain = dataclasses.replace(config, group_rule=None)
  found, alone = (training.calibrate(c, 100, epsilon=8.0, delta=1e-4) for c in (config, plain))
  spent = found.event(100).noise_multiplier
  assert spent == pytest.approx(float(alone.noise_multiplier), rel=1e-9)
  assert found.noise_multiplier > alone.noise_multiplier


@pytest.mark.slow
def test_parity_brings_the_rates_together():
  rng = np.random.default_rng(4)
  group = rng.integers(0, 2, 4000).astype(np.int32)
  y = (rng.random(4000) < np.where(group == 1, 0.7, 0.3)).astype(np.int32)
  x = np.stack([2.0 * y + rng.normal(size=4000), group - 0.5], axis=1).astype(np.float32)

  def gap(rule):
    config = DpSgdConfig(
      learning_rate=0.5, noise_multiplier=0.5, steps=100, batch_size=500, group_rule=rule
    )
    data = Examples(x, y, group)
    params = training.dp_sgd(
      MODEL, models.cross_entropy, data, config, key=jax.random.key(0)
    ).params
    chosen = np.asarray(models.predict(MODEL, params, x))
    return abs(chosen[group == 1].mean() - chosen[group == 0].mean())

  assert y[group == 1].mean() - y[group == 0].mean() > 0.35
  assert gap(GroupParity(2)) < 0.1
  assert 0.1 < gap(GroupParity(2, max_gap=0.2)) < 0.27


def test_refused():
  with pytest.raises(checks.ArgumentError, match="num_groups=1"):
    GroupClip(1)
  with pytest.raises(checks.ArgumentError, match="largest"):
    GroupClip(2, largest=0.5)
  with pytest.raises(checks.ArgumentError, match="max_gap"):
    GroupParity(2, max_gap=-0.1)
  with pytest.raises(checks.ArgumentError, match="count_noise"):
    GroupParity(2, count_noise=0.0)
  with pytest.raises(checks.ArgumentError, match="use more than 10"):
    GroupClip(2, count_noise=1.0).sum_multiplier(10.0)
  with pytest.raises(checks.ArgumentError, match="noise_multiplier=0"):
    GroupClip(2).joint_multiplier(0.0)
  own = crowd(60, 3, groups=2, apart=1.0)
  config = DpSgdConfig(steps=1, batch_size=8, group_rule=GroupClip(2))
  with pytest.raises(checks.ArgumentError, match="group has ids"):
    config.check(MODEL, models.cross_entropy, own._replace(group=own.group + 1))
  with pytest.raises(checks.ArgumentError, match="y holds other values"):
    config.check(MODEL, models.cross_entropy, own._replace(y=own.y + 0.5))
