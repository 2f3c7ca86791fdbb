"""Attacks that stop at the first break, beside those that take all steps."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxfair import checks, models
from jaxfair.robustness import attacks
from jaxfair.robustness.attacking import attack
from jaxfair.robustness.balls import L2, LINF
from jaxfair.types import Examples, Model

KEY = jax.random.key(3)
PIXELS = (0.0, 1.0)
EPSILONS = (0.4, 0.0, 0.02, 0.1)  # in no order
PEOPLE = 60  # 240 pairs: more than fit the window
MODEL = models.mlp((16,), 3)


def setting(seed=0):
  rng = np.random.default_rng(seed)
  x = rng.random((PEOPLE, 2, 3), dtype=np.float32)
  params = MODEL.init(jax.random.key(seed), x[0])
  params = jax.tree.map(lambda p: 2 * p, params)
  y = np.asarray(MODEL.apply(params, x)).argmax(-1).astype(np.int32)
  y[::5] = (y[::5] + 1) % 3  # some are wrong from the start
  return params, Examples(x, y, np.zeros(PEOPLE, np.int32))


PARAMS, SOME = setting()
KINDS = {
  "FGSM": attacks.fgsm(input_range=PIXELS),
  "RFGSM": attacks.rfgsm(input_range=PIXELS, steps=3),
  "PGD": attacks.pgd(input_range=PIXELS, steps=6),
  "PGD l_2": attacks.pgd(L2, input_range=PIXELS, steps=6),
}


def run(how, stop, epsilons=EPSILONS, examples=SOME, **options):
  return attack(
    MODEL, PARAMS, examples, how, epsilons=epsilons, key=KEY, stop=stop,
    **options,
  )  # fmt: skip


@pytest.fixture(scope="module")
def early():
  return {name: run(how, "broken") for name, how in KINDS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_success_is_that_of_the_attack_that_remembers_its_best(kind, early):
  best = run(KINDS[kind], "end")
  np.testing.assert_array_equal(early[kind].success, best.success)
  last = run(dataclasses.replace(KINDS[kind], keep_best=False), "end")
  assert (early[kind].success >= last.success).all()
  assert 0.3 < last.success.mean() < 0.9  # both kinds of pairs are there


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_says_the_same_of_every_returned_input(kind, early):
  found = early[kind]
  logits = MODEL.apply(PARAMS, found.x.reshape(-1, 2, 3))
  labels = np.tile(SOME.y, len(EPSILONS))
  wrong = np.argmax(logits, -1) != labels
  np.testing.assert_array_equal(found.success.ravel(), wrong)
  losses = models.cross_entropy(logits, labels)
  np.testing.assert_allclose(found.loss.ravel(), losses, rtol=1e-4, atol=1e-5)
  clean = np.argmax(MODEL.apply(PARAMS, SOME.x), -1) != SOME.y
  np.testing.assert_array_equal(
    found.x[:, clean], np.broadcast_to(SOME.x[clean], found.x[:, clean].shape)
  )


@pytest.mark.parametrize("kind", KINDS)
def test_pushes_stay_in_the_ball_and_pixels_in_their_range(kind, early):
  found = early[kind]
  apart = np.float64(found.x) - np.float64(SOME.x)
  order = np.inf if KINDS[kind].ball is LINF else 2
  size = np.linalg.norm(apart.reshape(len(EPSILONS), PEOPLE, -1), order, axis=2)
  assert (size <= np.float64(EPSILONS)[:, None] * (1 + 1e-5) + 2e-7).all()
  assert found.x.min() >= 0
  assert found.x.max() <= 1


@pytest.mark.slow
def test_what_holds_out_is_pushed_as_by_the_ordinary_attack():
  how = dataclasses.replace(KINDS["PGD"], keep_best=False)
  found = run(how, "broken")
  last = run(how, "end")
  held = ~found.success
  assert held.sum() > 50
  np.testing.assert_allclose(found.x[held], last.x[held], atol=1e-6)


@pytest.mark.slow
def test_both_loops_and_all_batches_agree(early):
  for options in ({"loop": "step"}, {"batch_size": 40}):
    found = run(KINDS["PGD"], "broken", **options)
    np.testing.assert_array_equal(found.success, early["PGD"].success)
    np.testing.assert_allclose(found.x, early["PGD"].x, atol=1e-6)


@pytest.mark.parametrize("wrong", [True, False])
def test_nobody_and_everybody_to_attack(wrong):
  predicted = np.argmax(MODEL.apply(PARAMS, SOME.x), -1)
  y = ((predicted + wrong) % 3).astype(np.int32)
  found = run(KINDS["PGD"], "broken", examples=SOME._replace(y=y))
  assert found.success[1].all() == wrong  # epsilon 0
  assert found.success.all() == wrong


def test_one_gradient_serves_all_epsilons_of_fgsm():
  assert KINDS["FGSM"].steps_left == 0
  calls = []

  def counting(params, x):
    jax.debug.callback(calls.append, x[0, 0, 0])
    return MODEL.apply(params, x)

  model = Model(MODEL.init, counting)
  attack(model, PARAMS, SOME, KINDS["FGSM"], epsilons=EPSILONS, key=KEY)
  jax.effects_barrier()
  assert len(calls) == 1 + len(EPSILONS)  # the gradient; a look at each


def test_another_word_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"stop.*end.*broken"):
    run(KINDS["PGD"], "first")
