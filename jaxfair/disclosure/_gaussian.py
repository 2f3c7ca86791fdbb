"""Features as one Gaussian, and what is known of the rest given a part.

Features live in [-1, 1]. Conditioning takes masks, not index sets, so that it
compiles once and maps over subsets.
"""

import os
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks
from jaxfair.accounting import _grid
from jaxfair.privacy import exact, grid
from jaxfair.types import Array, FeaturesLike

SHRINKAGE = 1e-3
PIVOT = 1e-6  # a smaller share of variance is rounding
# Private features are rounded to multiples of 1 / UNIT. Sums of products over
# CHUNK people are then integers below 2^53, which float64 adds exactly.
UNIT = 2**20
CHUNK = 2**12


class Gaussian(NamedTuple):
  """A joint Gaussian distribution of all features.

  Attributes:
    mean: [d].
    covariance: [d, d], positive semi-definite.
  """

  mean: Array
  covariance: Array


class Conditional(NamedTuple):
  """The law of all features once some are known.

  mean(x) = mu + gain (x - mu); only the known entries of x are used.

  Attributes:
    gain: [d, d]; identity in rows of known features, 0 in columns of others.
    covariance: [d, d]; 0 in rows and columns of known features.
  """

  gain: jax.Array
  covariance: jax.Array


def fit_gaussian(x: FeaturesLike, *, shrinkage: float = SHRINKAGE) -> Gaussian:
  """Mean and covariance of public training data; works under jit.

  Sigma = (1 - shrinkage) S + shrinkage diag(S)

  One-hot features always add up, so S is singular. The shrunk correlations
  have no eigenvalue below `shrinkage`.

  Args:
    x: [n, d] features in [-1, 1].
    shrinkage: in (0, 1].

  Returns:
    The Gaussian.

  Privacy:
    None: both are computed from the data. For private data see
    `fit_private_gaussian`.
  """
  checks.number("shrinkage", shrinkage, low=0.0, high=1.0, open_low=True)
  x = jnp.asarray(x)
  chex.assert_rank(x, 2)
  mean = jnp.mean(x, axis=0)
  centered = x - mean
  return Gaussian(mean, _shrunk(centered.T @ centered / x.shape[0], shrinkage))


def fit_private_gaussian(
  x: FeaturesLike,
  *,
  noise_multiplier: float,
  ledger: accounting.Ledger,
  id: str,
  shrinkage: float = 0.05,
  source: exact.BitSource = os.urandom,
) -> Gaussian:
  """Mean and covariance of private training data, charged before release.

  M = sum_i z_i z_i' + noise, z_i = (1, x_i);  everything else is computed
  from M: count, mean, covariance, its projection to semi-definite matrices.

  Args:
    x: [n, d] features in [-1, 1]; values outside are refused. They are
      rounded to multiples of 2^-20.
    noise_multiplier: sigma over the sensitivity.
    ledger: charged for one Gaussian release.
    id: of the charge; an id that was charged before is refused, because new
      noise on the same sums is another release.
    shrinkage: noise needs more of it than sampling does.
    source: source of random bits; the operating system by default.

  Returns:
    The Gaussian; its release is covered by the charge.

  Privacy:
    ||z||^2 <= d + 1. Entries off the diagonal are counted once, times
    sqrt(2), so one person moves the vector by at most d + 1 in L2, and by
    twice that where neighbors replace a person. The sums are exact, however
    many people there are, and the noise is discrete, on a grid of
    sigma / 2^40 that is counted in the sensitivity (`privacy.grid`).
  """
  checks.positive("noise_multiplier", noise_multiplier)
  checks.number("shrinkage", shrinkage, low=0.0, high=1.0, open_low=True)
  check_features(x)
  checks.require(id not in ledger, f"id={id!r} was charged before; use a new id for a new release")
  sums = _exact_moments(x)
  size = len(sums)
  upper = np.triu_indices(size)
  sigma = grid.sigma_for(
    noise_multiplier=noise_multiplier,
    sensitivity=size * (2.0 if ledger.relation.substitutes else 1.0),
    count=len(upper[0]),
  )
  # Noise of sigma on sqrt(2) times an entry is noise of sigma / sqrt(2) on it.
  # The root is rounded down, so the noise is not below what is charged.
  below = np.nextafter(np.sqrt(2.0), 0.0)
  weight = np.where(upper[0] == upper[1], 1.0, below)
  event = _grid.grid_gaussian(
    noise_multiplier=noise_multiplier, distance=grid.distance(len(upper[0]))
  )
  ledger.charge(event, id=id)
  noisy = grid.gaussian(sums[upper], sigma=sigma / weight * UNIT**2, source=source)
  moments = np.zeros((size, size))
  moments[upper] = noisy / UNIT**2
  moments = moments + np.triu(moments, 1).T
  count = max(moments[0, 0], 1.0)
  mean = np.clip(moments[0, 1:] / count, -1.0, 1.0)
  covariance = moments[1:, 1:] / count - np.outer(mean, mean)
  values, vectors = np.linalg.eigh(covariance)
  covariance = (vectors * np.clip(values, 1e-6, None)) @ vectors.T
  return Gaussian(
    jnp.asarray(mean, jnp.float32), _shrunk(jnp.asarray(covariance, jnp.float32), shrinkage)
  )


def condition(gaussian: Gaussian, known: jax.Array) -> Conditional:
  """The law of all features given the known ones; jit-able, maps over masks.

  mu_U + Sigma_UR Sigma_RR^-1 (x_R - mu_R),
  Sigma_UU - Sigma_UR Sigma_RR^-1 Sigma_RU

  One known feature after another is conditioned on: a Cholesky elimination of
  Sigma_RR that skips unknown features, so that one program serves every mask.
  It is written out, because batches of LAPACK calls on two devices of one CPU
  can wait for each other forever. It works on correlations, whose scale does
  not depend on the features'.

  Returns:
    The conditional law.

  Reference:
    Thesis, Proposition 7.3.
  """
  known = jnp.asarray(known, bool)
  covariance = gaussian.covariance
  size = covariance.shape[0]
  spread = jnp.sqrt(jnp.diagonal(covariance))
  safe = jnp.where(spread > 0, spread, 1.0)
  scale = safe[:, None] * safe[None, :]

  def learn(i: jax.Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
    gain, rest = state
    pivot = rest[i, i]
    # What earlier features explain completely teaches nothing more.
    new = known[i] & (pivot > PIVOT)
    slope = jnp.where(new, rest[:, i] / jnp.where(new, pivot, 1.0), 0.0)
    surprise = jnp.zeros(size).at[i].set(1.0) - gain[i]
    return (gain + slope[:, None] * surprise[None, :], rest - slope[:, None] * rest[i][None, :])

  begun = (jnp.zeros((size, size)), covariance / scale)
  gain, rest = jax.lax.fori_loop(0, size, learn, begun)
  gain = gain * (safe[:, None] / safe[None, :])
  gain = jnp.where(known[:, None], jnp.eye(size), gain)
  hidden = ~known[:, None] & ~known[None, :]
  return Conditional(gain, jnp.where(hidden, rest * scale, 0.0))


def factor(matrix: jax.Array) -> jax.Array:
  """A triangular root of a semi-definite matrix [..., h, h], bent by rounding.

  Directions without variance get a column of zeros. Written out for the
  reason given in `condition`.
  """
  return jnp.vectorize(_factor, signature="(h,h)->(h,h)")(matrix)


def _factor(matrix: jax.Array) -> jax.Array:
  size = matrix.shape[0]
  least = PIVOT * jnp.max(jnp.diagonal(matrix))

  def step(i: jax.Array, state: tuple[Any, Any]) -> tuple[Any, Any]:
    rest, root = state
    pivot = rest[i, i]
    new = pivot > least
    column = jnp.where(new, rest[:, i] / jnp.sqrt(jnp.where(new, pivot, 1.0)), 0.0)
    return rest - jnp.outer(column, column), root.at[:, i].set(column)

  return jax.lax.fori_loop(0, size, step, (matrix, jnp.zeros_like(matrix)))[1]


def check_features(x: FeaturesLike) -> None:
  """Raises for features outside [-1, 1]: every test here relies on the range."""
  if not checks.concrete(x):
    return
  checks.finite("x", x)
  largest = float(np.max(np.abs(np.asarray(x)), initial=0.0))
  checks.require(
    largest <= 1.0,
    f"x holds {largest:.4g}, outside [-1, 1]; pass the scaler that takes it "
    'there (data.fit_scaler(train, "minmax")), or scale it first',
  )


def _exact_moments(x: FeaturesLike) -> np.ndarray:
  """[d + 1, d + 1] sums of z z', z = (1, x), as integers in units of UNIT^-2.

  Adding one person changes them by exactly that person's products.
  """
  x = np.asarray(x, np.float64)
  total = np.zeros((x.shape[1] + 1,) * 2, object)
  for start in range(0, len(x), CHUNK):
    rows = np.rint(x[start : start + CHUNK] * UNIT)
    z = np.concatenate([np.full((len(rows), 1), float(UNIT)), rows], axis=1)
    total += (z.T @ z).astype(np.int64).astype(object)
  return total


def _shrunk(covariance: jax.Array, shrinkage: float) -> jax.Array:
  diagonal = jnp.diag(jnp.diagonal(covariance))
  return (1 - shrinkage) * covariance + shrinkage * diagonal
