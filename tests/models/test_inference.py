import jax
import numpy as np
import pytest
import scipy.special

from jaxfair import checks, models
from jaxfair.types import Model

X = np.random.default_rng(0).standard_normal((23, 5), np.float32)
MODEL = models.mlp(6, 3)
PARAMS = MODEL.init(jax.random.key(0), X[0])
LOGITS = np.asarray(MODEL.apply(PARAMS, X))


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 4, 10, 22, 23, 100])
def test_chunks_change_nothing(batch_size):
  labels = models.predict(MODEL, PARAMS, X, batch_size=batch_size)
  np.testing.assert_array_equal(labels, LOGITS.argmax(1))
  np.testing.assert_allclose(
    models.scores(MODEL, PARAMS, X, batch_size=batch_size),
    scipy.special.softmax(LOGITS.astype(float), axis=1),
    atol=1e-6,
  )


def test_types_and_shapes():
  assert models.predict(MODEL, PARAMS, X).dtype == np.int32
  assert models.predict(MODEL, PARAMS, X[:0]).shape == (0,)
  assert models.scores(MODEL, PARAMS, X[:0]).shape == (0, 3)


@pytest.mark.parametrize("batch_size", [1, 4, 10, 22])
def test_no_more_rows_than_the_batch_size_are_held(batch_size):
  sizes = []

  def apply(params, x):
    sizes.append(x.shape[0])
    return x

  models.predict(Model(None, apply), (), X, batch_size=batch_size)
  assert max(sizes) <= batch_size


def test_a_model_compiles_once_for_a_shape():
  traces = []

  def apply(params, x):
    traces.append(1)
    return x * params

  model = Model(None, apply)
  for scale in (1.0, 2.0, 3.0):
    models.predict(model, np.float32(scale), X, batch_size=8)
  before = len(traces)
  models.scores(model, np.float32(4.0), X + 1, batch_size=8)
  assert len(traces) == before


@pytest.mark.slow
def test_stacked_parameters_are_mapped_over():
  keys = jax.random.split(jax.random.key(1), 3)
  stacked = jax.vmap(MODEL.init, (0, None))(keys, X[0])
  many = jax.vmap(lambda params: models.predict(MODEL, params, X, batch_size=10))(stacked)
  assert many.shape == (3, 23)
  one = models.predict(MODEL, jax.tree.map(lambda leaf: leaf[1], stacked), X)
  np.testing.assert_array_equal(many[1], one)


def test_bad_arguments_are_refused():
  with pytest.raises(checks.ArgumentError, match="batch_size=0"):
    models.predict(MODEL, PARAMS, X, batch_size=0)
  with pytest.raises(checks.ArgumentError, match="leading batch axis"):
    models.scores(MODEL, PARAMS, 3.0)
