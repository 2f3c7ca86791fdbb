"""Attacks beside foolbox's, on the same models.

Both take the same steps in float32. A step along signs differs only where a
gradient is 0 up to rounding: there its sign is a coin, and what follows from
it differs, too. So images whose path meets such a pixel are set aside, few as
they are, and all pixels of the others must agree.
"""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import models
from jaxfair.robustness import _attacks
from jaxfair.robustness._attack_many import attack
from jaxfair.robustness._norm_balls import L2, LINF
from jaxfair.types import Examples

with warnings.catch_warnings():
  warnings.filterwarnings("ignore", "Please import `gaussian_filter`", DeprecationWarning)
  import foolbox

PIXELS = (0.0, 1.0)
SHAPE = (8, 8, 1)
PEOPLE, STEPS, SHARE = 24, 6, 0.3
EPSILONS = {"l_inf": (0.01, 0.05, 0.2), "l_2": (0.1, 0.5, 2.0)}
MODELS = {
  "dense": models.mlp((16,), 4),
  "convolutions": models.convnet(4, (models.Conv(4, stride=2),)),
}
# A gradient is a chain of sums over fewer than 150 terms (64 pixels or 64
# units, 16 units, 4 classes), forth and back; each sum of k terms errs by
# less than k roundings.
ROUNDING = 2.0**-24
COIN = 2 * 150 * ROUNDING


def setting(name):
  rng = np.random.default_rng(0)
  x = rng.random((PEOPLE, *SHAPE), dtype=np.float32)
  model = MODELS[name]
  params = model.init(jax.random.key(1), x[0])
  params = jax.tree.map(lambda p: 3 * p, params)
  y = np.asarray(model.apply(params, x)).argmax(-1).astype(np.int32)
  y[::8] = (y[::8] + 1) % 4  # some are wrong from the start
  return model, params, Examples(x, y, np.zeros(PEOPLE, np.int32))


def kinds(ball):
  """Ours, foolbox's, how many steps, and their share of epsilon."""
  once = dataclasses.replace(_attacks.fgsm(ball, input_range=PIXELS), keep_best=False)
  many = _attacks.Attack(
    "PGD", ball, STEPS, SHARE, _attacks.from_input, 0.0, PIXELS, keep_best=False
  )
  options = {"rel_stepsize": SHARE, "steps": STEPS, "random_start": False}
  if ball is LINF:
    pgd, fgsm = foolbox.attacks.LinfPGD, foolbox.attacks.LinfFastGradientAttack
  else:
    pgd, fgsm = foolbox.attacks.L2PGD, foolbox.attacks.L2FastGradientAttack
  return {
    "FGSM": (once, fgsm(random_start=False), 1, 1.0),
    "PGD": (many, pgd(**options), STEPS, SHARE),
  }


def sure(model, params, some, ball, epsilon, steps, share):
  """[n] whether no sign on the path is a coin, nor the prediction after it."""

  @jax.jit
  def gradient(x):
    def total(x):
      return jnp.sum(models.cross_entropy(model.apply(params, x), some.y))

    return jax.grad(total)(x).reshape(PEOPLE, -1)

  clean = some.x.reshape(PEOPLE, -1)
  x, found = clean, np.ones(PEOPLE, bool)
  for _ in range(steps):
    g = np.asarray(gradient(x.reshape(some.x.shape)))
    size = np.abs(g)
    if ball is LINF:
      found &= np.all(size > COIN * size.max(1, keepdims=True), axis=1)
    push = x - clean + share * epsilon * np.asarray(ball.steepest(g))
    x = np.clip(clean + np.asarray(ball.project(push, epsilon)), *PIXELS)
  top = np.sort(model.apply(params, x.reshape(some.x.shape)), axis=1)
  return found & (top[:, -1] - top[:, -2] > COIN * np.abs(top).max(1))


@pytest.mark.slow
@pytest.mark.parametrize("ball", [LINF, L2], ids=["l_inf", "l_2"])
@pytest.mark.parametrize("kind", ["FGSM", "PGD"])
@pytest.mark.parametrize("name", MODELS)
def test_images_and_success_are_foolboxes(name, kind, ball):
  model, params, some = setting(name)
  how, peer, steps, share = kinds(ball)[kind]
  epsilons = EPSILONS[ball.name]
  found = attack(model, params, some, how, epsilons=epsilons, key=jax.random.key(0))
  wrapped = foolbox.JAXModel(jax.jit(lambda x: model.apply(params, x)), bounds=PIXELS)
  _, pushed, success = peer(wrapped, jnp.asarray(some.x), jnp.asarray(some.y), epsilons=epsilons)
  for row, epsilon in enumerate(epsilons):
    certain = sure(model, params, some, ball, epsilon, steps, share)
    assert certain.mean() > 0.75
    np.testing.assert_array_equal(found.success[row][certain], np.asarray(success[row])[certain])
    # Signs: each step adds and projects, three roundings of a pixel of at
    # most 1. Directions also err by COIN of a step's length.
    allowed = 3 * steps * 2 * ROUNDING
    if ball is L2:
      allowed += steps * share * epsilon * COIN
    np.testing.assert_allclose(
      found.x[row][certain], np.asarray(pushed[row])[certain], rtol=0, atol=allowed
    )
  # Both answers occur.
  assert 0.1 < found.success.mean() < 0.95
