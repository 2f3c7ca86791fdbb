"""Shuffles: a bijection for every n, and uniform as far as pairs can tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxfair.training import _batches
from jaxfair.types import Examples

FALSE_ALARM = 1e-7
LARGEST = 512
KEY = jax.random.key(0)


def rows_of_steps(n, batch, steps, *, key):
  shuffles = _batches.shuffles_for(n, batch, steps, key=key)
  return _batches.batch_rows(shuffles, n, batch, steps)


batch_rows = jax.jit(rows_of_steps, static_argnums=(0, 1, 2))


@jax.jit
def shuffled(offsets, salts, num_rows):
  """All rows below LARGEST, as if there were num_rows of them."""
  rows = jnp.arange(LARGEST, dtype=jnp.int32)
  return _batches.shuffle(rows, offsets, salts, num_rows=num_rows)


@given(st.data())
def test_a_shuffle_is_a_bijection_whatever_its_numbers(source):
  n = source.draw(st.integers(1, LARGEST))
  rounds = {"min_size": _batches.ROUNDS, "max_size": _batches.ROUNDS}
  offsets = source.draw(st.lists(st.integers(0, n - 1), **rounds))
  salts = source.draw(st.lists(st.integers(0, 2**32 - 1), **rounds))
  found = np.asarray(shuffled(np.int32(offsets), np.uint32(salts), n))[:n]
  assert sorted(found.tolist()) == list(range(n))


def test_a_shuffle_is_a_bijection_for_every_small_n():
  for n in range(1, LARGEST + 1):
    rng = np.random.default_rng(n)
    offsets = rng.integers(0, n, _batches.ROUNDS, dtype=np.int32)
    salts = rng.integers(0, 2**32, _batches.ROUNDS, dtype=np.uint32)
    found = np.asarray(shuffled(offsets, salts, n))[:n]
    np.testing.assert_array_equal(np.sort(found), np.arange(n))


def test_rows_are_looked_up_in_every_leaf():
  people = Examples(jnp.eye(5), jnp.arange(5), jnp.arange(5) % 2)
  rows = jnp.array([4, 0, 0, 3])
  found = jax.jit(_batches.look_up)((people, jnp.arange(5.0)), rows)
  wanted = (people.take(rows), jnp.arange(5.0)[rows])
  for a, b in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2**31 - 1, 2**30 + 1])
def test_row_numbers_do_not_overflow(n):
  shuffles = _batches.make_shuffles(n, 1, key=KEY)
  rows = jnp.concatenate([jnp.arange(500), n - 1 - jnp.arange(500)])
  rows = rows.astype(jnp.int32)
  found = jax.jit(_batches.shuffle)(rows, shuffles.offsets[0], shuffles.salts[0], num_rows=n)
  assert found.min() >= 0
  assert found.max() < n
  assert len(set(found.tolist())) == 1000


@pytest.mark.slow
@pytest.mark.parametrize(("n", "batch", "steps"), [(23, 5, 13), (8, 8, 3), (7, 1, 20), (1, 1, 4)])
def test_the_batches_of_an_epoch_are_disjoint(n, batch, steps):
  rows = np.asarray(batch_rows(n, batch, steps, key=KEY))
  assert rows.shape == (steps, batch)
  assert rows.min() >= 0
  assert rows.max() < n
  per_epoch = n // batch
  for start in range(0, steps, per_epoch):
    epoch = rows[start : start + per_epoch].ravel()
    assert len(set(epoch.tolist())) == len(epoch)


@pytest.mark.parametrize("rows", [7, 1000, 65_537, 2**24 - 2])
def test_shuffles_are_the_draws_of_their_shape(rows):
  # Batches, and all published runs with them, stay what they were.
  found = _batches.make_shuffles(rows, 3, key=KEY)
  first, second = jax.random.split(KEY)
  shape = (3, _batches.ROUNDS)
  wanted = jax.random.randint(first, shape, 0, rows, jnp.int32)
  np.testing.assert_array_equal(found.offsets, wanted)
  np.testing.assert_array_equal(found.salts, jax.random.bits(second, shape))


@pytest.mark.slow
def test_epochs_differ_and_so_do_those_who_sit_out():
  rows = np.asarray(batch_rows(23, 5, 8, key=KEY)).reshape(2, 20)
  assert (rows[0] != rows[1]).any()
  assert set(rows[0].tolist()) != set(rows[1].tolist())


@pytest.mark.slow
def test_batches_follow_the_key():
  few = batch_rows(23, 5, 4, key=KEY)
  assert (few == batch_rows(23, 5, 4, key=KEY)).all()
  assert (few != batch_rows(23, 5, 4, key=jax.random.key(1))).any()


def uniform(counts):
  """Whether counts may come from equally likely cells."""
  return stats.chisquare(np.ravel(counts)).pvalue > FALSE_ALARM


def draws(n, count, epochs=1):
  keys = jax.random.split(jax.random.key(3), count)
  return np.asarray(jax.jit(jax.vmap(lambda key: rows_of_steps(n, n, epochs, key=key)))(keys))


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 7, 10, 16])
def test_every_row_comes_to_every_place_equally_often(n):
  rows = draws(n, 40_000)[:, 0]
  for place in range(n):
    assert uniform(np.bincount(rows[:, place], minlength=n))


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 7, 10])
def test_pairs_of_rows_come_to_pairs_of_places_equally_often(n):
  rows = draws(n, 40_000)[:, 0]
  for a, b in ((0, 1), (1, n - 1), (n - 2, n - 1)):
    pairs = np.bincount(rows[:, a] * n + rows[:, b], minlength=n * n)
    apart = pairs.reshape(n, n)[~np.eye(n, dtype=bool)]
    assert uniform(apart)


@pytest.mark.slow
def test_all_orders_of_four_rows_are_equally_likely():
  rows = draws(4, 60_000)[:, 0]
  orders = np.bincount(rows @ [64, 16, 4, 1], minlength=256)
  assert (orders > 0).sum() == 24
  assert uniform(orders[orders > 0])


@pytest.mark.slow
def test_neighbors_of_many_rows_are_far_apart_as_chance_has_it():
  n = 1000
  rows = draws(n, 20_000)[:, 0]
  distance = (rows[:, 501] - rows[:, 500]) % n - 1  # 0 .. n - 2
  assert uniform(np.bincount(distance // 37, minlength=27))


@pytest.mark.slow
def test_epochs_are_independent_of_each_other():
  rows = draws(5, 40_000, epochs=2)
  assert uniform(np.bincount(rows[:, 0, 0] * 5 + rows[:, 1, 0], minlength=25))


def test_a_biased_shuffle_would_be_noticed(monkeypatch):
  monkeypatch.setattr(_batches, "ROUNDS", 2)
  rows = draws(10, 40_000)[:, 0]
  assert not all(uniform(np.bincount(rows[:, place], minlength=10)) for place in range(10))


@pytest.mark.parametrize(("n", "batch"), [(1000, 64), (10, 10), (10, 9), (5, 1), (1, 1), (3, 2)])
def test_poisson_caps_are_six_deviations_away(n, batch):
  sampler = _batches.poisson_sampler(n, batch, 1000)
  assert sampler.expected_batch_size == pytest.approx(batch)
  cap = sampler.max_batch
  assert cap <= n
  assert cap == n or stats.binom.sf(cap, n, batch / n) < 1e-6
