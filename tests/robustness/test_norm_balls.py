"""Projections and directions of the two balls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair.robustness._norm_balls import L2, LINF

both = pytest.mark.parametrize("ball", [LINF, L2], ids=["l_inf", "l_2"])
PUSHES = jax.random.normal(jax.random.key(0), (50, 3, 4, 2))
DUAL = {1: lambda g: np.abs(g).sum(1), 2: lambda g: np.linalg.norm(g, axis=1)}


def sizes(ball, push):
  order = np.inf if ball is LINF else 2
  return np.linalg.norm(np.asarray(push).reshape(len(push), -1), order, axis=1)


@both
def test_norms_are_numpy_s(ball):
  np.testing.assert_allclose(ball.norm(PUSHES), sizes(ball, PUSHES), rtol=1e-6)


@both
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_the_steepest_push_gains_the_dual_norm(ball, scale):
  gradient = scale * PUSHES
  push = np.asarray(ball.steepest(gradient))
  assert sizes(ball, push) == pytest.approx(1.0, abs=1e-5)
  gain = (np.float64(push) * np.float64(gradient)).reshape(50, -1).sum(1)
  dual = DUAL[ball.dual](np.float64(gradient).reshape(50, -1))
  np.testing.assert_allclose(gain, dual, rtol=1e-5)


@both
def test_no_gradient_no_push(ball):
  assert not np.any(ball.steepest(jnp.zeros((2, 5))))


@pytest.mark.slow
@both
def test_the_projection_is_the_nearest_point_of_the_ball(ball):
  epsilon = 0.7
  near = np.asarray(ball.project(PUSHES, epsilon))
  assert (sizes(ball, near) <= epsilon * (1 + 1e-6)).all()
  away = np.linalg.norm((near - PUSHES).reshape(50, -1), axis=1)
  for seed in range(20):
    other = np.random.default_rng(seed).uniform(-1, 1, PUSHES.shape)
    other *= epsilon / sizes(ball, other).reshape(-1, 1, 1, 1)
    apart = np.linalg.norm((other - PUSHES).reshape(50, -1), axis=1)
    assert (apart >= away - 1e-5).all()


@both
def test_what_is_inside_stays(ball):
  small = 0.01 * PUSHES
  np.testing.assert_array_equal(ball.project(small, 1.0), small)
