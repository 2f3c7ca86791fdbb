"""The private quantile: its sensitivity, its price, its direction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import checks
from jaxfair.privacy import noise
from jaxfair.privacy._adaptive import QuantileClip

NORMS = jnp.array([0.5, 1.5, 2.5, 9.0])
EVERYBODY = jnp.ones(4, bool)


def noiseless(clip, norms=NORMS, mask=EVERYBODY, size=4.0, quantile=0.5):
  adaptive = QuantileClip(quantile, rate=1.0, count_noise=1e-12)
  return float(adaptive.update(clip, norms, mask, expected_size=size, key=jax.random.key(0)))


@pytest.mark.slow
def test_moves_towards_the_quantile():
  assert noiseless(2.0) == pytest.approx(2.0, rel=1e-6)
  assert noiseless(100.0) == pytest.approx(100 * np.exp(-0.5), rel=1e-6)
  assert noiseless(0.1) == pytest.approx(0.1 * np.exp(0.5), rel=1e-6)


def test_absent_people_count_for_nothing():
  """Divided by the expected size: the centered count of nobody is 0."""
  nobody = jnp.zeros(4, bool)
  assert noiseless(100.0, mask=nobody) == pytest.approx(100.0, rel=1e-6)


def test_one_person_moves_the_count_by_one_half():
  with_last = noiseless(2.0, size=1.0)
  without = noiseless(2.0, mask=jnp.arange(4) < 3, size=1.0)
  assert abs(np.log(with_last / without)) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.slow
def test_noise_has_the_stated_deviation():
  adaptive = QuantileClip(rate=1.0, count_noise=3.0)
  keys = jax.random.split(jax.random.key(0), 20_000)
  clips = jax.vmap(lambda k: adaptive.update(2.0, NORMS, EVERYBODY, expected_size=4.0, key=k))(keys)
  noise = -np.log(np.asarray(clips) / 2.0) * 4
  assert abs(noise.std() / 3 - 1) < 6 / np.sqrt(2 * 20_000)


def test_joint_multiplier_composes_two_gaussians():
  adaptive = QuantileClip(count_noise=4.0)
  # mu^2 adds up: (1/z)^2 + (0.5/4)^2
  assert adaptive.joint_multiplier(2.0) == pytest.approx(1 / np.sqrt(1 / 4 + 1 / 64), rel=1e-12)
  assert adaptive.joint_multiplier(adaptive.sum_multiplier(1.7)) >= 1.7 * (1 - 1e-12)


def test_too_little_count_noise_is_refused():
  with pytest.raises(checks.ArgumentError, match="use more than 5"):
    QuantileClip(count_noise=1.0).sum_multiplier(10.0)


def test_a_sum_without_noise_has_no_joint_multiplier():
  with pytest.raises(checks.ArgumentError, match="noise_multiplier=0"):
    QuantileClip().joint_multiplier(0.0)


@pytest.mark.parametrize("options", [{"quantile": 1.5}, {"rate": 0.0}, {"count_noise": -1.0}])
def test_refused(options):
  with pytest.raises(checks.ArgumentError, match=next(iter(options))):
    QuantileClip(**options)


def test_the_bound_keeps_to_its_lowest():
  def after(lowest, count):
    rule, clip = QuantileClip(quantile=0.5, rate=1.0, count_noise=1e-6, lowest=lowest), 1.0
    for i in range(count):
      clip = rule.update(
        clip, jnp.zeros(4), jnp.ones(4, bool), expected_size=4.0, key=jax.random.key(i)
      )
    return float(clip)

  assert after(0.0, 3) == pytest.approx(np.exp(-1.5), rel=1e-3)
  assert after(0.3, 1) == pytest.approx(np.exp(-0.5), rel=1e-3)
  assert after(0.3, 3) == pytest.approx(0.3)
  with pytest.raises(checks.ArgumentError, match="lowest=-1"):
    QuantileClip(lowest=-1.0)


@pytest.mark.slow
@pytest.mark.parametrize("start", [1.0, 2e-38])
def test_a_bound_that_vanishes_keeps_noise_on_the_sum(start):
  """Below 2^-126 a scale counts as zero, and the sum would be released as it is."""
  falling, sum_ = QuantileClip(0.0, rate=30.0, count_noise=0.01), jnp.zeros(4)

  @jax.jit
  def step(clip, key):
    clip = falling.update(clip, sum_, EVERYBODY, expected_size=4.0, key=key)
    return clip, noise.gaussian(sum_ + clip, sigma=0.05 * clip, key=jax.random.fold_in(key, 1))

  clip = start
  for seed in range(4):
    clip, noisy = step(clip, jax.random.key(seed))
  assert clip > 0
  away = np.asarray(noisy, np.float64) / float(clip) - 1
  assert np.all((np.abs(away) > 1e-6) & (np.abs(away) < 0.3))
