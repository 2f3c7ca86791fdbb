"""Chunks on the host against one program, and against whole Hessians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, ZOO, moved, people
from jaxfair import checks, models
from jaxfair.analysis import top_eigenvalue
from jaxfair.analysis._group_gradients import group_gradients
from jaxfair.analysis._hessian import group_hessians
from jaxfair.analysis._streamed_products import chunks_by_group, largest_streamed

PEOPLE = people()
MODEL = ZOO["tanh"]
LOSS = models.cross_entropy
PARAMS = moved(MODEL, PEOPLE)


def test_weights_of_a_group_sum_to_one_and_padding_has_none():
  groups = chunks_by_group(PEOPLE, 3, 5)
  assert groups[2] == []
  for a, own in [(0, groups[0]), (1, groups[1]), (None, groups[3])]:
    rows = np.concatenate([chunk.people.x for chunk in own])
    weights = np.concatenate([chunk.weights for chunk in own])
    assert {len(chunk.weights) for chunk in own} == {5}
    assert weights.sum() == pytest.approx(1.0)
    member = PEOPLE.group == a if a is not None else np.ones(24, bool)
    np.testing.assert_array_equal(rows[weights > 0], PEOPLE.x[member])


@pytest.mark.slow
def test_gradients_of_groups_are_those_of_their_people_alone():
  found = group_gradients(MODEL, LOSS, PARAMS, PEOPLE, num_groups=3)
  traced = jax.jit(lambda some: group_gradients(MODEL, LOSS, PARAMS, some, num_groups=3))(PEOPLE)
  slope = jax.jit(jax.grad(lambda p, x, y, w: jnp.vdot(w, LOSS(MODEL.apply(p, x), y))))
  for a in (0, 1, None):
    member = PEOPLE.group == a if a is not None else np.ones(24, bool)
    weights = np.float32(member / member.sum())
    alone = slope(PARAMS, PEOPLE.x, PEOPLE.y, weights)
    for way in (found, traced):
      own = way.population if a is None else jax.tree.map(lambda leaf, a=a: leaf[a], way.group)
      jax.tree.map(
        lambda one, truth: np.testing.assert_allclose(one, truth, rtol=1e-4, atol=1e-6), own, alone
      )
  for way in (found, traced):
    assert all(np.isnan(leaf[2]).all() for leaf in jax.tree.leaves(way.group))


@pytest.mark.slow
def test_the_top_eigenvalue_is_that_of_the_whole_hessian():
  found = top_eigenvalue(
    MODEL, LOSS, PARAMS, PEOPLE, num_groups=3, key=KEY, steps=35, chunk=9
  ).values
  truth = group_hessians(MODEL, LOSS, PARAMS, PEOPLE, num_groups=3)
  matrices = np.asarray([*truth.group[:2], truth.population], np.float64)
  values = np.linalg.eigvalsh(matrices)
  assert values[:, 0].min() < 0  # there are negative ones to confuse it with
  np.testing.assert_allclose(found.group[:2], values[:2, -1], rtol=1e-4)
  np.testing.assert_allclose(found.population, values[2, -1], rtol=1e-4)
  assert np.isnan(found.group[2])


@pytest.mark.slow
def test_a_larger_negative_eigenvalue_is_not_the_top_one():
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
  values = np.r_[-10.0, np.linspace(-1, 3, 28), 3.5]
  matrix = ((basis * values) @ basis.T).astype(np.float32)
  start = rng.normal(size=30).astype(np.float32)
  # More steps than dimensions: orthogonality is lost, the value is not.
  for steps in (25, 60):
    found, error = largest_streamed(lambda v: matrix @ v, start, steps)
    assert found == pytest.approx(3.5, rel=1e-4)
    assert error < 1e-2
  found, error = largest_streamed(lambda v: -v, np.ones(6, np.float32), 5)
  assert found == pytest.approx(-1.0, rel=1e-6)
  assert error < 1e-6


def test_chunks_are_refused_inside_a_program():
  with pytest.raises(checks.ArgumentError, match="loops on the host"):
    jax.jit(lambda p: chunks_by_group(p, 2, 5))(PEOPLE)


def test_about_as_many_people_share_a_shape():
  sizes = {
    len(own[0].weights)
    for count in (12, 15, 21)
    for own in chunks_by_group(PEOPLE.take(slice(count)), 3, 256)
    if own
  }
  assert sizes == {32}
