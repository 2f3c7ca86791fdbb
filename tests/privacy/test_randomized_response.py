"""Randomized response: the flip probabilities, exactly, and their inverse."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxfair import checks, privacy
from jaxfair.accounting import _randomized_response
from jaxfair.privacy._randomized_response import _table
from jaxfair.privacy._rational import rational

FALSE_ALARM = 1e-6


@given(epsilon=st.floats(1e-6, 50), categories=st.integers(2, 40))
@settings(max_examples=60, deadline=None)
def test_the_table_keeps_epsilon_and_the_law(epsilon, categories):
  """Every probability, as the integer it is; nothing is sampled."""
  table = _table(rational("epsilon", epsilon), categories)
  values = [(int(h) << 32) | int(w) for h, w in zip(*table.words, strict=True)][: table.length]
  edges = [2**64, *values, 0]
  cells = [a - b for a, b in itertools.pairwise(edges)]
  keep, *flips = cells
  assert len(flips) == categories - 1
  assert len(set(flips)) == 1
  with mpmath.workdps(60):
    ratio = mpmath.exp(mpmath.mpf(epsilon))
    assert 1 <= mpmath.mpf(keep) / flips[0] <= ratio
    total = ratio + categories - 1
    exact = [ratio / total, *[1 / total] * (categories - 1)]
    off = [abs(c * mpmath.mpf(2) ** -64 - e) for c, e in zip(cells, exact, strict=True)]
    assert mpmath.fsum(off) / 2 <= table.distance <= categories * 2.0**-64


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "categories"), [(0.5, 2), (1.5, 5)])
def test_reports_follow_the_matrix(epsilon, categories):
  rng = np.random.default_rng(0)
  values = rng.integers(0, categories, (400, 500))
  reports = privacy.randomized_response(
    values, epsilon=epsilon, num_categories=categories, key=jax.random.key(3)
  )
  assert reports.shape == values.shape
  assert reports.dtype == jnp.int32
  seen = np.zeros((categories, categories))
  np.add.at(seen, (values.ravel(), np.asarray(reports).ravel()), 1)
  matrix = privacy.response_matrix(epsilon=epsilon, num_categories=categories)
  expected = matrix * seen.sum(axis=1, keepdims=True)
  statistic = np.sum((seen - expected) ** 2 / expected)
  assert stats.chi2.sf(statistic, categories * (categories - 1)) > FALSE_ALARM


def test_the_matrix_by_hand():
  matrix = privacy.response_matrix(epsilon=np.log(3), num_categories=2)
  np.testing.assert_allclose(matrix, [[0.75, 0.25], [0.25, 0.75]], rtol=1e-14)
  matrix = privacy.response_matrix(epsilon=np.log(4), num_categories=5)
  np.testing.assert_allclose(matrix.sum(axis=1), 1)
  np.testing.assert_allclose(np.diag(matrix), 0.5)
  np.testing.assert_allclose(matrix[0, 1:], 0.125)


def test_the_accountant_speaks_of_this_mechanism():
  for epsilon in (0.1, 1.0, 8.0):
    for categories in (2, 7):
      matrix = privacy.response_matrix(epsilon=epsilon, num_categories=categories)
      keep = _randomized_response.randomized_response_keep(epsilon=epsilon, categories=categories)
      np.testing.assert_allclose(np.diag(matrix), keep, rtol=1e-14)
      loss = np.log(matrix[:, None, :] / matrix[None, :, :])
      np.testing.assert_allclose(np.abs(loss).max(), epsilon, rtol=1e-12)


def test_counts_are_corrected_by_the_inverse():
  counts = np.array([[10, 50, 40], [0, 0, 7]])
  matrix = privacy.response_matrix(epsilon=0.8, num_categories=3)
  expected = counts @ np.linalg.inv(matrix)
  found = privacy.unbiased_counts(counts, epsilon=0.8)
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  np.testing.assert_allclose(found.sum(axis=-1), counts.sum(axis=-1), rtol=1e-5)
  jitted = jax.jit(lambda c: privacy.unbiased_counts(c, epsilon=0.8))(counts)
  np.testing.assert_allclose(jitted, found, rtol=1e-6)


def test_corrected_counts_are_unbiased():
  truth = np.array([700, 200, 100])
  values = np.repeat(np.arange(3), truth)
  runs = 400

  def estimate(key):
    reports = privacy.randomized_response(values, epsilon=1.0, num_categories=3, key=key)
    return privacy.unbiased_counts(jnp.bincount(reports, length=3), epsilon=1.0)

  keys = jax.random.split(jax.random.key(1), runs)
  found = np.asarray(jax.jit(jax.vmap(estimate))(keys))
  error = 6 * found.std(axis=0) / np.sqrt(runs)
  assert np.all(np.abs(found.mean(axis=0) - truth) < error)


@pytest.mark.slow
def test_mapping_over_keys_equals_one_by_one():
  values = jnp.arange(60) % 4
  keys = jax.random.split(jax.random.key(0), 3)

  def report(key):
    return privacy.randomized_response(values, epsilon=1.0, num_categories=4, key=key)

  mapped = jax.vmap(report)(keys)
  np.testing.assert_array_equal(mapped, jnp.stack([report(k) for k in keys]))
  assert len({row.tobytes() for row in np.asarray(mapped)}) == 3


def test_a_large_epsilon_tells_the_truth():
  values = np.arange(1000) % 9
  told = privacy.randomized_response(values, epsilon=200.0, num_categories=9, key=jax.random.key(0))
  np.testing.assert_array_equal(told, values)


@pytest.mark.parametrize(
  ("changed", "told"),
  [
    ({"epsilon": 0.0}, "epsilon=0.0 must be above 0"),
    ({"epsilon": -1}, "epsilon=-1 must be above 0"),
    ({"epsilon": 1e-25}, "too small"),
    ({"num_categories": 1}, "num_categories=1 must be at least 2"),
    ({"num_categories": 2.0}, "whole number"),
    ({"values": [0, 3]}, r"outside 0\.\.2"),
    ({"values": [0.0, 1.0]}, "integer ids"),
    ({"key": 3}, "must be a random key"),
  ],
)
def test_refused(changed, told):
  good = {"values": [0, 1], "epsilon": 1.0, "num_categories": 3}
  setting = {**good, "key": jax.random.key(0), **changed}
  with pytest.raises(checks.ArgumentError, match=told):
    privacy.randomized_response(**setting)


def test_a_traced_epsilon_is_refused():
  with pytest.raises(checks.ArgumentError, match="known before tracing"):
    jax.jit(
      lambda e: privacy.randomized_response(
        jnp.arange(3), epsilon=e, num_categories=3, key=jax.random.key(0)
      )
    )(1.0)
