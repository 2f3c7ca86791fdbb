"""Scalers against scikit-learn's, and rows bounded in norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from jaxfair.checks import ArgumentError
from jaxfair.data import _scaling, bound_rows, fit_scaler

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(500, 4)) * [1, 10, 1e-3, 1e3] + [0, 5, 1, -7]).astype(np.float32)


def test_standard_agrees_with_scikit_learn():
  expected = StandardScaler().fit_transform(X.astype(np.float64))
  # float32: one part in 2^24 of the value before the mean is taken off, over
  # a spread that is a thousandth of it in column 2.
  np.testing.assert_allclose(fit_scaler(X).apply(X), expected, atol=2e-4)


def test_minmax_agrees_with_scikit_learn_and_clips_the_rest():
  scaler = fit_scaler(X, "minmax")
  expected = MinMaxScaler((-1, 1)).fit_transform(X.astype(np.float64))
  np.testing.assert_allclose(scaler.apply(X), expected, atol=2e-4)
  assert np.abs(scaler.apply(X * 100)).max() <= 1
  assert np.abs(scaler.apply(X)).max() <= 1


def test_none_only_fills():
  x = np.array([[1.0, np.nan], [3.0, 4.0]], np.float32)
  np.testing.assert_array_equal(fit_scaler(x, "none").apply(x), [[1, 4], [3, 4]])


def test_gaps_get_the_mean_of_the_fitted_part():
  train = np.array([[1.0], [3.0], [np.nan]], np.float32)
  scaled = fit_scaler(train).apply(np.array([[np.nan], [3.0]], np.float32))
  np.testing.assert_allclose(scaled, [[0.0], [1.0]], atol=1e-6)


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e30, np.nan])
def test_constant_columns_are_zero_everywhere(scale, constant):
  train = np.full((7, 1), constant, np.float32)
  scaler = fit_scaler(train, scale)
  later = np.array([[5.0], [np.nan]], np.float32)
  np.testing.assert_array_equal(scaler.apply(later), [[0], [0]])


def test_ranges_below_float32_count_as_constant():
  train = np.array([[0.0], [1e-42]], np.float32)
  assert np.isfinite(fit_scaler(train).apply(train)).all()


def test_apply_is_pure_and_jits():
  scaler = fit_scaler(X, "minmax")
  before = X.copy()
  np.testing.assert_allclose(jax.jit(scaler.apply)(jnp.asarray(X)), scaler.apply(X), atol=1e-6)
  np.testing.assert_array_equal(X, before)
  assert scaler.apply(X).dtype == np.float32


def test_invert_undoes_apply():
  x = np.concatenate([X, np.full((500, 1), 3.0, np.float32)], axis=1)
  scaler = fit_scaler(x)
  np.testing.assert_allclose(scaler.invert(scaler.apply(x)), x, rtol=1e-3, atol=1e-3)


def test_scalers_can_be_stacked_and_mapped():
  parts = jnp.stack([jnp.asarray(X[:200]), jnp.asarray(X[200:400])])
  scalers = [fit_scaler(np.asarray(part)) for part in parts]
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *scalers)
  scaled = jax.vmap(lambda s, x: s.apply(x))(stacked, parts)
  back = jax.vmap(lambda s, z: s.invert(z))(stacked, scaled)
  for i, scaler in enumerate(scalers):
    expected = scaler.apply(np.asarray(parts[i]))
    np.testing.assert_allclose(scaled[i], expected, atol=1e-5)
  np.testing.assert_allclose(back, parts, rtol=1e-3, atol=1e-3)


def test_images_are_scaled_per_channel():
  images = RNG.uniform(size=(50, 4, 5, 3)).astype(np.float32) * [1, 2, 3]
  scaled = fit_scaler(images.astype(np.float32)).apply(images)
  np.testing.assert_allclose(scaled.mean((0, 1, 2)), 0, atol=1e-5)
  np.testing.assert_allclose(scaled.std((0, 1, 2)), 1, atol=1e-5)


def test_chunks_do_not_change_the_result(monkeypatch):
  x = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
  whole = fit_scaler(x)
  monkeypatch.setattr(_scaling, "CHUNK", 7)
  for a, b in zip(fit_scaler(x)[:3], whole[:3], strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_unusable_input_is_refused():
  with pytest.raises(ArgumentError, match=r"scale='standart'.*standard"):
    fit_scaler(X, "standart")
  with pytest.raises(ArgumentError, match="a scaler needs"):
    fit_scaler(X[:0])


@pytest.mark.parametrize("make", [np.asarray, jnp.asarray])
def test_rows_end_inside_the_ball_and_short_ones_stay(make):
  x = np.concatenate([X, X * 1e-4, np.zeros((1, 4), np.float32)])
  bounded = np.asarray(bound_rows(make(x), 2.0), np.float64)
  norms = np.linalg.norm(x.astype(np.float64), axis=1)
  assert np.linalg.norm(bounded, axis=1).max() <= 2.0
  short = norms < 2.0 - 1e-6
  np.testing.assert_array_equal(bounded[short], x[short])
  expected = x * np.minimum(1, 2 / np.maximum(norms, 1e-30))[:, None]
  np.testing.assert_allclose(bounded, expected, rtol=1e-5)


def test_bounding_survives_numbers_whose_squares_overflow():
  x = np.array([[3e30, 4e30], [3e-30, 4e-30]], np.float32)
  np.testing.assert_allclose(bound_rows(x), [[0.6, 0.8], [3e-30, 4e-30]], rtol=1e-5)


def test_bounding_works_for_images_inside_jit():
  x = jnp.ones((2, 3, 3, 1)) * jnp.array([1.0, 0.1]).reshape(2, 1, 1, 1)
  bounded = jax.jit(bound_rows)(x)
  np.testing.assert_allclose(jnp.sqrt(jnp.sum(bounded**2, (1, 2, 3))), [1, 0.3], rtol=1e-5)


def test_bounding_refuses_what_has_no_norm():
  with pytest.raises(ArgumentError, match="NaN"):
    bound_rows(np.array([[np.nan]], np.float32))
  with pytest.raises(ArgumentError, match="norm=0"):
    bound_rows(X, 0)
