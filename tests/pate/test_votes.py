"""Votes and their counts."""

import jax
import numpy as np
import pytest

from jaxfair import checks, models, pate, tree
from jaxfair.training import _ensembles

MODEL = models.mlp((6,), 4)


@pytest.fixture
def teachers():
  keys = jax.random.split(jax.random.key(0), 7)
  return jax.vmap(lambda key: MODEL.init(key, np.zeros(3)))(keys)


@pytest.fixture
def queries():
  return np.random.default_rng(0).normal(size=(101, 3)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [10, 1024])
@pytest.mark.parametrize("chunk", [2, None])
def test_a_vote_is_the_teacher_s_prediction(teachers, queries, batch_size, chunk):
  votes = pate.predict_votes(MODEL, teachers, queries, batch_size=batch_size, chunk=chunk)
  assert votes.shape == (7, 101)
  assert votes.dtype == np.int32
  for i in range(7):
    own = tree.take(teachers, i)
    logits = np.asarray(MODEL.apply(own, queries))
    np.testing.assert_array_equal(votes[i], logits.argmax(axis=1))


def test_voting_again_compiles_nothing(teachers, queries):
  pate.predict_votes(MODEL, teachers, queries)
  size = _ensembles._mapped._cache_size()
  pate.predict_votes(MODEL, teachers, queries + 1)
  assert _ensembles._mapped._cache_size() == size


def test_counts_are_histograms():
  votes = np.random.default_rng(1).integers(0, 5, (30, 40))
  counts = pate.vote_counts(votes, 6, num_teachers=30)
  expected = [np.bincount(votes[:, q], minlength=6) for q in range(40)]
  np.testing.assert_array_equal(counts, expected)
  assert counts.dtype == np.int32


def test_counts_compile_under_jit():
  votes = np.array([[0, 1], [1, 1]])
  found = jax.jit(lambda v: pate.vote_counts(v, 2, num_teachers=2))(votes)
  np.testing.assert_array_equal(found, [[1, 1], [0, 2]])


@pytest.mark.parametrize(
  ("votes", "told"),
  [
    (np.array([0, 1]), "predictions has shape"),
    (np.array([[0, 3]]), "ids from 0 to 3, outside 0..2"),
    (np.array([[0.0, 1.0]]), "not integer ids"),
  ],
)
def test_what_is_no_vote_is_refused(votes, told):
  with pytest.raises(checks.ArgumentError, match=told):
    pate.vote_counts(votes, 3, num_teachers=1)


def test_a_transposed_array_is_refused():
  votes = np.zeros((30, 40), int)
  with pytest.raises(checks.ArgumentError, match=r"\(40, 30\).*num_teachers=30"):
    pate.vote_counts(votes.T, 2, num_teachers=30)


def test_parameters_must_be_stacked(teachers, queries):
  mixed = teachers | {"layer_0": {"w": np.zeros((3, 6)), "b": np.zeros(6)}}
  with pytest.raises(checks.ArgumentError, match="one leading axis of teach"):
    pate.predict_votes(MODEL, mixed, queries)
