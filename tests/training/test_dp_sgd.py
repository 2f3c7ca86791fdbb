"""DP-SGD: its limits, its noise, its samples, and what it refuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from helpers import bit_attack, mutants
from helpers.crowds import crowd
from jaxfair import accounting, checks, models, tree
from jaxfair.accounting import _truncation
from jaxfair.models import _coupling
from jaxfair.privacy import noise
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.privacy._sampling import Batch, PoissonSampler
from jaxfair.training import DpSgdConfig, dp_sgd, fit, fit_many
from jaxfair.training._dp_sgd import DpSgdInputs, DpSgdProgram, DpSgdState, Feed, make_feeds
from jaxfair.types import Examples, Model


def people(count=60):
  return crowd(count, 4, apart=(2, 0, 0, 0))


def leaves(value):
  return np.concatenate([np.ravel(v) for v in jax.tree.leaves(value)])


PLAIN = DpSgdConfig(learning_rate=0.5, l2_clip=1e30, noise_multiplier=0.0, steps=7, batch_size=32)


@pytest.mark.slow
def test_no_clip_no_noise_full_batch_is_gradient_descent_to_the_last_bit():
  model, examples = models.mlp((5,), 2), people(32)
  found = dp_sgd(model, models.cross_entropy, examples, PLAIN, key=jax.random.key(3))
  params = jax.jit(model.init)(jax.random.fold_in(jax.random.key(3), 0), jnp.asarray(examples.x[0]))

  @jax.jit
  def step(params):
    gradient = jax.grad(
      lambda p: jnp.sum(models.cross_entropy(model.apply(p, examples.x), examples.y))
    )(params)
    # 1/32 is a power of two: dividing the sum is exact.
    return jax.tree.map(lambda p, g: p - 0.5 * (g / 32), params, gradient)

  for _ in range(7):
    params = step(params)
  np.testing.assert_array_equal(leaves(found.params), leaves(params))


@pytest.mark.slow
def test_one_step_is_the_clipped_sum_plus_noise_over_the_expected_size():
  """theta_1 = theta_0 - rate (sum of clipped + C z N) / (q n), in law."""
  model, examples = models.logistic(2), people(40)
  config = DpSgdConfig(learning_rate=1.0, l2_clip=0.5, noise_multiplier=2.0, steps=1, batch_size=40)
  keys = jax.random.split(jax.random.key(0), 4000)
  found = fit_many(
    model, models.cross_entropy, examples, config, keys=keys, trainer=dp_sgd, chunk=100
  )
  moves = np.stack([-leaves(tree.take(found.params, i)) for i in range(4000)])
  # By hand: at theta = 0 the gradient is (1/2 - onehot) x (x, 1).
  half = np.where(np.arange(2)[None] == examples.y[:, None], -0.5, 0.5)
  inputs = np.concatenate([examples.x, np.ones((40, 1))], axis=1)
  gradients = np.einsum("nc,nd->ncd", half, inputs)
  norms = np.sqrt(np.sum(gradients**2, axis=(1, 2)))
  clipped = gradients * np.minimum(1, 0.5 / norms)[:, None, None]
  total = clipped.sum(0)
  expected = np.concatenate([total[:, -1], total[:, :-1].T.ravel()]) / 40
  sigma = 0.5 * 2.0 / 40
  error = 6.5 * sigma / np.sqrt(4000)
  np.testing.assert_allclose(moves.mean(0), expected, atol=error)
  spread = moves.std(0, ddof=1) / sigma
  np.testing.assert_allclose(spread, 1.0, atol=6.5 / np.sqrt(2 * 4000))
  noise = (moves - expected) / sigma
  assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6


@pytest.mark.slow
def test_noise_differs_between_steps_seeds_and_leaves():
  model, examples = models.logistic(2), people(40)
  config = dataclasses.replace(
    PLAIN, noise_multiplier=1.0, l2_clip=1e-6, learning_rate=1e6, batch_size=40
  )
  seen = []
  for seed in (0, 1):
    before = np.zeros(10)
    for steps in (1, 2, 3):
      found = dp_sgd(
        model,
        models.cross_entropy,
        examples,
        dataclasses.replace(config, steps=steps),
        key=jax.random.key(seed),
      )
      now = leaves(found.params)
      seen.append(now - before)
      before = now
  correlation = np.corrcoef(np.stack(seen))
  off = correlation[~np.eye(len(seen), dtype=bool)]
  assert np.all(np.abs(off) < 0.999)
  assert len({f"{v:.5f}" for v in np.concatenate(seen)}) > 55


@pytest.mark.slow
def test_batches_are_poisson_and_differ_between_steps():
  config = DpSgdConfig(steps=400, batch_size=10)
  feeds = make_feeds(config, 50, 400, key=jax.random.key(0))
  sizes = np.asarray(feeds.batch.mask.sum(1))
  expected = stats.binom(50, 0.2)
  assert abs(sizes.mean() - 10) < 6 * expected.std() / np.sqrt(400)
  assert abs(sizes.var() - expected.var()) < 6 * expected.var() * np.sqrt(2 / 400)
  first, second = feeds.batch.rows[0], feeds.batch.rows[1]
  assert not np.array_equal(first, second)


@pytest.mark.slow
def test_segments_draw_what_one_piece_draws():
  config = DpSgdConfig(steps=9, batch_size=10)
  whole = make_feeds(config, 50, 9, key=jax.random.key(0))
  tail = make_feeds(config, 50, 4, key=jax.random.key(0), start=5)
  np.testing.assert_array_equal(whole.batch.rows[5:], tail.batch.rows)
  np.testing.assert_array_equal(
    jax.random.key_data(whole.key_sum[5:]), jax.random.key_data(tail.key_sum)
  )


@pytest.mark.slow
def test_no_key_is_used_twice():
  """All keys of a training differ, and none is another one's parent or child.

  A key that is used both to draw numbers and to derive a key would put the
  same bits into both.
  """
  feeds = make_feeds(DpSgdConfig(steps=50), 500, 50, key=jax.random.key(0))
  words = [
    tuple(map(int, word))
    for keys in (feeds.key_sum, feeds.key_count)
    for word in np.asarray(jax.random.key_data(keys))
  ]
  assert len(set(words)) == 100
  drawn = set()
  for keys in (feeds.key_sum, feeds.key_count):
    for key in keys:
      bits = np.asarray(jax.random.bits(key, (64, 2)))
      drawn |= {tuple(map(int, pair)) for pair in bits}
  assert not drawn & set(words)


def test_samples_and_noise_come_from_different_keys(monkeypatch):
  """The sampler splits its key, and those words must be nobody's noise."""

  def told(sampler, *, key):
    del sampler
    return Batch(jax.random.key_data(key), jnp.ones(2, bool))

  monkeypatch.setattr(PoissonSampler, "draw", told)
  config = DpSgdConfig(steps=8, batch_size=10)
  feeds = make_feeds.__wrapped__(config, 50, 8, key=jax.random.key(0))
  samples = jax.random.wrap_key_data(feeds.batch.rows)
  used = jnp.concatenate([samples, *feeds[1:]])
  # Both what a key derives and the first numbers that it draws.
  made = jax.vmap(lambda key: jax.random.split(key, 16))(used)

  def words(keys):
    return [tuple(w) for w in jax.random.key_data(keys).reshape(-1, 2).tolist()]

  assert len({*words(used), *words(made)}) == 6 * 8 * (1 + 16)


def one_step(masks, x, clip, adaptive=None):
  """[k] states after a step from zero, for k masks of the same people.

  Under `mutants.linear_loss` a person's gradient is that person's x.
  """
  program = DpSgdProgram(mutants.linear(1), mutants.linear_loss)
  params = {"history": jnp.zeros((3, 1)), "w": jnp.zeros((3, 1))}
  state = DpSgdState(params, optax.sgd(1.0).init(params), jnp.float32(clip))
  config = DpSgdConfig(learning_rate=1.0, noise_multiplier=2.0, batch_size=10, adaptive=adaptive)
  nothing = jnp.zeros(len(x), jnp.int32)
  people = Examples(x, nothing, nothing)
  keys = [jax.random.key(i) for i in range(4)]

  @jax.jit
  @jax.vmap
  def taken(mask):
    feed = Feed(Batch(jnp.arange(len(x)), mask), *keys)
    return program.step(state, feed, DpSgdInputs(people, config))[0]

  return taken(masks)


def test_the_noise_of_a_step_knows_no_batch_size():
  """Of people without a gradient a step shows noise alone, always the same."""
  masks = jnp.arange(8) < jnp.array([0, 2, 8])[:, None]
  moved = one_step(masks, jnp.zeros((8, 3)), clip=3.0).params
  for leaf in jax.tree.leaves(moved):
    np.testing.assert_array_equal(leaf[1:], leaf[:1].repeat(2, axis=0))
  expected = noise.gaussian(
    jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:]), moved),
    sigma=3.0 * 2.0,
    key=jax.random.key(0),
  )
  np.testing.assert_allclose(leaves(tree.take(moved, 0)), -leaves(expected) / 10, rtol=1e-5)


def test_the_clip_does_not_count_who_is_left_out():
  """A person with a broken record is as good as absent, to the count too."""
  x = jnp.ones((8, 3)).at[-1].set(jnp.nan)
  masks = jnp.arange(8) < jnp.array([7, 8])[:, None]
  adaptive = QuantileClip(rate=1.0, count_noise=1.0)
  clips = one_step(masks, x, clip=3.0, adaptive=adaptive).l2_clip
  assert clips[0] == clips[1]


def test_event_tells_what_the_sampler_does():
  config = DpSgdConfig(noise_multiplier=1.3, steps=20, batch_size=10)
  event, sampler = config.event(100), config.sampler(100)
  assert event == accounting.DpSgd(1.3, 0.1, 20, 100, sampler.max_batch)
  assert sampler.expected_batch_size == pytest.approx(10)
  added = _truncation.truncation_delta(
    dataset_size=100, sampling_rate=0.1, max_batch=sampler.max_batch, steps=20
  )
  assert added <= 1e-10


def test_adaptive_clip_is_charged_jointly():
  adaptive = QuantileClip(count_noise=5.0)
  config = DpSgdConfig(noise_multiplier=1.0, steps=3, batch_size=10, adaptive=adaptive)
  assert config.event(50).noise_multiplier == pytest.approx((1 + 1 / 100) ** -0.5, rel=1e-12)


@pytest.mark.slow
def test_adaptive_clip_finds_the_quantile():
  model, examples = models.logistic(2), people(400)
  adaptive = QuantileClip(quantile=0.5, rate=0.3, count_noise=1.0)
  config = DpSgdConfig(
    learning_rate=1e-6,
    l2_clip=50.0,
    noise_multiplier=0.0,
    steps=60,
    batch_size=200,
    adaptive=adaptive,
  )
  found = dp_sgd(model, models.cross_entropy, examples, config, key=jax.random.key(0))
  norms = np.sqrt((examples.x**2).sum(1) + 1) * np.sqrt(0.5)
  assert found.trace.l2_clip[-1] == pytest.approx(np.median(norms), rel=0.1)


@pytest.mark.slow
def test_broken_examples_contribute_nothing():
  model, examples = models.logistic(2), people(40)
  config = dataclasses.replace(PLAIN, l2_clip=1.0, batch_size=40)
  broken = examples._replace(x=np.concatenate([examples.x[:-1], [[np.nan] * 4]]))
  zeroed = dp_sgd(model, models.cross_entropy, broken, config, key=jax.random.key(0))
  assert np.isfinite(leaves(zeroed.params)).all()
  assert np.all(zeroed.trace.num_nonfinite == 1)


@pytest.mark.slow
def test_empty_batches_are_normal_steps():
  model, examples = models.logistic(2), people(40)
  config = DpSgdConfig(steps=30, batch_size=1, noise_multiplier=1.0)
  found = dp_sgd(model, models.cross_entropy, examples, config, key=jax.random.key(0))
  assert found.trace.batch.min() == 0
  assert np.isfinite(leaves(found)).all()


@pytest.mark.slow
def test_any_optimizer_sees_the_private_gradient_only():
  model, examples = models.logistic(2), people(40)
  config = dataclasses.replace(
    PLAIN,
    optimizer=optax.adam,
    learning_rate=0.01,
    noise_multiplier=1.0,
    l2_clip=1.0,
    weight_decay=0.1,
  )
  found = dp_sgd(model, models.cross_entropy, examples, config, key=jax.random.key(0))
  # Adam's first steps have length learning_rate in every coordinate.
  assert np.abs(leaves(found.params)).max() < 7.5 * 0.01


@pytest.mark.slow
def test_weight_decay_pulls_to_zero_without_data():
  model, examples = models.mlp((3,), 2), people(40)
  config = dataclasses.replace(
    PLAIN, l2_clip=1e-30, weight_decay=0.2, learning_rate=1.0, steps=1, batch_size=40
  )
  found = dp_sgd(model, models.cross_entropy, examples, config, key=jax.random.key(5))
  start = model.init(jax.random.fold_in(jax.random.key(5), 0), jnp.asarray(examples.x[0]))
  np.testing.assert_allclose(leaves(found.params), 0.8 * leaves(start), rtol=1e-6, atol=1e-30)


@pytest.mark.slow
def test_loops_agree():
  model, examples = models.mlp((5,), 2), people(40)
  config = dataclasses.replace(PLAIN, noise_multiplier=1.0, l2_clip=1.0)
  found = [
    dp_sgd(
      model,
      models.cross_entropy,
      examples,
      dataclasses.replace(config, loop=loop),
      key=jax.random.key(0),
    )
    for loop in ("scan", "step")
  ]
  np.testing.assert_allclose(leaves(found[0].params), leaves(found[1].params), rtol=1e-5, atol=1e-7)


def _batch_norm() -> Model:
  def init(key, x_one):
    return {"w": jax.random.normal(key, (x_one.size, 2))}

  def apply(params, x):
    return (x - x.mean(0)) / (x.std(0) + 1e-3) @ params["w"]

  return Model(init, apply)


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"l2_clip": 0.0}, "l2_clip=0.0 must be above 0"),
    ({"l2_clip": 1e-38}, "vanishes in float32"),
    ({"noise_multiplier": -1.0}, "noise_multiplier=-1.0"),
    ({"learning_rate": 0.0}, "learning_rate=0.0"),
    ({"batch_size": 61}, "batch_size=61 must be at least 1 and at most 60"),
    ({"max_batch": 5}, "max_batch=5"),
    ({"steps": 0}, "steps=0"),
  ],
)
def test_bad_settings_are_refused(changes, told):
  config = dataclasses.replace(DpSgdConfig(batch_size=10), **changes)
  with pytest.raises(checks.ArgumentError) as caught:
    dp_sgd(models.logistic(2), models.cross_entropy, people(), config, key=jax.random.key(0))
  assert told in str(caught.value)


def test_coupled_models_and_losses_are_refused():
  config = DpSgdConfig(batch_size=10)
  with pytest.raises(_coupling.CouplingError):
    dp_sgd(_batch_norm(), models.cross_entropy, people(), config, key=jax.random.key(0))

  def mean(logits, y):
    return jnp.mean(models.cross_entropy(logits, y))

  with pytest.raises(_coupling.CouplingError):
    dp_sgd(models.logistic(2), mean, people(), config, key=jax.random.key(0))


def test_zero_noise_has_no_event():
  with pytest.raises(checks.ArgumentError, match="noise_multiplier"):
    PLAIN.event(60)


@pytest.mark.parametrize("trainer", [dp_sgd, fit])
@pytest.mark.parametrize("field", ["x", "y"])
def test_words_are_refused_in_words(trainer, field):
  examples = people(4)
  told = np.full(np.shape(getattr(examples, field)), "yes")
  with pytest.raises(checks.ArgumentError, match=f"{field} holds .*encode"):
    trainer(
      models.logistic(2),
      models.cross_entropy,
      examples._replace(**{field: told}),
      key=jax.random.key(0),
    )


def test_several_keys_are_refused_in_words():
  keys = jax.random.split(jax.random.key(0), 2)
  with pytest.raises(checks.ArgumentError, match="array of 2 keys"):
    dp_sgd(models.logistic(2), models.cross_entropy, people(), PLAIN, key=keys)


@pytest.mark.slow
def test_bits_of_one_step_do_not_tell_who_was_there():
  """A released step shows its noisy sum; an observer has two candidates."""
  rng = np.random.default_rng(0)
  x = rng.normal(size=(64, 6)).astype(np.float32)
  y = rng.integers(0, 2, 64).astype(np.int32)
  model, nobody = models.logistic(2), np.zeros(64, np.int32)
  start = jax.tree.map(jnp.zeros_like, model.init(jax.random.key(0), x[0]))
  config = DpSgdConfig(
    steps=1,
    batch_size=64,
    learning_rate=64.0,
    l2_clip=0.01,
    noise_multiplier=8.0,
    optimizer=optax.sgd,
  )

  def released(labels, config, keys):
    def one(key):
      examples = Examples(x, labels, nobody)
      fit = dp_sgd(model, models.cross_entropy, examples, config, key=key, initial=start)
      return ravel_pytree(fit.params)[0]

    return np.asarray(jax.vmap(one)(keys))

  keys = jax.random.split(jax.random.key(1), 1000)
  worlds = (y, np.append(1 - y[:1], y[1:]))  # one person's label differs
  exact = dataclasses.replace(config, noise_multiplier=0.0)
  values = [released(who, exact, keys[:1])[0] for who in worlds]
  assert (values[0] != values[1]).all()
  sigma = np.float32(0.08)
  sparse = bit_attack.of_sparse_noise(values, sigma, 100)
  assert bit_attack.wins(sparse, values, sigma) > 190
  ours = [released(who, config, keys[i::2]) for i, who in enumerate(worlds)]
  assert bit_attack.at_chance(bit_attack.wins(ours, values, sigma), 1000)
