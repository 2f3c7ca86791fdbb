"""An observer who looks at the bits of released numbers.

The observer knows all records but one, and therefore the two values that a
released number may have been made of. Noise that takes few values, added to a
float, leaves results that one of the two values cannot give.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxfair.privacy import _normal

NEIGHBORS = 8  # floats on either side of the one that fits best
FALSE_ALARM = 1e-6


@jax.jit
def sparse_gaussian(value, sigma, key):
  """The noise that falls to the attack: one float32 normal, added once."""
  return value + sigma * _normal.normal(key, value.shape)


@jax.jit
def magnitudes(uniform):
  """|z| of the coarse draw for a float32 uniform, as the package has it."""
  squared = -2.0 * jnp.log(uniform)
  t = jnp.sqrt(squared)
  top = squared * _normal._polynomial(_normal._NUMERATOR, t)
  return top / _normal._polynomial(_normal._DENOMINATOR, t)


def explained(released, value, sigma):
  """Whether float32 noise on this value can have given each number.

  Every float32 uniform near the one that would have led to the released
  number is tried, with and without a fused multiplication and addition.

  Args:
    released: [...] numbers.
    value: the same shape, or one that broadcasts.
    sigma: of the noise.

  Returns:
    [...] booleans.
  """
  released = np.float32(released)
  value = np.broadcast_to(np.float32(value), released.shape)
  sigma = _rounded_up(sigma)
  z = (released.astype(np.float64) - value) / np.float64(sigma)
  best = (2 * stats.norm.sf(np.abs(z))).astype(np.float32).view(np.int32)
  near = best[..., None] + np.arange(-NEIGHBORS, NEIGHBORS + 1, dtype=np.int32)
  near = np.minimum(near.view(np.float32), np.float32(1 - 2.0**-24))
  draws = np.asarray(magnitudes(near)) * np.float32(np.sign(z))[..., None]
  start, target = value[..., None], released[..., None]
  apart = start + sigma * draws
  fused = start.astype(np.float64) + sigma.astype(np.float64) * draws
  found = (apart == target) | (fused.astype(np.float32) == target)
  return found.any(axis=-1)


def wins(releases, values, sigma):
  """How often the observer names the right one of two values; a draw is half.

  Args:
    releases: for each value, [n, d] releases of d numbers made of it.
    values: the two, [d] each.
    sigma: of the noise.
  """
  score = 0.0
  for i, released in enumerate(releases):
    right, wrong = (
      explained(np.asarray(released), values[j], sigma).mean(axis=-1) for j in (i, 1 - i)
    )
    score += float(np.sum((right > wrong) + 0.5 * (right == wrong)))
  return score


def at_chance(won, count):
  """Whether guessing wins as often, but for one time in a million."""
  low, high = stats.binom.interval(1 - FALSE_ALARM, count, 0.5)
  return low <= won <= high


def of_sparse_noise(values, sigma, count, seed=0):
  """Releases of both values with the noise that falls to the attack."""
  keys = jax.random.split(jax.random.key(seed), count)
  return [
    jax.vmap(sparse_gaussian, (None, None, 0))(value, np.float32(sigma), keys) for value in values
  ]


def _rounded_up(sigma):
  nearest = np.float32(sigma)
  short = float(nearest) < float(sigma)
  return np.nextafter(nearest, np.float32(np.inf)) if short else nearest
