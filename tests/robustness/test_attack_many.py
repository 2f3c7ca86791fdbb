"""Attacks against a NumPy reference, exact linear distances and each other."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from jaxfair import checks, models
from jaxfair.robustness import _attacks
from jaxfair.robustness._attack_many import attack, negative_margin
from jaxfair.robustness._norm_balls import L2, LINF
from jaxfair.types import Examples

KEY = jax.random.key(3)
PIXELS = (0.0, 1.0)
EPSILONS = (0.0, 0.02, 0.1, 0.4)
KINDS = {
  "FGSM": _attacks.fgsm(input_range=PIXELS),
  "FGSM l_2": _attacks.fgsm(L2, input_range=PIXELS),
  "RFGSM": _attacks.rfgsm(input_range=PIXELS),
  "PGD": _attacks.pgd(input_range=PIXELS, steps=4),
  "PGD l_2": _attacks.pgd(L2, input_range=PIXELS, steps=4),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(seed=0, n=24, shape=(6,)):
  rng = np.random.default_rng(seed)
  x = rng.random((n, *shape), dtype=np.float32)
  y = rng.integers(0, 3, n).astype(np.int32)
  return Examples(x, y, np.zeros(n, np.int32))


MODELS = {
  "linear": (models.mlp((), 3), (6,)),
  "mlp": (models.mlp((16,), 3), (6,)),
  "conv": (models.convnet(3, (models.Conv(4, stride=2),)), (6, 6, 1)),
}


def start(name, seed=0, scale=2.0):
  model, shape = MODELS[name]
  examples = make(seed, shape=shape)
  params = model.init(jax.random.key(seed), examples.x[0])
  return model, jax.tree.map(lambda p: scale * p, params), examples


def run(name, kind, *, seed=0, key=KEY, epsilons=EPSILONS, **options):
  model, params, examples = start(name, seed)
  how = KINDS[kind] if isinstance(kind, str) else kind
  found = attack(model, params, examples, how, epsilons=epsilons, key=key, **options)
  return found, examples


def pushes(found, examples, ball):
  apart = np.float64(found.x) - np.float64(examples.x)
  order = np.inf if ball is LINF else 2
  return np.linalg.norm(apart.reshape(*apart.shape[:2], -1), order, axis=2)


@pytest.mark.slow
@every_kind
@hypothesis.given(
  seed=st.integers(0, 2**16),
  epsilons=st.lists(st.floats(0, 2, width=32), min_size=4, max_size=4),
  stop=st.sampled_from(["end", "smallest"]),
)
@hypothesis.settings(max_examples=20)
def test_pushes_stay_in_the_ball_and_pixels_in_their_range(kind, seed, epsilons, stop):
  key = jax.random.key(seed)
  found, examples = run("mlp", kind, seed=seed, key=key, epsilons=epsilons, stop=stop)
  # The last rounding of x + push is of the size of the pixels.
  allowed = np.float64(epsilons)[:, None] * (1 + 1e-5) + 2e-7
  assert (pushes(found, examples, KINDS[kind].ball) <= allowed).all()
  assert found.x.min() >= 0
  assert found.x.max() <= 1
  if stop == "smallest":
    rising = found.success[np.argsort(epsilons)].astype(int)
    assert (np.diff(rising, axis=0) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
  ("name", "ball"), [("linear", LINF), ("mlp", LINF), ("mlp", L2), ("conv", LINF)]
)
def test_pgd_is_never_weaker_than_fgsm(name, ball):
  weak, strong = ("FGSM", "PGD") if ball is LINF else ("FGSM l_2", "PGD l_2")
  for seed in range(8):
    found, _ = run(name, strong, seed=seed)
    once, _ = run(name, weak, seed=seed)
    assert (found.success >= once.success).all()
    same = found.success == once.success
    assert (found.loss[same] >= once.loss[same] - 1e-5).all()


def linear_logits(params, x):
  return x @ np.float64(params["layer_0"]["w"]) + np.float64(params["layer_0"]["b"])


def softmax_gradient(params, x, y):
  """By hand: (p - onehot) W^T."""
  logits = linear_logits(params, x)
  p = np.exp(logits - logits.max(1, keepdims=True))
  p /= p.sum(1, keepdims=True)
  return (p - np.eye(3)[y]) @ np.float64(params["layer_0"]["w"]).T


@pytest.mark.slow
@pytest.mark.parametrize("ball", [LINF, L2], ids=["l_inf", "l_2"])
def test_the_last_iterate_is_that_of_a_numpy_loop(ball):
  model, params, examples = start("linear")
  how = _attacks.Attack("PGD", ball, 6, 0.3, _attacks.from_input, 0.0, PIXELS, keep_best=False)
  found = attack(model, params, examples, how, epsilons=EPSILONS, key=KEY)
  clean = np.float64(examples.x)
  for row, epsilon in enumerate(EPSILONS):
    x = clean
    for _ in range(6):
      g = softmax_gradient(params, x, examples.y)
      length = np.linalg.norm(g, axis=1, keepdims=True)
      push = x + 0.3 * epsilon * (np.sign(g) if ball is LINF else g / length)
      push -= clean
      if ball is LINF:
        push = np.clip(push, -epsilon, epsilon)
      else:
        size = np.linalg.norm(push, axis=1, keepdims=True)
        push *= np.minimum(1, epsilon / np.maximum(size, 1e-12))
      x = np.clip(clean + push, 0, 1)
    np.testing.assert_allclose(found.x[row], x, atol=2e-5)
    wrong = linear_logits(params, x).argmax(1) != examples.y
    np.testing.assert_array_equal(found.success[row], wrong)


@every_kind
def test_success_is_what_the_model_says_of_the_pushed_inputs(kind):
  found, examples = run("mlp", kind)
  np.testing.assert_array_equal(found.x[0], examples.x)  # epsilon 0
  model, params, _ = start("mlp")
  for row in range(len(EPSILONS)):
    logits = model.apply(params, found.x[row])
    wrong = np.argmax(logits, -1) != examples.y
    np.testing.assert_array_equal(found.success[row], wrong)
    losses = models.cross_entropy(logits, examples.y)
    np.testing.assert_allclose(found.loss[row], losses, rtol=1e-5, atol=1e-5)


def test_the_best_is_never_worse_than_the_clean_input():
  """A large step leads uphill of a wiggly loss, and down again."""
  for seed in range(5):
    found, _ = run("mlp", "FGSM", seed=seed)
    assert (found.success >= found.success[:1]).all()


@pytest.mark.slow
def test_batches_do_not_change_deterministic_attacks():
  whole, _ = run("mlp", "PGD")
  parts, _ = run("mlp", "PGD", batch_size=7)
  np.testing.assert_allclose(whole.x, parts.x, atol=1e-6)
  np.testing.assert_array_equal(whole.success, parts.success)


@pytest.mark.slow
def test_both_loops_agree():
  found = [run("mlp", "PGD", loop=loop)[0] for loop in ("scan", "step")]
  np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-6)
  np.testing.assert_array_equal(found[0].success, found[1].success)


@pytest.mark.slow
def test_the_margin_attacks_where_cross_entropy_is_flat():
  model, params, examples = start("linear")
  # The bias keeps a lead that rounds the softmax to 0 and 1.
  params = {"layer_0": dict(params["layer_0"])}
  params["layer_0"]["w"] = 1e3 * params["layer_0"]["w"]
  right = np.asarray(models.predict(model, params, examples.x))
  people = examples._replace(y=right)
  options = {"epsilons": EPSILONS, "key": KEY}
  flat = attack(model, params, people, KINDS["PGD"], **options)
  steep = attack(model, params, people, KINDS["PGD"], loss=negative_margin, **options)
  assert steep.success.mean() > flat.success.mean()


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"x": 255 * make().x}, r"outside the declared input_range=\(0, 1\)"),
    ({"x": make().x - 0.5}, "outside the declared"),
    ({"x": 0.5 + 0.001 * make().x}, "less than 1% of the declared"),
    ({"x": np.full((24, 6), np.nan, np.float32)}, "NaN"),
    ({"y": make().y[:3]}, "one row per person"),
  ],
)
def test_people_that_cannot_be_attacked_are_refused(change, told):
  model, params, examples = start("mlp")
  with pytest.raises(checks.ArgumentError, match=told):
    attack(model, params, examples._replace(**change), KINDS["PGD"], epsilons=(0.1,), key=KEY)


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"epsilons": ()}, "list of sizes"),
    ({"epsilons": (-0.1,)}, "epsilons"),
    ({"batch_size": 0}, "batch_size"),
  ],
)
def test_options_that_cannot_be_used_are_refused(options, told):
  with pytest.raises(checks.ArgumentError, match=told):
    run("mlp", "PGD", **options)


@pytest.mark.slow
def test_inside_jit_an_attack_is_the_same():
  model, params, examples = start("mlp")

  def traced(params, examples, key):
    found = attack(model, params, examples, KINDS["PGD"], epsilons=[0.1], key=key, batch_size=10)
    return found.x, found.success

  found, _ = run("mlp", "PGD", epsilons=[0.1], batch_size=10)
  x, success = jax.jit(traced)(params, examples, KEY)
  np.testing.assert_allclose(x, found.x, atol=1e-6)
  np.testing.assert_array_equal(success, found.success)
