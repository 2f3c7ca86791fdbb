"""Each bound of the chapter, both sides measured; and where it fails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, ZOO, moved, people
from jaxfair import models, pruning, tree
from jaxfair.pruning import _bounds, _factor_bounds
from jaxfair.types import Examples, Model

PEOPLE = people(n=30)
LOSS = models.cross_entropy


def prune(params, rate):
  return pruning.apply_masks(params, pruning.magnitude_masks(params, rate))


@pytest.mark.slow
def test_terms_of_theorem_5_1_are_ordered_and_expand_the_excess():
  model = ZOO["tanh"]
  params = moved(model, PEOPLE)
  whole = tree.subtract(prune(params, 0.5), params)
  remainders = []
  for share in (0.2, 0.1):  # a short way along the same direction
    near = tree.add(params, tree.scale(share, whole))
    found = _bounds.excess_bound(model, LOSS, params, near, PEOPLE, num_groups=2, key=KEY, steps=40)
    assert np.all(found.slope.group <= found.first.group)
    assert np.all(found.curvature.group <= found.second.group * (1 + 1e-4))
    assert np.all(found.holds.group)
    remainders.append(np.abs(found.remainder.group).max())
  # The third order: half the way, an eighth of the remainder (and rounding).
  assert remainders[1] < remainders[0] / 4 + 1e-6


@pytest.mark.slow
def test_the_third_order_can_break_theorem_5_1():
  """One weight, the loss (w - 1)^4: at w = 1 gradient and curvature are 0."""
  model = Model(lambda key, x: {"w": jnp.ones((1, 1))}, lambda p, x: x @ p["w"])
  ones = np.ones((4, 1), np.float32)
  same = Examples(ones, np.zeros(4, np.int32), np.array([0, 0, 1, 1], np.int32))
  found = _bounds.excess_bound(
    model,
    lambda z, y: (z[:, 0] - 1) ** 4,
    {"w": jnp.ones((1, 1))},
    {"w": jnp.zeros((1, 1))},
    same,
    num_groups=2,
    key=KEY,
  )
  np.testing.assert_allclose(found.bound.group, 0)
  np.testing.assert_allclose(found.excess.group, 1)
  assert not np.any(found.holds.group)


def constant_people(ones, sizes):
  """Groups of these sizes, so many of label 1; nobody has a feature."""
  y = [np.arange(n) < k for k, n in zip(ones, sizes, strict=True)]
  group = np.repeat(np.arange(len(sizes)), sizes)
  return Examples(
    np.zeros((sum(sizes), 1), np.float32),
    np.concatenate(y).astype(np.int32),
    group.astype(np.int32),
  )


def biased(chance):
  """Softmax regression that gives class 1 this chance."""
  bias = jnp.asarray([0.0, np.log(chance / (1 - chance))])
  return {"w": jnp.zeros((1, 2)), "b": bias}


@pytest.mark.slow
def test_of_two_groups_sizes_times_gradients_are_equal_at_the_optimum():
  made, model = constant_people((50, 10), (60, 20)), models.logistic(2)
  found = _bounds.size_identity(model, LOSS, biased(60 / 80), made, num_groups=2)
  np.testing.assert_array_equal(found.count, [60, 20])
  assert found.imbalance < 1e-5
  # The slope by both biases is mean f - y: 3/4 - 5/6 and 3/4 - 1/2.
  expected = np.sqrt(2) * np.abs([3 / 4 - 5 / 6, 3 / 4 - 1 / 2])
  np.testing.assert_allclose(found.gradient_norm, expected, rtol=1e-4)
  away = _bounds.size_identity(model, LOSS, biased(0.1), made, num_groups=2)
  assert away.imbalance > 0.9  # both pull the same way


@pytest.mark.slow
def test_of_three_groups_the_larger_may_have_the_larger_gradient():
  # Two large groups that pull against each other, a small one that is content.
  made = constant_people((40, 0, 5), (40, 40, 10))
  found = _bounds.size_identity(models.logistic(2), LOSS, biased(0.5), made, num_groups=3)
  assert found.imbalance < 1e-6  # stationary
  assert found.gradient_norm[0] > 0.5  # and yet the largest groups
  assert found.gradient_norm[2] < 1e-6  # have the largest gradients


@pytest.mark.slow
def test_proposition_5_2_is_a_chain_of_three():
  model = ZOO["tanh"]
  params = moved(model, PEOPLE)
  found = _factor_bounds.gradient_bound(model, LOSS, params, PEOPLE, num_groups=2)
  assert np.all(found.gradient_norm.group <= found.mean_norm.group)
  assert np.all(found.mean_norm.group <= found.bound.group * (1 + 1e-5))
  own = PEOPLE.take(PEOPLE.group == 0)
  logits = model.apply(params, own.x)
  off = jax.nn.softmax(logits) - jax.nn.one_hot(own.y, 3)
  flat, unravel = jax.flatten_util.ravel_pytree(params)
  jacobians = jax.jit(jax.jacrev(lambda v: model.apply(unravel(v), own.x)))(flat)
  largest = np.linalg.svd(np.asarray(jacobians), compute_uv=False)[:, 0]
  sizes = np.linalg.norm(np.asarray(off), axis=1)
  each = np.einsum("nc,ncp->np", off, jacobians)
  np.testing.assert_allclose(
    found.mean_norm.group[0], np.linalg.norm(each, axis=1).mean(), rtol=1e-4
  )
  np.testing.assert_allclose(found.gradient_norm.group[0], np.linalg.norm(each.mean(0)), rtol=1e-4)
  np.testing.assert_allclose(found.error.group[0], sizes.mean(), rtol=1e-4)
  np.testing.assert_allclose(found.bound.group[0], (sizes * largest).mean(), rtol=1e-4)


@pytest.mark.slow
def test_theorem_5_2_bounds_the_top_eigenvalue():
  model = ZOO["tanh"]
  params = moved(model, PEOPLE)
  found = _factor_bounds.eigenvalue_bound(
    model, LOSS, params, PEOPLE, num_groups=2, key=KEY, steps=25
  )
  assert np.all(found.top.group <= found.bound.group)
  assert np.all(found.error.group > 0)


@pytest.mark.slow
def test_with_the_papers_sign_theorem_5_2_fails_and_with_ours_it_holds():
  """s = -w^2 and label 1: the loss bends by f(1-f) 4w^2 + 2 (1-f)."""
  model = Model(
    lambda key, x: {"w": jnp.ones(())},
    lambda p, x: jnp.stack([jnp.zeros(len(x)), -x[:, 0] * p["w"] ** 2], 1),
  )
  made = Examples(np.ones((2, 1), np.float32), np.ones(2, np.int32), np.zeros(2, np.int32))
  w = 0.3
  found = _factor_bounds.eigenvalue_bound(
    model, LOSS, {"w": jnp.asarray(w)}, made, num_groups=1, key=KEY, steps=1
  )
  f = 1 / (1 + np.exp(w**2))
  boundary = f * (1 - f) * 4 * w**2
  truth = boundary + 2 * (1 - f)
  np.testing.assert_allclose(found.top.group, [truth], rtol=1e-5)
  np.testing.assert_allclose(found.boundary.group, [boundary], rtol=1e-5)
  np.testing.assert_allclose(found.bound.group, [truth], rtol=1e-5)
  papers = boundary + abs(f - 1) * -2.0  # lambda_max(d^2 s) = -2
  assert papers < truth
