"""DP-SGD whose steps share their noise: what one person moves, the noise, the price, an audit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, stats

from helpers import mutants
from jaxfair import accounting, auditing, checks, models
from jaxfair.accounting import _composition
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.privacy._bands import band_weights
from jaxfair.training import DpSgdConfig, _dp_sgd_feeds, calibrate, dp_sgd, train_to_budget
from jaxfair.training._dp_sgd import DpSgdProgram
from jaxfair.training._program import Given, begin
from jaxfair.types import Examples

BANDS, STEPS, SIZE, BATCH = 4, 11, 8, 2
CONFIG = dataclasses.replace(
  mutants._config(1.5, steps=STEPS, batch_size=BATCH), bands=BANDS, l2_clip=0.5
)
MIX = linalg.toeplitz(
  np.pad(band_weights(BANDS, STEPS), (0, STEPS - BANDS)).astype(np.float64), np.zeros(STEPS)
)


@jax.jit
def releases(examples, key):
  """[steps, parameters] the noisy mixes over the clip bound, from the estimates."""
  estimates = mutants.reference(CONFIG, examples, key)
  return jnp.asarray(MIX, jnp.float32) @ estimates.T * (BATCH / CONFIG.l2_clip)


@pytest.mark.slow
def test_one_person_moves_the_releases_as_one_gaussian_of_a_block_is_priced():
  """By the unit vector of weights once every `bands` steps, in steps of one residue.

  The noise and the samples are the same, so the difference of two trainings is exact. All of a
  part take part, as the rate times the bands is one.
  """
  without, present = mutants.crowd(np.zeros((SIZE - 1, 1)), 1e3)
  for seed in range(8):
    key = jax.random.key(seed)
    moved = np.asarray(releases(present, key) - releases(without, key))[:, 0]
    taken = linalg.solve(MIX, moved)  # of all steps, those in which the person took part
    steps = np.flatnonzero(np.abs(taken) > 0.5)
    np.testing.assert_allclose(taken[steps], 1.0, atol=1e-4)
    np.testing.assert_allclose(np.delete(taken, steps), 0.0, atol=1e-4)
    assert list(steps) == list(range(steps[0], STEPS, BANDS))
    _, count = CONFIG.event(SIZE).releases
    assert moved @ moved <= count * (1 + 1e-5)


@pytest.mark.slow
def test_releases_have_independent_noise_that_knows_no_batch_size():
  """Nobody and everybody in the sum: normal, of the multiplier, and no two steps alike."""
  numbers = 20_000
  nobody = Examples(np.zeros((SIZE, numbers), np.float32), *np.zeros((2, SIZE), np.int32))
  noise = np.asarray(releases(nobody, jax.random.key(3)), np.float64) / CONFIG.noise_multiplier
  assert np.all(np.abs(noise.std(axis=1) - 1) < 6 / np.sqrt(2 * numbers))
  correlation = np.corrcoef(noise) - np.eye(STEPS)
  assert np.abs(correlation).max() < 6.5 / np.sqrt(numbers)
  assert stats.kstest(noise[5], "norm").pvalue > 1e-6


def test_one_band_is_plain_dp_sgd():
  plain = dataclasses.replace(CONFIG, bands=1)
  people = mutants.crowd(np.zeros((SIZE - 1, 1)), 1.0)[1]
  begun = begin(
    DpSgdProgram(mutants.linear(STEPS), mutants.linear_loss),
    Given(people, plain, jax.random.key(0)),
  )
  assert begun.state.memory is None
  assert begun.inputs.parts is None
  event = plain.event(SIZE)
  assert event.bands is None
  assert "bands" not in accounting._event_json.to_json(event)


def test_the_event_tells_what_the_sampler_does():
  config = DpSgdConfig(steps=1000, batch_size=50, bands=8, noise_multiplier=1.1)
  sampler, event = config.sampler(2000), config.event(2000)
  assert (sampler.bands, sampler.rate, sampler.num_examples) == (8, 0.025, 2000)
  assert event == accounting.DpSgd(1.1, 0.025, 1000, 2000, sampler.max_batch, None, 8)
  assert event.releases == (0.2, 125)
  spent = calibrate(config, 2000, epsilon=3.0, delta=1e-5)
  priced = _composition.composed_epsilon([spent.event(2000)], delta=1e-5)
  assert 2.99 < priced <= 3.0


@pytest.mark.slow
def test_an_audit_shows_what_is_charged_and_no_more():
  """An attacker who knows the parts and adds up the likelihood of every block of a person."""
  noise, rate, steps, batch = 1.0, 0.5, 8, 1
  config = dataclasses.replace(mutants._config(noise, steps, batch), bands=4)
  weights = band_weights(4, steps)
  mix = jnp.asarray(linalg.toeplitz(np.pad(weights, (0, 4)), np.zeros(steps)), jnp.float32)

  def evidence(examples, key):
    released = mix @ mutants.reference(config, examples, key)[0] * batch
    parts = _dp_sgd_feeds.deal(config, SIZE, key=key)
    place = jnp.argmax(parts.rows == SIZE - 1)
    part = jnp.searchsorted(parts.starts, place, side="right") - 1
    matched = mix.T @ released  # what the person's gradient in a step would have moved
    ratio = jnp.log(1 - rate + rate * jnp.exp((matched - 0.5) / noise**2))
    return jnp.sum(jnp.where(jnp.arange(steps) % 4 == part, ratio, 0.0))

  found = auditing.audit_mechanism(
    evidence,
    *mutants.crowd(np.zeros((SIZE - 1, 1)), 1.0),
    num_runs=mutants.RUNS,
    delta=mutants.DELTA,
    confidence=mutants.CONFIDENCE,
    key=jax.random.key(0),
  ).epsilon

  def claimed(event):
    own = {"delta": mutants.DELTA, "relation": accounting.Relation.ZERO_OUT}
    return _composition.composed_epsilon([event], **own)

  assert 0.5 * claimed(config.event(SIZE)) < found <= claimed(config.event(SIZE))
  # A rate that is not multiplied by the bands is refuted.
  assert found > 1.3 * claimed(accounting.DpSgd(noise, batch / SIZE, 2))


@pytest.mark.slow
def test_a_stopped_training_continues_to_the_same_bits(tmp_path):
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, 200).astype(np.int32)
  people = Examples(rng.normal(size=(200, 3)).astype(np.float32), y, 0 * y)
  config = DpSgdConfig(steps=20, batch_size=16, bands=5, adaptive=QuantileClip())

  def train(folder=None, bands=5, key=jax.random.key(4), **more):
    return train_to_budget(
      models.logistic(2),
      models.cross_entropy,
      people,
      dataclasses.replace(config, bands=bands),
      epsilon=4.0,
      delta=1e-5,
      key=key,
      folder=folder,
      **more,
    )

  def stop(done, total):
    if done == 8:  # in the middle of two rounds through the parts
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    train(tmp_path / "run", progress=stop)
  with pytest.raises(checks.JaxfairError, match="holds a training with"):
    train(tmp_path / "run", bands=4)
  continued, whole = train(tmp_path / "run"), train()
  for one, other in zip(*map(jax.tree.leaves, (continued.params, whole.params)), strict=True):
    np.testing.assert_array_equal(one, other)
  assert 3.99 < whole.guarantee.epsilon <= 4.0
  (entry,) = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert entry.event.bands == 5
  assert entry.event.steps == 20
  # The sums without noise are in checkpoints, which a release erases.
  train(tmp_path / "release", key=None)
  left = sorted(path.name for path in (tmp_path / "release" / "private").iterdir())
  assert left == ["run.json"]


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"shards": 4}, "leave mesh and shards out, or use bands=1"),
    ({"bands": 5}, "bands=5 .*at most 4.*smaller batch_size"),
    ({"steps": 3}, "bands=4 .*at most 3.*no more steps"),
    ({"bands": 0}, "bands=0"),
  ],
)
def test_refused_before_any_work(change, told):
  config = dataclasses.replace(CONFIG, **change)
  people = mutants.crowd(np.zeros((SIZE - 1, 1)), 1.0)[1]
  with pytest.raises(checks.ArgumentError, match=told):
    dp_sgd(mutants.linear(STEPS), mutants.linear_loss, people, config, key=jax.random.key(0))
  with pytest.raises(checks.ArgumentError, match=told):
    calibrate(config, SIZE, epsilon=1.0, delta=1e-5)
