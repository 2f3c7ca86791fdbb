"""Noise that several steps share: the best weights, and what is solved from the releases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, optimize, special

from jaxfair import accounting, checks
from jaxfair.accounting import _composition
from jaxfair.privacy import _bands


def mixing(weights, steps):
  """C, a lower-triangular banded matrix."""
  column = np.zeros(steps)
  column[: len(weights)] = weights
  return linalg.toeplitz(column, np.zeros(steps))


def noise_by_hand(weights, steps):
  """The norms of the rows of A C^-1, A a triangle of ones."""
  inverse = linalg.inv(mixing(np.asarray(weights, np.float64), steps))
  return np.linalg.norm(np.tril(np.ones((steps, steps))) @ inverse, axis=1)


@pytest.mark.parametrize(("bands", "steps"), [(1, 5), (2, 7), (4, 30), (9, 9)])
def test_the_noise_of_sums_is_that_of_the_matrices(bands, steps):
  weights = _bands.band_weights(bands, steps)
  found = _bands.noise_of_sums(weights, steps)
  np.testing.assert_allclose(found, noise_by_hand(weights, steps), rtol=1e-9)


def test_one_band_is_a_release_by_itself():
  np.testing.assert_allclose(_bands.band_weights(1, 100), [1.0], atol=2e-6)
  np.testing.assert_allclose(
    _bands.noise_of_sums(np.ones(1), 100), np.sqrt(np.arange(1, 101)), rtol=1e-12
  )


@pytest.mark.parametrize(("bands", "steps"), [(2, 5), (2, 40), (3, 12), (4, 25), (12, 12)])
def test_the_weights_are_the_best_there_are(bands, steps):
  """Against a search without gradients, by explicit matrices, from several starts."""

  def cost(free):
    weights = np.concatenate([[1.0], free])
    return np.log(np.mean(noise_by_hand(weights / np.linalg.norm(weights), steps) ** 2))

  found = np.log(np.mean(noise_by_hand(_bands.band_weights(bands, steps), steps) ** 2))
  starts = [np.full(bands - 1, 0.3), np.linspace(0.6, 0.1, bands - 1)]
  least = min(
    optimize.minimize(cost, start, method="Powell", options={"xtol": 1e-7, "ftol": 1e-11}).fun
    for start in starts
  )
  assert found == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize(("bands", "steps"), [(2, 64), (5, 1000), (64, 64), (64, 1000)])
def test_the_weights_have_norm_one_at_most(bands, steps):
  weights = _bands.band_weights(bands, steps).astype(np.float64)
  assert 1 - 3e-6 < np.linalg.norm(weights) < 1 - 5e-7
  # The noise of a step does not grow: 1 / c(s) has no pole within the circle.
  assert np.all(np.abs(np.roots(weights)) < 1)


def test_more_bands_than_steps_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"bands=6 .* at most 5.*no more steps"):
    _bands.band_weights(6, 5)


def test_what_is_released_is_the_mix_and_what_is_solved_is_the_inverse():
  """Without noise, and with the sensitivity moving between steps."""
  steps, weights = 11, _bands.band_weights(4, 11)
  rng = np.random.default_rng(0)
  sums = {"a": rng.normal(size=(steps, 3)).astype(np.float32)}
  sensitivity = rng.uniform(0.5, 2, steps).astype(np.float32)
  memory, released = _bands.Memory.empty({"a": jnp.zeros(3)}, 4), []
  for step in range(steps):
    total = {"a": jnp.asarray(sums["a"][step])}
    own = {"a": total["a"] / sensitivity[step]}
    released.append(memory.mix(weights, own)["a"])
    estimate, memory = _bands.release_mix(
      memory,
      total,
      weights=weights,
      sensitivity=sensitivity[step],
      sigma=0.0,
      key=jax.random.key(1),
    )
    np.testing.assert_allclose(estimate["a"], total["a"], atol=2e-5)
  expected = mixing(weights, steps) @ (sums["a"] / sensitivity[:, None])
  np.testing.assert_allclose(np.stack(released), expected, atol=1e-5)


def test_the_noise_of_sums_is_as_predicted():
  """Var[x_1 + ... + x_t] over 60,000 numbers, and x depends on the sums by the releases alone."""
  steps, weights, numbers = 12, _bands.band_weights(4, 12), 60_000
  keys = jax.random.split(jax.random.key(5), steps)

  @jax.jit
  def run(sums):
    memory, found = _bands.Memory.empty(jnp.zeros(numbers), 4), []
    for step in range(steps):
      estimate, memory = _bands.release_mix(
        memory, sums[step], weights, 2.0, sigma=1.5, key=keys[step]
      )
      found.append(estimate)
    return jnp.stack(found)

  zeros, sums = jnp.zeros((steps, numbers)), jnp.ones((steps, numbers)) * jnp.arange(steps)[:, None]
  noise = np.asarray(run(zeros), np.float64)
  np.testing.assert_allclose(run(sums) - sums, noise, atol=1e-4)
  found = np.std(np.cumsum(noise, axis=0), axis=1) / (2.0 * 1.5)
  # Relative error of a deviation: 1 / sqrt(2 n), and six of them.
  expected = _bands.noise_of_sums(weights, steps)
  np.testing.assert_allclose(found, expected, rtol=6 / np.sqrt(2 * numbers))


@pytest.mark.slow
@pytest.mark.parametrize(
  ("steps", "bands", "rate", "tight"), [(4, 2, 1.0, True), (5, 2, 0.5, False), (5, 3, 0.3, False)]
)
def test_the_joint_law_of_all_releases_is_within_what_is_charged(steps, bands, rate, tight):
  """Exact likelihoods over parts and coins, one person added or removed, also if parts are known.

  Where nobody is left to chance and all blocks are whole, what is charged is the truth.
  """
  count, noise, rng = 100_000, 0.9, np.random.default_rng(0)
  mix = mixing(_bands.band_weights(bands, steps).astype(np.float64), steps)

  def log_ratios(releases):
    """[bands, n] log-likelihoods with the person in each part, over those without."""
    matched = (releases @ mix - 0.5 * np.sum(mix**2, axis=0)) / noise**2
    each = np.log(1 - rate + rate * np.exp(matched))
    return np.stack([each[:, part::bands].sum(axis=1) for part in range(bands)])

  part, coins = rng.integers(0, bands, count), rng.random((count, steps)) < rate
  taken = coins & (np.arange(steps) % bands == part[:, None])
  without = noise * rng.normal(size=(count, steps))
  present = log_ratios(taken @ mix.T + noise * rng.normal(size=(count, steps)))
  absent = log_ratios(without)
  losses = {
    "added": special.logsumexp(present, axis=0) - np.log(bands),
    "removed": np.log(bands) - special.logsumexp(absent, axis=0),
    "added to a known part": present[0][part == 0],
    "removed from a known part": -absent[0],
  }
  event = accounting.DpSgd(noise, rate / bands, steps, bands=bands)
  for delta in (0.3, 0.1, 0.03):
    epsilon = _composition.composed_epsilon([event], delta=delta)
    found = {
      name: np.mean(np.maximum(-np.expm1(epsilon - loss), 0)) for name, loss in losses.items()
    }
    error = 6 * np.sqrt(delta * bands / count)
    assert max(found.values()) < delta + error, found
    assert not tight or found["removed from a known part"] > 0.99 * delta - error, found
