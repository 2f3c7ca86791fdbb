"""Threefry words: the same bits as JAX's own, and numbers with their tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from jaxfair import checks
from jaxfair.privacy import _random_words


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_words_are_those_of_jax(seed):
  key = jax.random.key(seed)
  counter = jnp.arange(501, dtype=jnp.uint32)
  expected = threefry_2x32(jax.random.key_data(key), jnp.concatenate([0 * counter, counter]))
  words = _random_words.random_words(key, 501)
  np.testing.assert_array_equal(jnp.concatenate(words), expected)
  np.testing.assert_array_equal(words.high ^ words.low, jax.random.bits(key, (501,)))


def test_start_continues_the_stream():
  key = jax.random.key(3)
  whole, tail = (
    _random_words.random_words(key, 100),
    _random_words.random_words(key, 60, start=40),
  )
  np.testing.assert_array_equal(whole.high[40:], tail.high)
  np.testing.assert_array_equal(whole.low[40:], tail.low)


@pytest.mark.slow
def test_works_under_vmap_as_one_by_one():
  keys = jax.random.split(jax.random.key(0), 5)
  together = jax.vmap(lambda k: _random_words.random_words(k, 7))(keys)
  for i in range(5):
    np.testing.assert_array_equal(together.high[i], _random_words.random_words(keys[i], 7).high)


def test_a_traced_start_continues_the_stream():
  key = jax.random.key(3)
  tail = jax.jit(lambda i: _random_words.random_words(key, 60, start=i))(40)
  np.testing.assert_array_equal(tail, _random_words.random_words(key, 60, start=40))


def test_derived_keys_are_words_of_the_stream():
  """Why a key is split or drawn from, never both."""
  key = jax.random.key(9)
  words = jnp.stack(_random_words.random_words(key, 4), axis=1)
  children = jax.random.key_data(jax.random.split(key, 4))
  np.testing.assert_array_equal(words, children)
  folded = jax.random.key_data(jax.random.fold_in(key, 3))
  np.testing.assert_array_equal(words[3], folded)


def test_an_array_of_keys_is_refused():
  """Its rows would be taken for the two halves of one key."""
  with pytest.raises(checks.ArgumentError, match="array of 2 keys"):
    _random_words.random_words(jax.random.split(jax.random.key(0)), 2)


def test_other_generators_are_refused():
  with pytest.raises(checks.ArgumentError, match="Threefry"):
    _random_words.random_words(jax.random.key(0, impl="rbg"), 3)


def test_unit_interval_is_open_and_precise_near_zero():
  def at(high, low):
    words = _random_words.Words(jnp.uint32(high), jnp.uint32(low))
    return float(_random_words.unit_interval(words))

  assert 0 < at(0, 0) < 2.0**-62
  assert at(2**32 - 1, 2**32 - 1) < 1
  assert at(2**31, 0) == pytest.approx(0.5, rel=1e-6)
  # Relative precision far below the grid of 2^-24.
  assert at(2, 0) == pytest.approx(2.0**-31, rel=1e-6)
  assert at(0, 2) == pytest.approx(1.5 * 2.0**-62, rel=1e-6)
