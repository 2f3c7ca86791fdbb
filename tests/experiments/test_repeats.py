"""Repeated splits against the same done one seed at a time, on the host."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, data
from jaxfair.experiments import repeat, splits
from jaxfair.experiments._study import Context
from jaxfair.types import Examples

KEY, SPLIT_KEY = jax.random.key(1), jax.random.key(2)
N = 41


def dataset(**extra):
  rng = np.random.default_rng(0)
  x = rng.normal(3.0, 2.0, (N, 3)).astype(np.float32)
  x[:, 2] = np.arange(N)  # tells who it is
  x[rng.random(x.shape) < 0.1] = np.nan
  x[:, 2] = np.arange(N)
  y = rng.integers(0, 2, N).astype(np.int32)
  group = rng.integers(0, 3, N).astype(np.int32)
  names = ("a", "b", "who")
  return data.Dataset(
    "toy", Examples(x, y, group), ("no", "yes"), ("r", "g", "b"), names, names, **extra
  )


def everything(parts, key):
  return parts, jax.random.key_data(key)


@pytest.mark.slow
def test_each_seed_is_what_the_host_makes_of_it():
  people = dataset()
  parts, words = repeat(
    everything, people, seeds=5, key=KEY, split_key=SPLIT_KEY, fractions=(0.6, 0.2, 0.2), chunk=2
  )
  keys = jax.random.split(KEY, 5)
  for seed in range(5):
    rows = data.split_rows(N, (0.6, 0.2, 0.2), key=jax.random.fold_in(SPLIT_KEY, seed))
    scaler = data.fit_scaler(people.examples.x[rows[0]])
    for part, own in zip(parts, rows, strict=True):
      expected = people.examples.take(own)
      np.testing.assert_allclose(part.x[seed], scaler.apply(expected.x), rtol=1e-5, atol=1e-6)
      np.testing.assert_array_equal(part.y[seed], expected.y)
      np.testing.assert_array_equal(part.group[seed], expected.group)
    np.testing.assert_array_equal(words[seed], jax.random.key_data(keys[seed]))


def test_the_training_part_is_standard_and_the_test_part_uses_its_scaler():
  (train, test), _ = repeat(everything, dataset(), seeds=3, key=KEY, split_key=SPLIT_KEY)
  np.testing.assert_allclose(train.x.mean(1), 0, atol=1e-5)
  assert np.abs(np.asarray(test.x).mean(1)).max() > 0.05
  assert np.isfinite(train.x).all()
  assert np.isfinite(test.x).all()


def test_nobody_is_in_two_parts_and_splits_differ():
  (train, test), _ = repeat(
    everything, dataset(), seeds=4, key=KEY, split_key=SPLIT_KEY, scale="none"
  )
  who = np.concatenate([train.x[..., 2], test.x[..., 2]], axis=1)
  assert all(len(set(row)) == N for row in who.tolist())
  assert len({tuple(sorted(row)) for row in test.x[..., 2].tolist()}) == 4


@pytest.mark.slow
def test_splits_follow_their_own_key_only():
  def who(key, split_key):
    parts, _ = repeat(everything, dataset(), seeds=2, key=key, split_key=split_key, scale="none")
    return np.asarray(parts[0].x[..., 2])

  np.testing.assert_array_equal(who(KEY, SPLIT_KEY), who(jax.random.key(9), SPLIT_KEY))
  assert (who(KEY, SPLIT_KEY) != who(KEY, jax.random.key(9))).any()


@pytest.mark.slow
def test_rows_of_one_person_stay_together():
  unit = np.arange(N) // 4
  parts, _ = repeat(
    everything, dataset(unit=unit), seeds=6, key=KEY, split_key=SPLIT_KEY, scale="none"
  )
  for seed in range(6):
    train, test = ({unit[int(i)] for i in np.asarray(part.x[seed, :, 2])} for part in parts)
    assert not train & test


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3, 5, 8])
def test_the_chunk_size_changes_nothing(chunk):
  def mean(parts, key):
    return jnp.mean(parts[0].x, axis=0) + jax.random.normal(key, (3,))

  def of(chunk):
    return repeat(mean, dataset(), seeds=5, key=KEY, split_key=SPLIT_KEY, chunk=chunk)

  np.testing.assert_allclose(of(chunk), of(2), rtol=1e-6, atol=1e-6)


def test_impossible_requests_are_refused():
  for wrong, told in (
    ({"seeds": 0}, "seeds=0"),
    ({"seeds": 2, "fractions": (0.9, 0.9)}, "fractions"),
    ({"seeds": 2, "scale": "log"}, "scale='log'"),
  ):
    with pytest.raises(checks.ArgumentError, match=told):
      repeat(everything, dataset(), key=KEY, split_key=SPLIT_KEY, **wrong)


def test_cells_share_splits_and_nothing_else(tmp_path):
  people = dataset()

  def made(cell):
    context = Context(jax.random.key(cell), SPLIT_KEY, False, tmp_path, print)
    return list(splits(people, (20, 15), 2, context))

  for split, (one, other) in enumerate(zip(made(0), made(1), strict=True)):
    key = jax.random.fold_in(SPLIT_KEY, split)
    expected = data.prepare(people, (20, 15), key=key).parts
    for ours, theirs, part in zip(one[0], other[0], expected, strict=True):
      np.testing.assert_array_equal(ours.x, part.x)
      np.testing.assert_array_equal(theirs.x, part.x)
    words, others = (jax.random.key_data(own) for _, own in (one, other))
    assert (words != others).any()
