"""The driver: both loops do the same, and the choice between them."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks, models
from jaxfair.training import DpSgdConfig, FitConfig, _driver, dp_sgd, fit
from jaxfair.training._driver import choose_loop, run_steps
from jaxfair.types import Examples, Model

IMAGE = (8, 8, 3)


@dataclasses.dataclass(frozen=True)
class Walk:
  """carry <- factor * carry + feed; tells what it was."""

  factor: float = 0.5

  def __call__(self, carry, feed, inputs):
    return self.factor * carry + feed["size"] * inputs, {"before": carry}


FEEDS = {"size": np.arange(6, dtype=np.float32)}


def by_hand(start, inputs):
  carry, before = start, []
  for size in FEEDS["size"]:
    before.append(carry)
    carry = 0.5 * carry + size * inputs
  return carry, np.array(before)


@pytest.mark.parametrize("loop", ["scan", "step"])
def test_a_step_is_applied_once_per_feed_in_order(loop):
  carry, info = run_steps(Walk(), jnp.asarray(4.0), FEEDS, 3.0, loop=loop)
  expected, before = by_hand(4.0, 3.0)
  assert carry == expected
  np.testing.assert_array_equal(info["before"], before)


@pytest.mark.parametrize(("loop", "compiled"), [("scan", _driver._scan), ("step", _driver._single)])
def test_steps_that_compare_equal_are_compiled_once(loop, compiled):
  def run(factor, start, inputs):
    return run_steps(Walk(factor), jnp.float32(start), FEEDS, inputs, loop=loop)

  run(0.25, 1.0, 2.0)
  size = compiled._cache_size()
  run(0.25, 5.0, 7.0)  # another step object, other numbers
  assert compiled._cache_size() == size
  run(0.75, 1.0, 2.0)
  assert compiled._cache_size() == size + 1  # or the count counts nothing


@dataclasses.dataclass(frozen=True)
class Sizes:
  """FEEDS, made from the steps' numbers; `steps` only tells tests apart."""

  steps: int

  def __call__(self, source, inputs, start, count):
    del inputs
    return {"size": source * (start + jnp.arange(count, dtype=jnp.float32))}


@pytest.mark.parametrize("loop", ["scan", "step"])
@pytest.mark.parametrize(("limit", "size"), [(6, 6), (5, 3), (4, 3), (8, 6), (1, 1)])
def test_blocks_do_what_one_piece_does(monkeypatch, loop, limit, size):
  monkeypatch.setattr(_driver, "BLOCK", limit)
  assert _driver.block_size(6, 1) == size
  carry, info = _driver.run_blocks(Walk(), jnp.asarray(4.0), Sizes(6), 1.0, 3.0, steps=6, loop=loop)
  expected, before = by_hand(4.0, 3.0)
  assert carry == expected
  np.testing.assert_array_equal(info["before"], before)


@pytest.mark.parametrize("loop", ["scan", "step"])
def test_steps_left_after_the_last_block_are_taken(monkeypatch, loop):
  monkeypatch.setattr(_driver, "BLOCK", 4)
  assert _driver.block_size(5, 1) == 4
  carry, info = _driver.run_blocks(
    Walk(), jnp.asarray(4.0), Sizes(5), 1.0, 3.0, steps=5, start=1, loop=loop
  )
  assert carry == by_hand(8.0, 3.0)[0]  # whose first step halves the start
  assert info["before"].shape == (5,)


def test_blocks_hold_a_bounded_number_of_rows():
  rows = _driver.ROWS // 20
  assert _driver.block_size(10**5, rows) == 20
  assert _driver.block_size(10**5, 10 * _driver.ROWS) == 1
  assert _driver.block_size(10**5, 1) == 1000
  assert _driver.block_size(10**5 + 3, 1) == _driver.BLOCK  # a prime


TRAINERS = {
  "fit": (fit, FitConfig(batch_size=64)),
  "fit, Poisson": (fit, FitConfig(batch_size=64, sampling="poisson")),
  "dp_sgd": (dp_sgd, DpSgdConfig(batch_size=64)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_memory_does_not_grow_with_the_number_of_steps(name):
  trainer, config = TRAINERS[name]
  rng = np.random.default_rng(0)
  x, y = rng.normal(size=(4096, 3)).astype(np.float32), np.zeros(4096, np.int32)

  def memory(steps):
    own = dataclasses.replace(config, steps=steps)

    def train(examples, key):
      return trainer(models.logistic(2), models.cross_entropy, examples, own, key=key)

    lowered = jax.jit(train).lower(Examples(x, y, y), jax.random.key(0))
    return lowered.compile().memory_analysis().temp_size_in_bytes

  few, many = 2 * _driver.BLOCK, 20 * _driver.BLOCK
  # The trace and the shuffles of epochs take at most 100 bytes a step; the
  # rows of one batch alone take 256.
  assert memory(many) - memory(few) < 100 * (many - few)


def test_a_scan_can_be_differentiated_and_vmapped():
  def last(start):
    return run_steps(Walk(), start, FEEDS, 1.0)[0]

  assert jax.grad(last)(2.0) == 0.5**6
  starts = jnp.arange(3.0)
  np.testing.assert_array_equal(jax.vmap(last)(starts), [last(start) for start in starts])


def convolution(x):
  kernel = jnp.ones((3, 3, x.shape[-1], 2))
  return jax.lax.conv_general_dilated(
    x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
  )


@jax.custom_vjp
def custom(x):
  return convolution(x)


custom.defvjp(lambda x: (custom(x), None), lambda _, g: (g,))

HIDING_PLACES = {
  "plain": convolution,
  "jit": jax.jit(convolution),
  "remat": jax.checkpoint(convolution),
  "scan": lambda x: jax.lax.scan(lambda c, _: (c, convolution(x)), 0, length=2)[1][0],
  "cond": lambda x: jax.lax.cond(x.sum() > 0, convolution, convolution, x),
  "custom": custom,
  "vmap": jax.vmap(lambda x: convolution(x[None])[0]),
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_a_convolution_is_found_wherever_it_hides(place):
  def apply(params, x):
    return HIDING_PLACES[place](x).mean((1, 2)) + params

  model = Model(lambda key, x: jnp.zeros(2), apply)
  x = np.zeros((4, *IMAGE), np.float32)
  assert choose_loop("auto", model, x, traced=False) == "step"


def test_dense_models_are_scanned_and_flax_convolutions_are_not():
  class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
      return nn.Dense(2)(nn.relu(nn.Conv(2, (3, 3))(x)).mean((1, 2)))

  x = np.zeros((4, *IMAGE), np.float32)
  for model, loop in (
    (models.logistic(3), "scan"),
    (models.mlp((4,), 3), "scan"),
    (models.from_flax(Net()), "step"),
    (models.convnet(2), "step"),
  ):
    assert choose_loop("auto", model, x, traced=False) == loop


def test_inside_a_transformation_everything_is_scanned():
  x = np.zeros((4, *IMAGE), np.float32)
  assert choose_loop("auto", models.convnet(2), x, traced=True) == "scan"
  with pytest.raises(checks.ArgumentError, match='use loop="scan" there'):
    choose_loop("step", models.logistic(2), x, traced=True)


def test_accelerators_scan_convolutions_too(monkeypatch):
  monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
  x = np.zeros((4, *IMAGE), np.float32)
  assert choose_loop("auto", models.convnet(2), x, traced=False) == "scan"


def test_the_user_s_wish_is_followed_or_refused_by_name():
  x = np.zeros((4, *IMAGE), np.float32)
  assert choose_loop("scan", models.convnet(2), x, traced=False) == "scan"
  assert choose_loop("step", models.logistic(2), x, traced=False) == "step"
  with pytest.raises(checks.ArgumentError, match="use one of auto, scan, step"):
    choose_loop("loop", models.logistic(2), x, traced=False)
