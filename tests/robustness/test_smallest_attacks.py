"""The search for the smallest epsilons, beside attacks that take all steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models
from jaxfair.robustness import _attacks, _smallest_attacks
from jaxfair.robustness._attack_many import attack
from jaxfair.robustness._norm_balls import L2, LINF
from jaxfair.types import Examples, Model

KEY = jax.random.key(3)
PIXELS = (0.0, 1.0)
EPSILONS = (0.4, 0.0, 0.02, 0.1, 0.1)  # in no order, and one of them twice
ORDER = np.argsort(EPSILONS, stable=True)
PEOPLE = _smallest_attacks.WINDOW + 16  # more than fit the window
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
  "FGSM": _attacks.fgsm(input_range=PIXELS),
  "RFGSM": _attacks.rfgsm(input_range=PIXELS, steps=3),
  "PGD": _attacks.pgd(input_range=PIXELS, steps=6),
  "PGD l_2": _attacks.pgd(L2, input_range=PIXELS, steps=6),
  "PGD from the input": _attacks.Attack("PGD", LINF, 12, 0.1, _attacks.from_input, 0.0, PIXELS),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def run(how, stop="smallest", epsilons=EPSILONS, examples=SOME, **options):
  return attack(MODEL, PARAMS, examples, how, epsilons=epsilons, key=KEY, stop=stop, **options)


@pytest.fixture(scope="module")
def found():
  return {name: run(how) for name, how in KINDS.items()}


@pytest.mark.slow
@every_kind
def test_success_is_that_of_attacks_that_take_all_steps(kind, found):
  """Those that remember their best; here none fails above one that works."""
  whole = run(KINDS[kind], "end").success
  assert (np.diff(whole[ORDER].astype(int), axis=0) >= 0).all()
  assert 0.3 < whole.mean() < 0.9
  np.testing.assert_array_equal(found[kind].success, whole)


@pytest.mark.slow
def test_one_epsilon_misses_nothing():
  for epsilon in (0.02, 0.1):
    for kind in ("PGD l_2", "PGD from the input"):
      ours, whole = (run(KINDS[kind], stop, epsilons=(epsilon,)) for stop in ("smallest", "end"))
      np.testing.assert_array_equal(ours.success, whole.success)


@pytest.mark.slow
@every_kind
def test_what_was_found_breaks_the_model_inside_the_ball(kind, found):
  ours = found[kind]
  logits = MODEL.apply(PARAMS, ours.x.reshape(-1, 2, 3))
  labels = np.tile(SOME.y, len(EPSILONS))
  wrong = np.argmax(logits, -1) != labels
  np.testing.assert_array_equal(ours.success.ravel(), wrong)
  losses = models.cross_entropy(logits, labels)
  np.testing.assert_allclose(ours.loss.ravel(), losses, rtol=1e-4, atol=1e-5)
  apart = np.float64(ours.x) - np.float64(SOME.x)
  order = np.inf if KINDS[kind].ball is LINF else 2
  size = np.linalg.norm(apart.reshape(len(EPSILONS), PEOPLE, -1), order, axis=2)
  assert (size <= np.float64(EPSILONS)[:, None] * (1 + 1e-5) + 2e-7).all()
  assert ours.x.min() >= 0
  assert ours.x.max() <= 1
  # Nothing found, or wrong from the start: as it was.
  clean = np.argmax(MODEL.apply(PARAMS, SOME.x), -1) != SOME.y
  same = ~ours.success | clean
  np.testing.assert_array_equal(size[same], 0)


@pytest.mark.slow
@every_kind
def test_success_never_falls_and_equal_epsilons_are_equal(kind, found):
  ours = found[kind]
  assert (np.diff(ours.success[ORDER].astype(int), axis=0) >= 0).all()
  for leaf in ours:
    np.testing.assert_array_equal(leaf[3], leaf[4])


def test_pgd_is_never_weaker_than_fgsm(found):
  assert (found["PGD"].success >= found["FGSM"].success).all()


def bent(turn):
  """Class 1 up to a push of `turn`, then class 0 again."""

  def apply(params, x):
    rise = params * (x[:, 0] - 0.5)
    score = jnp.where(rise < turn, 10 * rise - 0.1, 10 * (2 * turn - rise) - 3)
    return jnp.stack([jnp.zeros_like(score), score], axis=1)

  return Model(lambda key, x: jnp.ones(()), apply)


def on_bent(how, epsilons, stop):
  two = Examples(np.array([[0.5], [0.9]], np.float32), np.zeros(2, np.int32), np.zeros(2, np.int32))
  return attack(bent(0.1), jnp.ones(()), two, how, epsilons=epsilons, key=KEY, stop=stop)


@pytest.mark.slow
def test_a_small_push_counts_at_epsilons_at_which_the_attack_fails():
  epsilons = (0.05, 0.4)
  whole = on_bent(KINDS["FGSM"], epsilons, "end")
  assert whole.success[:, 0].tolist() == [True, False]
  ours = on_bent(KINDS["FGSM"], epsilons, "smallest")
  assert ours.success[:, 0].tolist() == [True, True]
  np.testing.assert_allclose(ours.x[:, 0, 0], 0.55, rtol=1e-6)


@pytest.mark.slow
def test_what_is_met_on_the_way_counts_at_smaller_epsilons():
  """A push above 0.01 breaks. At 0.05 the third step gets there, at 0.015.

  That is within 0.02, where steps of its own would have ended at 0.012.
  """
  ours = on_bent(KINDS["PGD from the input"], (0.05, 0.4, 0.02), "smallest")
  assert ours.success[:, 0].tolist() == [True, True, True]
  np.testing.assert_allclose(ours.x[:, 0, 0], [0.515] * 3, atol=1e-6)


@pytest.mark.slow
def test_both_loops_and_all_batches_agree(found):
  for options in ({"loop": "step"}, {"batch_size": 40}):
    ours = run(KINDS["PGD"], **options)
    np.testing.assert_array_equal(ours.success, found["PGD"].success)
    np.testing.assert_allclose(ours.x, found["PGD"].x, atol=1e-6)


@pytest.mark.parametrize("wrong", [True, False])
def test_nobody_and_everybody_to_attack(wrong):
  predicted = np.argmax(MODEL.apply(PARAMS, SOME.x), -1)
  y = ((predicted + wrong) % 3).astype(np.int32)
  ours = run(KINDS["PGD"], examples=SOME._replace(y=y))
  assert ours.success[1].all() == wrong  # epsilon 0
  assert ours.success.all() == wrong


@pytest.mark.slow
def test_who_holds_out_takes_its_steps_once_and_other_values_compile_nothing():
  calls, traces = [], []

  def counting(params, x):
    traces.append(1)
    jax.debug.callback(calls.append, x[0, 0, 0])
    return MODEL.apply(params, x)

  model = Model(MODEL.init, counting)
  few = SOME.take(np.arange(20) * 2 + 1)
  y = np.argmax(MODEL.apply(PARAMS, few.x), -1).astype(np.int32)
  few = few._replace(y=y)

  def go(scale, how):
    calls.clear()
    epsilons = [scale * e for e in (1, 2, 3, 4)]
    attack(model, PARAMS, few, how, epsilons=epsilons, key=KEY, stop="smallest")
    jax.effects_barrier()
    return len(calls)

  # The clean gradient; a look at four first pushes; then four steps, each with
  # a look, and a last look: not four times as many.
  short = _attacks.Attack("PGD", LINF, 5, 0.1, _attacks.from_input, 0.0, PIXELS)
  assert go(1e-4, short) == 1 + 4 + 5
  seen = len(traces)
  go(1e-3, short)
  assert len(traces) == seen
  assert go(1e-5, KINDS["FGSM"]) == 1 + 4


def test_another_word_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"stop.*end.*smallest"):
    run(KINDS["PGD"], "first")
