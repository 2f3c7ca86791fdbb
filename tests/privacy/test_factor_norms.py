"""Norms from factors: never below the truth by more than is allowed for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.privacy import _factor_norms, _factors


def parts_of(arrays):
  """A gradient that was built, or the products of pairs of factors."""
  if not isinstance(arrays[0], tuple):
    return [_factors.Whole(arrays[0])]
  tables = [HEIGHT if left.ndim == 2 else left.shape[2] for left, _ in arrays]
  return [
    _factors.Product(left, right, None, height)
    for (left, right), height in zip(arrays, tables, strict=True)
  ]


HEIGHT = 7  # of the tables that row numbers look into


@jax.jit
def bounded(arrays):
  """Squared norms in float32, and what may be missing from them."""
  parts = parts_of(arrays)
  count = jax.tree.leaves(arrays)[0].shape[0]
  squared = _factor_norms.squared_norms(parts, count)
  return squared, _factor_norms.hidden_by_rounding(parts, squared)


def exact(arrays):
  """The same of the same float32 numbers, in float64."""
  total = 0.0
  for array in arrays:
    if not isinstance(array, tuple):
      total = total + np.asarray(array, np.float64)
      continue
    left, right = (np.asarray(a, np.float64) for a in array)
    if left.ndim == 2:
      left = np.eye(HEIGHT + 1)[np.asarray(array[0])][..., :HEIGHT]
    total = total + np.einsum("nth,ntw->nhw", left, right)
  return np.sum(total**2, axis=tuple(range(1, total.ndim)))


def judged(arrays):
  """[n] the truth, what was found, and the allowance."""
  arrays = jax.tree.map(
    lambda a: jnp.asarray(a, jnp.int32 if a.dtype.kind == "i" else jnp.float32), arrays
  )
  squared, hidden = (np.asarray(a, np.float64) for a in bounded(arrays))
  return exact(arrays), squared, hidden


def normal(*shape, seed=0):
  return np.random.default_rng(seed).normal(size=shape)


def canceling(count, positions, height, width, seed=0):
  """Positions that cancel, up to some digits, with rows of all sizes."""
  rng = np.random.default_rng(seed)
  left = rng.normal(size=(count, positions // 2, height))
  right = rng.normal(size=(count, positions // 2, width))
  left = left * 10.0 ** rng.uniform(-3, 3, (count, positions // 2, 1))
  apart = 10.0 ** rng.uniform(-9, 0, (count, 1, 1))
  left = np.concatenate([left, left * (1 + apart * rng.normal())], 1)
  return left, np.concatenate([right, -right], 1)


CASES = {
  "vector": [normal(50, 4000)],
  "matrix": [normal(50, 60, 70)],
  "number": [normal(50)],
  "kernel": [normal(50, 3, 3, 8, 9)],
  "one position": [(normal(50, 1, 300), normal(50, 1, 200, seed=1))],
  "positions": [(normal(50, 6, 80), normal(50, 6, 70, seed=1))],
  "canceling": [canceling(400, 6, 80, 70)],
  "many positions": [canceling(200, 60, 20, 30)],
  "two uses": [canceling(400, 4, 20, 30), tuple(-a for a in canceling(400, 4, 20, 30, seed=1))],
  "rows": [(np.random.default_rng(0).integers(0, HEIGHT + 1, (50, 9)), normal(50, 9, 5))],
}


@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_within_what_is_allowed_for(name):
  truth, squared, hidden = judged(CASES[name])
  assert (truth <= squared + hidden).all()


@pytest.mark.parametrize("name", ["vector", "matrix", "kernel", "one position"])
def test_squares_need_a_tiny_share_of_themselves(name):
  _, squared, hidden = judged(CASES[name])
  assert (hidden <= 3e-4 * squared).all()


def test_positions_that_do_not_cancel_are_hardly_clipped_more():
  # As many as a convolution on 14 x 14 maps has: half a percent of the norm.
  arrays = [(normal(20, 196, 144), normal(20, 196, 32, seed=1))]
  _, squared, hidden = judged(arrays)
  assert (hidden <= 0.01 * squared).all()


def test_what_is_lost_beside_something_large_is_allowed_for():
  """Each small square is below half a rounding of the sum so far."""
  few = np.full((1, 4096), 2.0**-12.5)
  few[0, 0] = 1.0
  for array in (few, few.reshape(1, 64, 64), np.repeat(few, 3, 1)):
    truth, squared, hidden = judged([array])
    assert truth[0] > 1.0001  # what a sum in order would miss
    assert truth[0] <= squared[0] + hidden[0]


def test_without_the_allowance_canceling_gradients_would_pass():
  truth, squared, hidden = judged(CASES["canceling"])
  assert (truth > 2 * np.maximum(squared, 0)).any()
  assert (hidden > 0).all()


def test_later_roundings_are_paid_for_as_well():
  whole = [_factors.Whole(jnp.asarray(normal(5, 40), jnp.float32))]
  squared = _factor_norms.squared_norms(whole, 5)
  more = _factor_norms.hidden_by_rounding(whole, squared, later=100)
  less = _factor_norms.hidden_by_rounding(whole, squared)
  np.testing.assert_allclose(more - less, 100 * 2.0**-24 * squared, rtol=0.01, atol=0)


def test_a_sum_too_long_to_be_bounded_is_refused():
  shape = jax.ShapeDtypeStruct((1, 2**22), jnp.float32)
  with pytest.raises(checks.ArgumentError, match="split the layer"):
    jax.eval_shape(bounded, [shape])


@pytest.mark.parametrize("name", ["matrix", "canceling", "two uses"])
def test_products_keep_all_digits_on_accelerators(name):
  """There float32 matrices are multiplied in fewer digits by default."""

  def all_of_it(arrays, weights):
    parts = parts_of(arrays)
    squared = _factor_norms.squared_norms(parts, weights.shape[0])
    shape = exact_shape(arrays)
    like = jax.ShapeDtypeStruct(shape, jnp.float32)
    return squared, _factors.weighted_sum(parts, weights, like)

  arrays = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), CASES[name])
  count = jax.tree.leaves(arrays)[0].shape[0]
  program = jax.make_jaxpr(all_of_it)(arrays, jnp.ones(count))
  found = [e.params["precision"] for e in program.eqns if "precision" in e.params]
  highest = jax.lax.Precision.HIGHEST
  assert found
  assert all(one == (highest, highest) for one in found)


def exact_shape(arrays):
  if not isinstance(arrays[0], tuple):
    return arrays[0].shape[1:]
  left, right = arrays[0]
  return (left.shape[2], right.shape[2])
