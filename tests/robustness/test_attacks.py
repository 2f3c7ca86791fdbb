"""Attacks as descriptions, and their use inside a training step."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.robustness import _attacks
from jaxfair.robustness._norm_balls import L2, LINF

PIXELS = (0.0, 1.0)


def test_equal_attacks_are_one():
  assert _attacks.pgd(input_range=PIXELS) == _attacks.pgd(input_range=PIXELS)
  assert hash(_attacks.pgd(input_range=PIXELS)) == hash(_attacks.pgd(input_range=PIXELS))
  assert _attacks.pgd(input_range=PIXELS) != _attacks.pgd(L2, input_range=PIXELS)


@pytest.mark.parametrize(
  ("make", "told"),
  [
    (lambda: _attacks.pgd(input_range=(1.0, 0.0)), "least, greatest"),
    (lambda: _attacks.pgd(input_range=PIXELS, steps=-1), "steps"),
    (lambda: _attacks.pgd(input_range=PIXELS, step_share=0.0), "step_share"),
    (lambda: _attacks.rfgsm(input_range=PIXELS, random_share=1.5), "start_share"),
  ],
)
def test_impossible_attacks_are_refused(make, told):
  with pytest.raises(checks.ArgumentError, match=told):
    make()


@pytest.mark.slow
def test_perturb_finds_the_top_of_a_hill():
  """The loss is a paraboloid whose top lies within reach."""
  top = jnp.array([[0.6, 0.4], [0.3, 0.5]])
  x = jnp.full((2, 2), 0.5)

  def judge(x):
    away = jnp.sum((x - top) ** 2, axis=1)
    return -away, jnp.zeros(2, bool)

  how = _attacks.pgd(input_range=PIXELS, steps=16, step_share=0.08)
  found = how.perturb(judge, x, epsilon=0.25, key=jax.random.key(0))
  np.testing.assert_allclose(found, top, atol=0.021)  # a step
  corner = how.perturb(judge, x, epsilon=0.05, key=jax.random.key(0))
  np.testing.assert_allclose(corner, [[0.55, 0.45], [0.45, 0.5]], atol=3e-3)


@pytest.mark.slow
def test_rfgsm_is_a_random_corner_and_one_step():
  slope = jnp.array([1.0, -2.0] * 32)

  def judge(x):
    return x @ slope, jnp.zeros(3, bool)

  x = jnp.full((3, 64), 0.5)
  how = _attacks.rfgsm(input_range=PIXELS, random_share=0.25, step_share=0.75)
  how = dataclasses.replace(how, keep_best=False)
  found = how.perturb(judge, x, epsilon=0.1, key=jax.random.key(0))
  along = np.asarray((found - x) * jnp.sign(slope))
  # A quarter of epsilon at random, three along the gradient.
  near = np.abs(along[..., None] - np.array([0.05, 0.1]))
  assert near.min(-1).max() < 1e-6
  assert 0.2 < np.mean(near.argmin(-1)) < 0.8  # 192 coins: chance 1e-17


@pytest.mark.slow
def test_a_wrong_input_beats_a_larger_loss():
  def judge(x):  # the loss rises with x; wrong only on the way
    return x[:, 0], (x[:, 0] > 0.55) & (x[:, 0] < 0.65)

  how = _attacks.Attack("PGD", LINF, 4, 0.25, _attacks.from_input, 0.0, PIXELS, keep_best=True)
  x = jnp.array([[0.5]])
  found = how.perturb(judge, x, epsilon=0.4, key=jax.random.key(0))
  assert float(found[0, 0]) == pytest.approx(0.6)


def test_a_gradient_that_is_not_finite_pushes_nothing():
  def judge(x):
    return jnp.sum(jnp.sqrt(x), axis=1), jnp.zeros(1, bool)  # slope inf at 0

  how = _attacks.fgsm(input_range=PIXELS)
  x = jnp.array([[0.0, 0.25]])
  found = how.perturb(judge, x, epsilon=0.1, key=jax.random.key(0))
  np.testing.assert_allclose(found, [[0.0, 0.35]], atol=1e-6)


@pytest.mark.slow
def test_random_starts_are_the_key_s():
  def judge(x):
    return jnp.zeros(3), jnp.zeros(3, bool)

  how = _attacks.Attack("start", LINF, 0, 1.0, _attacks.from_signs, 1.0, PIXELS, False)
  x = jnp.full((3, 4), 0.5)
  found = [how.perturb(judge, x, epsilon=0.2, key=jax.random.key(seed)) for seed in (0, 0, 1)]
  np.testing.assert_array_equal(found[0], found[1])
  assert not np.array_equal(found[0], found[2])
  assert np.abs(found[0] - x).max() <= 0.2 + 1e-6
