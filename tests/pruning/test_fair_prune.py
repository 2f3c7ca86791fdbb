"""Fair pruning: masks hold, gaps shrink, factors are what they are called."""

import dataclasses

import jax
import numpy as np
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import checks, models, pruning, training, tree
from jaxfair.pruning import _constraints, _group_profile
from jaxfair.types import Examples, Model

LOSS = models.cross_entropy


def unequal():
  """Two groups whose label depends on x in opposite ways; one is small."""
  rng = np.random.default_rng(0)
  group = (np.arange(120) >= 100).astype(np.int32)
  x = rng.normal(size=(120, 3)).astype(np.float32)
  y = (x[:, 0] * np.where(group, -1, 1) + 0.5 * x[:, 1] > 0).astype(np.int32)
  return Examples(x, y, group)


PEOPLE = unequal()
MODEL = models.mlp((8,), 2)
STAGE = training.LagrangianConfig(
  learning_rate=0.02, rounds=10, steps_per_round=10, batch_size=None, dual_rate=1.0
)
CONFIG = pruning.FairPruneConfig(rates=(0.3, 0.7), fair="never", train=STAGE, tune=STAGE)


@pytest.fixture(scope="module")
def never():
  return pruning.fair_prune(MODEL, LOSS, PEOPLE, CONFIG, num_groups=2, key=KEY)


def gaps(params):
  found = _group_profile.group_profiles(MODEL, LOSS, params, PEOPLE, num_groups=2)
  return np.abs(found.loss.group[:, 0] - found.loss.group[:, 1])


@pytest.mark.slow
def test_pruned_weights_stay_zero_at_every_rate(never):
  for keep, leaf in zip(jax.tree.leaves(never.masks), jax.tree.leaves(never.params), strict=True):
    assert np.all(np.asarray(leaf)[~np.asarray(keep)] == 0)
  kept = [sum(map(np.count_nonzero, jax.tree.leaves(tree.take(never.params, i)))) for i in (0, 1)]
  # 3 x 8 + 8 x 2 = 40 weights; 12 or 28 are gone, the biases stay.
  assert kept == [10 + 40 - 12, 10 + 40 - 28]


@pytest.mark.slow
def test_equal_losses_after_pruning_shrink_the_gap_of_losses(never):
  config = dataclasses.replace(CONFIG, fair="after")
  fair = pruning.fair_prune(MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, dense=never.dense)
  jax.tree.map(np.testing.assert_array_equal, fair.masks, never.masks)
  assert np.all(gaps(never.params) > 0.3)
  assert np.all(gaps(fair.params) < 0.5 * gaps(never.params))


@pytest.mark.slow
def test_before_pruning_it_is_the_whole_network_that_is_fair(never):
  config = dataclasses.replace(CONFIG, fair="before")
  fair = pruning.fair_prune(MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY)
  plain, held = (gaps(tree.stack([fit.dense]))[0] for fit in (never, fair))
  assert plain > 0.3
  assert held < 0.5 * plain
  # What goes is decided by that network, and its fine-tuning is plain.
  masks = pruning.magnitude_masks(fair.dense, 0.7)
  jax.tree.map(np.testing.assert_array_equal, tree.take(fair.masks, 1), masks)
  assert fair.trace.multipliers.size == 0


def factors(params, some, num_groups, scales=None):
  """Gaps of gradient norms and top eigenvalues of softmax regression.

  As shares of their means over people, or of the scales that are given.
  """
  w, b = (np.asarray(params[n], np.float64) for n in ("w", "b"))
  x = np.c_[some.x, np.ones(len(some.x))].astype(np.float64)
  s = x @ np.append(w[:, 1] - w[:, 0], b[1] - b[0])
  f = 1 / (1 + np.exp(-s))

  def two(member):
    own, slope = x[member], (f - some.y)[member]
    bend = (f * (1 - f))[member]
    # Both classes have the same derivatives but for the sign.
    norm = np.sqrt(2) * np.linalg.norm(own.T @ slope / len(own))
    hessian = (own * bend[:, None]).T @ own / len(own)
    return np.array([norm, 2 * np.linalg.eigvalsh(hessian)[-1]])

  whole = two(np.ones(len(x), bool))
  own = np.array([two(some.group == a) for a in range(num_groups)])
  if scales is None:
    scales = np.bincount(some.group) @ own / len(x)
  return (np.abs(own - whole) / scales).T.ravel(), scales


@pytest.mark.slow
def test_the_full_constraint_is_made_of_the_factors():
  model, some = models.logistic(2), people(num_classes=2)
  params = moved(model, some)
  constraint = _constraints.full(model, LOSS, 3, steps=10)
  way = moved(model, some, seed=1)
  value, along = jax.jit(lambda p, v: jax.jvp(lambda q: constraint(q, some).value, (p,), (v,)))(
    params, way
  )
  known = np.array([0, 1, 3, 4])  # the third group is empty
  expected, scales = factors(params, some, 2)
  np.testing.assert_allclose(value[known], expected, rtol=1e-3, atol=1e-6)
  np.testing.assert_array_equal(value[np.array([2, 5])], 0)
  # Its derivative along a direction, against differences in float64.
  step = 1e-5
  ahead, behind = (
    jax.tree.map(lambda p, v, sign=sign: np.asarray(p, np.float64) + sign * step * v, params, way)
    for sign in (1, -1)
  )
  sides = [factors(p, some, 2, scales)[0] for p in (ahead, behind)]
  slope = (sides[0] - sides[1]) / (2 * step)
  np.testing.assert_allclose(along[known], slope, rtol=1e-2, atol=1e-4)
  # Nobody is not a direction: no NaN reaches the others through a multiplier.
  np.testing.assert_array_equal(along[np.array([2, 5])], 0)


@pytest.mark.slow
def test_equal_factors_after_pruning_shrink_their_gaps_and_that_of_losses(never):
  config = dataclasses.replace(CONFIG, fair="after", constraint="full")
  fair = pruning.fair_prune(MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, dense=never.dense)
  constraint = jax.jit(_constraints.full(MODEL, LOSS, 2, steps=10))

  def largest(params):
    each = [constraint(tree.take(params, rate), PEOPLE).value for rate in (0, 1)]
    return np.max(each, axis=1)

  assert np.all(largest(never.params) > 1)
  assert np.all(largest(fair.params) < 0.5 * largest(never.params))
  assert np.all(gaps(fair.params) < 0.5 * gaps(never.params))


@pytest.mark.slow
def test_the_full_constraint_has_no_units():
  model, some = MODEL, PEOPLE
  params = moved(model, some)

  def larger(logits, y):
    return 100 * LOSS(logits, y)

  own, other = (
    jax.jit(_constraints.full(model, loss, 2, steps=10))(params, some).value
    for loss in (LOSS, larger)
  )
  np.testing.assert_allclose(own, other, rtol=1e-3)
  assert np.all(own[:2] > 0.05)


@pytest.mark.slow
def test_factors_that_are_zero_have_no_gap():
  """All logits are 0 whatever the weights: nothing slopes, nothing bends."""
  flat = Model(MODEL.init, lambda p, x: 0 * MODEL.apply(p, x))
  params = moved(MODEL, PEOPLE)
  constraint = _constraints.full(flat, LOSS, 2, steps=2)
  value, slope = jax.value_and_grad(lambda p: constraint(p, PEOPLE).value.sum())(params)
  assert value == 0
  assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(slope))


def test_what_cannot_be_done_is_refused():
  with pytest.raises(checks.ArgumentError, match="fair='sometimes'"):
    pruning.FairPruneConfig(fair="sometimes")
  with pytest.raises(checks.ArgumentError, match="must be in"):
    pruning.FairPruneConfig(rates=(1.0,))
  with pytest.raises(checks.ArgumentError, match="trained already"):
    pruning.fair_prune(
      MODEL, LOSS, PEOPLE, pruning.FairPruneConfig(fair="both"), num_groups=2, key=KEY, dense={}
    )
  lonely = PEOPLE._replace(group=(np.arange(120) == 7).astype(np.int32))
  dear = dataclasses.replace(CONFIG, fair="after", constraint="full")
  with pytest.raises(checks.ArgumentError, match="at least 2 of every group"):
    pruning.fair_prune(MODEL, LOSS, lonely, dear, num_groups=2, key=KEY)
