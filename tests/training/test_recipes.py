"""Options of DP-SGD, each beside an independent reference."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers import mutants
from helpers.crowds import crowd
from jaxfair import checks, models, privacy, training
from jaxfair.training import DpSgdConfig, FlipAndShift, _checkpoints, _snapshots, dp_sgd
from jaxfair.training._recipes import sum_in_chunks
from jaxfair.types import Examples

KEY = jax.random.key(5)
MODEL = models.mlp((5,), 3)
LOSS = models.cross_entropy
CONFIG = DpSgdConfig(learning_rate=0.3, steps=4, batch_size=10, l2_clip=0.5)


@pytest.fixture(scope="module")
def people():
  own = crowd(30, 4, classes=3, apart=1.0, scale=2.0, seed=3)
  return own._replace(group=own.y)


@pytest.fixture(scope="module")
def plain(people):
  return train(people)


def train(people, model=MODEL, **changes):
  return dp_sgd(model, LOSS, people, dataclasses.replace(CONFIG, **changes), key=KEY)


def leaves(params):
  return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def stretch(x, key):
  """A view that is far from the others, so that their mean is not one of them."""
  return x * jax.random.uniform(key, x.shape, minval=-3.0, maxval=3.0)


def same(x, key):
  del key
  return x


@pytest.mark.slow
def test_the_average_is_the_weighted_mean_of_all_steps(people):
  along = _snapshots.dp_sgd_snapshots(MODEL, LOSS, people, CONFIG, count=4, key=KEY)
  after = np.stack(
    [leaves(jax.tree.map(lambda leaf, i=i: leaf[i], along.snapshots)) for i in range(1, 5)]
  )
  weights = 0.7 ** np.arange(3, -1, -1)
  expected = weights @ after / weights.sum()
  found = leaves(train(people, average=0.7).params)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
  assert np.abs(expected - after[-1]).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_chunks_give_the_sum_of_the_whole_batch(people, plain, chunk_size):
  found = train(people, chunk_size=chunk_size)
  np.testing.assert_allclose(leaves(found), leaves(plain), rtol=2e-5, atol=2e-6)


def test_nobody_is_counted_twice_to_fill_the_last_chunk():
  rows, mask = np.arange(1.0, 8.0), np.ones(7, bool)

  def some(rows_and_mask):
    own, real = rows_and_mask
    return jnp.sum(jnp.where(real, own, 0.0)), own

  total, each = sum_in_chunks(some, (jnp.asarray(rows), jnp.asarray(mask)), 3)
  assert total == 28
  np.testing.assert_array_equal(each, rows)


@pytest.mark.slow
def test_memory_follows_the_chunk_and_not_the_batch():
  model = models.mlp((256,), 2)
  x, y = np.zeros((8192, 8), np.float32), np.zeros(8192, np.int32)

  def memory(batch_size, chunk_size):
    config = DpSgdConfig(steps=2, batch_size=batch_size, chunk_size=chunk_size, method="ghost")
    work = jax.jit(lambda examples, key: dp_sgd(model, LOSS, examples, config, key=key))
    compiled = work.lower(Examples(x, y, y), KEY).compile()
    return compiled.memory_analysis().temp_size_in_bytes

  grown = memory(4096, 64) - memory(512, 64)
  assert grown < 0.1 * (memory(4096, None) - memory(512, None))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_one_gradient_of_all_views_of_a_person_is_clipped(people, method):
  views = 3
  everybody = {"batch_size": 30, "steps": 1, "noise_multiplier": 0.0, "learning_rate": 1.0}
  bound = 2.5
  found = train(
    people, augment=stretch, views=views, method=method, l2_clip=bound, **everybody
  ).params
  start = MODEL.init(jax.random.fold_in(KEY, 0), people.x[0])
  key = jax.random.fold_in(jax.random.fold_in(KEY, 5), 0)

  @jax.jit
  def gradient(x, y):
    return jax.grad(lambda p: LOSS(MODEL.apply(p, x[None]), y[None])[0])(start)

  total, clipped = 0.0, 0
  for i in range(30):
    keys = jax.random.split(jax.random.fold_in(key, i), views)
    own = np.mean([leaves(gradient(stretch(people.x[i], k), people.y[i])) for k in keys], axis=0)
    norm = np.linalg.norm(own.astype(float))
    clipped += norm > bound
    total = total + own * min(1.0, bound / norm)
  assert 5 < clipped < 30
  np.testing.assert_allclose(leaves(start) - leaves(found), total / 30, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_equal_views_are_no_views(people, plain):
  found = train(people, augment=same, views=2)
  np.testing.assert_allclose(leaves(found), leaves(plain), rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_views_of_images_keep_the_fast_path():
  net = models.convnet(2, (models.Conv(3),), (4,))
  rng = np.random.default_rng(0)
  y = np.arange(6, dtype=np.int32) % 2
  images = Examples(rng.normal(size=(6, 6, 6, 1)).astype(np.float32), y, y)
  config = DpSgdConfig(
    steps=1, batch_size=6, l2_clip=0.1, noise_multiplier=0.0, augment=FlipAndShift(1), views=2
  )
  fast, slow = (
    dp_sgd(net, LOSS, images, dataclasses.replace(config, method=method), key=KEY)
    for method in ("ghost", "vmap")
  )
  np.testing.assert_allclose(leaves(fast), leaves(slow), rtol=1e-4, atol=1e-5)


def test_images_are_moved_and_mirrored_and_nothing_else():
  image = np.arange(20.0).reshape(4, 5, 1).astype(np.float32)
  padded = np.pad(image, ((2, 2), (2, 2), (0, 0)), mode="edge")
  mirrored = np.pad(image[:, ::-1], ((2, 2), (2, 2), (0, 0)), mode="edge")
  possible = {
    whole[i : i + 4, j : j + 5].tobytes()
    for whole in (padded, mirrored)
    for i in range(5)
    for j in range(5)
  }
  keys = jax.random.split(KEY, 600)
  seen = {
    view.tobytes() for view in np.asarray(jax.vmap(lambda k: FlipAndShift(2)(image, k))(keys))
  }
  assert seen <= possible
  assert len(seen) == 50


@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_normalized_gradients_by_hand(people, method):
  model = models.logistic(3)
  params = {"w": jnp.asarray(np.ones((4, 3)) * [1, -1, 0.5], jnp.float32), "b": jnp.zeros(3)}
  gradient = privacy.clipped_grad(model, LOSS, l2_clip=0.5, method=method, rule="normalize")
  found = gradient(params, people)
  logits = people.x.astype(float) @ np.asarray(params["w"], float)
  shares = np.exp(logits - logits.max(1, keepdims=True))
  slope = shares / shares.sum(1, keepdims=True) - np.eye(3)[people.y]
  grads = np.concatenate([slope, np.einsum("nd,nc->ndc", people.x, slope).reshape(30, -1)], axis=1)
  norms = np.linalg.norm(grads, axis=1, keepdims=True)
  expected = np.sum(0.5 * grads / (norms + 0.01), axis=0)
  np.testing.assert_allclose(leaves(found.total), expected, rtol=1e-4, atol=1e-5)
  assert gradient.sensitivity == 0.5


def added_by_one(rule, size, l2_clip):
  """What a person whose gradient is (size, size, size, size) adds to the sum."""
  gradient = privacy.clipped_grad(
    models.logistic(2), lambda outputs, y: outputs[:, 0] * y, l2_clip=l2_clip, rule=rule
  )
  params = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
  person = Examples(jnp.ones((1, 3)), jnp.full(1, size), jnp.zeros(1, int))
  found = gradient(params, person)
  return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(found.total)])


def test_a_normalized_gradient_never_leaves_its_bound():
  own = jax.jit(lambda size: added_by_one("normalize", size, 0.25))
  for size in np.float32(10.0 ** np.arange(-30, 18)):
    assert np.linalg.norm(np.asarray(own(size), np.float64)) <= 0.25


def test_a_dropped_gradient_never_leaves_its_bound():
  own = jax.jit(lambda size: added_by_one("drop", size, 2.0))
  found = {
    float(size): np.linalg.norm(np.asarray(own(size), np.float64))
    for size in np.float32([0.0, 0.5, 0.99, 0.999999, 1.0, 1.000001, 1.2, 1.9, 5.0, 1e30])
  }
  assert max(found.values()) <= 2.0
  for size, norm in found.items():
    if size < 0.9999:
      assert norm == pytest.approx(2 * size)
    elif size > 1.0001:
      assert norm == 0


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "size"), [("drop", 0.999), ("normalize", 3.0)])
def test_an_audit_finds_no_more_than_is_charged(rule, size):
  config = dataclasses.replace(mutants._config(1.0, steps=1, batch_size=8), rule=rule)
  case = mutants.Case(mutants.Step, config, *mutants.crowd(np.zeros((7, 1)), size))
  shown = case.audit_reference().epsilon
  assert 0.3 * case.claimed() < shown <= case.claimed()


@pytest.mark.slow
def test_rescaled_steps_keep_their_length(people):
  adaptive = privacy.QuantileClip(0.2, rate=2.0, count_noise=5.0)
  moving = train(people, adaptive=adaptive, rescale=True, l2_clip=8.0, noise_multiplier=0.0)
  bounds = np.asarray(moving.trace.l2_clip)
  assert bounds.min() < 0.5 * bounds[0]

  def divided(rate):
    def update(gradient, state, params=None, *, l2_clip, **more):
      return jax.tree.map(lambda leaf: -rate * 8.0 * leaf / l2_clip, gradient), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)

  by_optimizer = train(
    people, adaptive=adaptive, optimizer=divided, l2_clip=8.0, noise_multiplier=0.0
  )
  np.testing.assert_allclose(
    leaves(moving.params), leaves(by_optimizer.params), rtol=1e-5, atol=1e-6
  )


def test_the_optimizer_may_see_the_clip_bound(people):
  def in_units_of_the_clip(rate):
    def update(gradient, state, params=None, *, l2_clip, **more):
      return jax.tree.map(lambda leaf: -rate * leaf / l2_clip, gradient), state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)

  found = train(people, optimizer=in_units_of_the_clip)
  expected = train(people, learning_rate=0.3 / 0.5)
  np.testing.assert_allclose(leaves(found.params), leaves(expected.params), rtol=1e-5, atol=1e-6)


def test_a_transformation_of_optax_may_be_given_as_it_is(people, plain):
  found = train(people, optimizer=optax.sgd(0.3), learning_rate=123.0)
  np.testing.assert_array_equal(leaves(found.params), leaves(plain.params))


@pytest.mark.slow
def test_a_stopped_training_goes_on_with_its_average(people, tmp_path):
  config = dataclasses.replace(CONFIG, average=0.8, augment=stretch, views=2, steps=10)

  def run(name, config=config, progress=lambda done, total: None):
    folder, budget = tmp_path / name, {"epsilon": 5.0, "delta": 1e-3}
    return training.train_to_budget(
      MODEL, LOSS, people, config, **budget, key=KEY, folder=folder, progress=progress
    )

  def stop(done, total):
    if done == 6:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    run("stopped", progress=stop)
  again, whole = run("stopped"), run("whole")
  np.testing.assert_array_equal(leaves(again.params), leaves(whole.params))
  other = dataclasses.replace(config, augment=same)
  with pytest.raises(_checkpoints.CheckpointError, match="another augment"):
    run("whole", other)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"views": 2}, "views=2 .* pass augment"),
    ({"views": 0}, "views=0 must be at least 1"),
    ({"chunk_size": 0}, "chunk_size=0 must be at least 1"),
    ({"average": 1.0}, "average=1.0"),
    ({"rule": "cut"}, "rule='cut'"),
  ],
)
def test_bad_options_are_refused_by_name(people, change, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(people, **change)
