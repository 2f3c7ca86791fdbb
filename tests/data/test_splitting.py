"""Splits and partitions: disjoint, complete, blind to the people."""

import collections

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxfair.checks import ArgumentError
from jaxfair.data import _splitting, partition, split
from jaxfair.types import Examples

KEY = jax.random.key(0)


def people(size):
  rows = np.arange(size)
  return Examples(rows[:, None].astype(np.float32), rows % 2, rows % 3)


def rows_of(part):
  return np.asarray(part.x)[..., 0].astype(int)


@settings(max_examples=40, deadline=None)
@given(
  st.integers(20, 400), st.lists(st.floats(0.06, 0.5), min_size=1, max_size=4), st.integers(0, 99)
)
def test_parts_are_disjoint_and_as_large_as_asked(size, weights, seed):
  fractions = [w / max(1.0, sum(weights)) for w in weights]
  parts = split(people(size), fractions, key=jax.random.key(seed))
  rows = np.concatenate([rows_of(part) for part in parts])
  assert len(set(rows)) == len(rows)
  for part, fraction in zip(parts, fractions, strict=True):
    assert abs(part.size - fraction * size) <= 1
    np.testing.assert_array_equal(part.y, rows_of(part) % 2)
    np.testing.assert_array_equal(part.group, rows_of(part) % 3)


def test_fractions_of_one_leave_nobody_out():
  parts = split(people(101), (0.7, 0.2, 0.1), key=KEY)
  rows = np.concatenate([rows_of(part) for part in parts])
  assert sorted(rows) == list(range(101))


def test_whole_numbers_are_head_counts():
  private, queries, test = split(people(1000), (0.75, 200, 50), key=KEY)
  assert (private.size, queries.size, test.size) == (750, 200, 50)


def test_same_key_same_split_and_rows_are_shuffled():
  first, again = (split(people(50), (0.5,), key=KEY)[0] for _ in range(2))
  np.testing.assert_array_equal(first.x, again.x)
  assert rows_of(first).tolist() != sorted(rows_of(first))
  other = split(people(50), (0.5,), key=jax.random.key(1))[0]
  assert rows_of(first).tolist() != rows_of(other).tolist()


@pytest.mark.slow
def test_every_order_is_equally_likely():
  # 4,800 shuffles of 4: the chi-square statistic of the 24 orders exceeds its
  # 1 - 1e-7 quantile once in 10^7.
  orders = [
    tuple(_splitting.shuffled(key, 4)) for key in jax.random.split(jax.random.key(5), 4_800)
  ]
  counts = np.array(list(collections.Counter(orders).values()))
  assert len(counts) == 24
  assert ((counts - 200) ** 2 / 200).sum() < stats.chi2(23).isf(1e-7)


def test_jax_arrays_can_be_split():
  examples = jax.tree.map(jax.numpy.asarray, people(20))
  assert split(examples, (0.5, 0.5), key=KEY)[1].size == 10


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=8, max_size=40), st.integers(0, 99))
def test_units_stay_together(counts, seed):
  unit = np.repeat(np.arange(len(counts)), counts)
  parts = split(people(len(unit)), (0.5, 0.5), key=jax.random.key(seed), unit=unit)
  owners = [set(unit[rows_of(part)]) for part in parts]
  assert not owners[0] & owners[1]
  assert sum(part.size for part in parts) == len(unit)
  # Half a unit too many or too few is the most whole units can be off.
  assert abs(parts[0].size - len(unit) / 2) <= max(counts) / 2 + 1


@pytest.mark.parametrize(
  ("fractions", "message"),
  [
    ((0.8, 0.3), "asks for 1.1 of the 100 examples"),
    ((0.5, 60), "at most 1"),
    ((0.5, 0.0), r"fractions=0.0 must be in \(0, 1\]"),
    ((0.999, 0.001), "leaves part 1 empty"),
    ((), "fractions is empty"),
    ((0, 0.5), "at least 1"),
  ],
)
def test_impossible_splits_are_refused(fractions, message):
  with pytest.raises(ArgumentError, match=message):
    split(people(100), fractions, key=KEY)


def test_more_parts_than_people_are_refused():
  unit = np.repeat([0, 1], 50)
  with pytest.raises(ArgumentError, match=r"with 2 people \(units\)"):
    split(people(100), (0.3, 0.3, 0.4), key=KEY, unit=unit)


def test_old_style_keys_are_refused():
  with pytest.raises(ArgumentError, match="key must be a random key"):
    split(people(10), (0.5,), key=jax.random.PRNGKey(0))


@pytest.mark.parametrize(("size", "num_parts"), [(100, 10), (109, 10), (10, 1)])
def test_partition_deals_disjoint_parts_of_equal_size(size, num_parts):
  parts = partition(people(size), num_parts, key=KEY)
  assert parts.x.shape == (num_parts, size // num_parts, 1)
  assert parts.y.shape == parts.group.shape == (num_parts, size // num_parts)
  rows = rows_of(parts).reshape(-1)
  assert len(set(rows)) == num_parts * (size // num_parts)
  np.testing.assert_array_equal(parts.group.reshape(-1), rows % 3)


def test_partition_does_not_look_at_anyone():
  one = people(200)
  other = Examples(one.x * 0 + 7, 1 - one.y, (one.group + 1) % 3)
  tagged = [e._replace(x=np.arange(200.0)[:, None]) for e in (one, other)]
  first, second = (rows_of(partition(e, 10, key=KEY)) for e in tagged)
  np.testing.assert_array_equal(first, second)


def test_one_changed_person_changes_one_part():
  one = people(200)
  other = one._replace(group=np.where(np.arange(200) == 18, 2, one.group))
  first, second = (partition(e, 10, key=KEY).group for e in (one, other))
  assert (first != second).any(axis=1).sum() == 1


def test_tiny_and_impossible_parts_are_refused():
  with pytest.raises(
    ArgumentError,
    match="num_parts=50 leaves 2 examples per part; use at most 10, or pass allow_tiny_parts=True",
  ):
    partition(people(100), 50, key=KEY)
  assert partition(people(100), 50, key=KEY, allow_tiny_parts=True).x.shape == (50, 2, 1)
  with pytest.raises(ArgumentError, match="more than the 100 examples"):
    partition(people(100), 101, key=KEY, allow_tiny_parts=True)
  with pytest.raises(ArgumentError, match="num_parts=0"):
    partition(people(100), 0, key=KEY)


def test_who_is_dropped_is_random():
  # 9 of 109 are dropped. The chance that person 0 never is, in 400 draws, is
  # (100/109)^400 < 1e-14.
  kept = [0 in rows_of(partition(people(109), 10, key=jax.random.key(seed))) for seed in range(400)]
  assert not all(kept)
