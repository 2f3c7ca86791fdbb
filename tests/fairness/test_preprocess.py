"""Both filters, and by how much one person can change what is kept."""

import itertools

import jax
import numpy as np
import pytest

from jaxfair import fairness, models, training
from jaxfair.accounting import _composition
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _confusion
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.types import Examples


def kept_of(people, max_gap):
  """The multiset of (x, label, group) that the ordered filter keeps."""
  if not people:
    return {}
  x, labels, groups = map(np.array, zip(*people, strict=True))
  mask = fairness.ordered_filter(x[:, None], labels, groups, max_gap=max_gap, num_classes=2)
  return {person for person, kept in zip(people, mask, strict=True) if kept}


@pytest.mark.parametrize("max_gap", [0.0, 0.2, 1 / 3, 0.5, 0.6])
def test_the_ordered_filter_is_exactly_as_stable_as_theorem_1_says(max_gap):
  # All sets of one class up to 3 people of a group and 14 of the other, and
  # every place in the order where one more may stand.
  worst = 0
  for few, many in itertools.product(range(4), range(15)):
    people = [(2.0 * i + 1, 0, 0) for i in range(few)]
    people += [(2.0 * i + 1, 0, 1) for i in range(many)]
    before = kept_of(people, max_gap)
    for group, place in itertools.product((0, 1), (0, 2 * few, 2 * many)):
      after = kept_of([*people, (float(place), 0, group)], max_gap)
      worst = max(worst, len(set(before) ^ set(after)))
  assert worst == _composition.preprocessing_factor(max_gap)


def test_the_ordered_filter_balances_each_class_and_keeps_the_first():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(300, 2))
  labels = rng.integers(0, 2, 300)
  groups = (rng.random(300) < 0.2 + 0.5 * labels).astype(int)
  kept = fairness.ordered_filter(x, labels, groups, max_gap=0.1, num_classes=2)
  order = np.lexsort((x[:, 1], x[:, 0]))
  for k in (0, 1):
    sizes = [(kept & (labels == k) & (groups == z)).sum() for z in (0, 1)]
    a, b = sorted(sizes)
    assert (b - a) / (a + b) <= 0.1 < (b + 1 - a) / (a + b + 1)
    for z in (0, 1):  # nobody kept behind one that was dropped
      own = [i for i in order if labels[i] == k and groups[i] == z]
      assert not np.any(np.diff(kept[own].astype(int)) > 0)


def test_one_record_changes_many_in_the_sequential_filter():
  # The first answer decides which of two classes the groups may drift to.
  rng = np.random.default_rng(1)
  labels, groups = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
  rule = fairness.CounterRule(0.02, 1)
  sizes = {"num_groups": 2, "num_classes": 2}
  worst = 0
  for label, group in itertools.product((0, 1), (0, 1)):
    with_one = fairness.sequential_filter(
      np.append(label, labels), np.append(group, groups), rule, **sizes
    )[1:]
    without = fairness.sequential_filter(
      np.append(-1, labels), np.append(group, groups), rule, **sizes
    )[1:]
    worst = max(worst, (with_one ^ without).sum())
  assert worst > 100
  assert _composition.preprocessing_factor(0.02) == 3


def test_the_sequential_filter_is_the_counter_rule():
  rng = np.random.default_rng(2)
  labels, groups = rng.integers(0, 2, 601), rng.integers(0, 2, 601)
  rule = fairness.CounterRule(0.05, 20)
  kept = fairness.sequential_filter(labels, groups, rule, num_groups=2, num_classes=2)
  counts = _confusion.prediction_counts(
    labels[kept], sensitive_features=groups[kept], num_groups=2, num_classes=2
  )
  assert fairness.demographic_disparity(counts).max() < 0.05
  assert 300 < kept.sum() < 601


def test_three_groups_are_refused():
  with pytest.raises(ArgumentError, match="groups has ids from 0 to 2"):
    fairness.ordered_filter(
      np.zeros((3, 1)), np.zeros(3, int), np.arange(3), max_gap=0.1, num_classes=2
    )


def crowd(seed=0, count=60):
  rng = np.random.default_rng(seed)
  y = rng.integers(0, 2, count).astype(np.int32)
  group = (rng.random(count) < 0.2 + 0.4 * y).astype(np.int32)
  x = rng.normal(size=(count, 3)).astype(np.float32)
  return Examples(x, y, group)


def filtered(people, max_gap):
  return fairness.ordered_filter(*people, max_gap=max_gap, num_classes=2)


MODEL = models.logistic(2)


def clipped_sum(people, clip=0.5):
  """What one step of DP-SGD without noise sums up, everybody taking part."""
  config = training.DpSgdConfig(
    learning_rate=1.0,
    l2_clip=clip,
    noise_multiplier=0.0,
    steps=1,
    batch_size=people.size,
    max_batch=people.size,
  )
  fitted = training.dp_sgd(MODEL, models.cross_entropy, people, config, key=jax.random.key(0))
  leaves = jax.tree.leaves(fitted.params)  # started at 0
  return -people.size * np.concatenate([np.ravel(leaf) for leaf in leaves])


def test_those_left_out_add_nothing_to_dp_sgd():
  people = crowd()
  kept = filtered(people, 0.1)
  assert 0 < kept.sum() < people.size
  np.testing.assert_allclose(
    clipped_sum(fairness.leave_out(people, kept)),
    clipped_sum(people.take(kept)),
    rtol=1e-4,
    atol=1e-5,
  )


def test_those_left_out_are_not_counted_by_an_adaptive_clip():
  # 40 norms of 60 above the bound, and 20 people who are left out, not below.
  people = crowd()
  kept = np.arange(60) < 40
  adaptive = QuantileClip(rate=1.0, quantile=0.5, count_noise=1e-6)
  config = training.DpSgdConfig(
    l2_clip=1e-3, noise_multiplier=0.0, steps=2, batch_size=60, max_batch=60, adaptive=adaptive
  )
  fitted = training.dp_sgd(
    MODEL, models.cross_entropy, fairness.leave_out(people, kept), config, key=jax.random.key(0)
  )
  share = 0.5 - 0.5 * 40 / 60
  expected = 1e-3 * np.exp(-(share - 0.5))
  assert fitted.trace.l2_clip[1] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("max_gap", [0.1, 0.5])
def test_behind_the_filter_one_person_moves_a_sum_by_k_clips(max_gap):
  # The person is there, or counts for nothing: the public n stays.
  factor, moved, numbers = _composition.preprocessing_factor(max_gap), [], set()
  people = crowd(1, 40)
  everybody = np.ones(people.size, bool)
  whole = filtered(people, max_gap)
  base = clipped_sum(fairness.leave_out(people, whole))
  for i in range(people.size):
    there = everybody & (np.arange(people.size) != i)
    kept = there.copy()
    kept[there] = filtered(people.take(there), max_gap)
    left = fairness.leave_out(people, kept)
    assert left.size == people.size
    numbers.add(int(kept.sum()))
    moved.append(np.linalg.norm(clipped_sum(left) - base))
  assert 0.5 < max(moved) <= factor * 0.5 + 1e-4  # one clip is not enough
  assert len(numbers) > 1  # whose number follows from who is there


def test_the_charge_does_not_know_how_many_are_kept():
  config = training.DpSgdConfig(steps=10, batch_size=8, noise_multiplier=2.0)
  people = crowd(2)
  left = [fairness.leave_out(people, filtered(people, g)) for g in (0.0, 0.6)]
  assert np.isnan(left[0].x).sum() != np.isnan(left[1].x).sum()
  for some in left:
    assert config.event(some.size) == config.event(people.size)
    assert config.sampler(some.size) == config.sampler(people.size)


def test_other_trainings_refuse_those_left_out_and_bad_masks_are_refused():
  people = crowd()
  left = fairness.leave_out(people, np.arange(people.size) > 3)
  np.testing.assert_array_equal(left.x[4:], people.x[4:])
  with pytest.raises(ArgumentError, match=r"examples\.x"):
    training.fit(MODEL, models.cross_entropy, left, key=jax.random.key(0))
  with pytest.raises(ArgumentError, match="kept holds int64, not bools"):
    fairness.leave_out(people, np.arange(people.size))
  with pytest.raises(ArgumentError, match="kept"):
    fairness.leave_out(people, np.ones(3, bool))
  ids = people._replace(x=people.y[:, None])
  with pytest.raises(ArgumentError, match="make it float32"):
    fairness.leave_out(ids, np.ones(people.size, bool))
