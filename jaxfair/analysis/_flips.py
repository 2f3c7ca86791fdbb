"""How likely noise is to change the label that teachers agreed on."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from jaxfair import checks
from jaxfair.accounting import _votes
from jaxfair.types import Array, Number, PyTree, VotesLike

# The trapezoidal rule on analytic integrands: with these nodes the relative
# error was below 1e-13 for up to 10,000 classes at any margin.
HALF_WIDTH = 9.0
NUM_NODES = 145
BLOCK = 2**21  # numbers at a time, so that they stay out of main memory


def flip_probability(counts: VotesLike, *, sigma: Number) -> Float[Array, "n"]:
  """Pr[noisy label != plurality] for each query, exactly.

  p = integral phi(z) (1 - prod_{c != c*} Phi(z + (n_c* - n_c) / sigma)) dz

  over the winner's own noise z, for independent N(0, sigma^2) noise on every
  count. For two classes 1 - Phi((n_0 - n_1) / (sqrt(2) sigma)); with more
  classes a unanimous vote flips more often than k / (sqrt(2) sigma) suggests.

  Args:
    counts: [n, classes] votes; every row sums to the number of teachers.
    sigma: standard deviation of the noise on each count, above 0; may be
      traced, mapped over and differentiated, as `counts` may if they are
      floats (at a tie of the first two classes the probability has a kink).

  Returns:
    [n] probabilities, to a relative 1e-12. Of tied classes the plurality is
    the one with the lowest id; p is the same for each of them. A NumPy
    float64 array; under jit, vmap or grad a JAX array.

  Assumptions:
    Continuous noise. Values and derivatives are computed in float64 whatever
    the mode (inside `jax.enable_x64`). Under a transformation they are then
    rounded to the caller's floats, which are float64 within
    `jax.enable_x64(True)` only.

  Privacy:
    A function of the private votes: not for release.

  Reference:
    Theorem 2 of the PATE fairness paper is the unanimous two-class case.
  """
  checks.positive("sigma", sigma)
  checks.require(np.ndim(sigma) == 0, "sigma must be one number; vmap over it")
  if checks.concrete(counts):
    counts = _votes.vote_table(counts)
  if checks.concrete((counts, sigma)):
    return _in_blocks(np.asarray(counts), float(sigma))
  ambient = jax.dtypes.canonicalize_dtype(jnp.float64)
  with jax.enable_x64(True):
    table = jnp.asarray(counts).astype(jnp.float64)
    chex.assert_rank(table, 2)
    found = _flips(table, jnp.asarray(sigma).astype(jnp.float64))
    return found.astype(ambient)


def vote_margin(counts: VotesLike) -> Int[jax.Array, "n"]:
  """The difference in votes between the first and the second class of each query; 0 at a tie.

  Args:
    counts: [n, classes] votes.

  Returns:
    [n] numbers of votes.

  Privacy:
    A function of the private votes: not for release.
  """
  if checks.concrete(counts):
    counts = _votes.vote_table(counts)
  counts = jnp.asarray(counts)
  chex.assert_rank(counts, 2)
  top, _ = jax.lax.top_k(counts, 2)
  return top[..., 0] - top[..., 1]


def _in_blocks(table: np.ndarray, sigma: float) -> np.ndarray:
  """[n] float64; all blocks have one shape, so there is one compilation."""
  rows = max(1, min(len(table), BLOCK // (NUM_NODES * table.shape[1])))
  missing = -len(table) % rows
  padded = np.pad(table, ((0, missing), (0, 0))).astype(np.float64)
  with jax.enable_x64(True):
    found = [
      _integrate(padded[start : start + rows], sigma) for start in range(0, len(padded), rows)
    ]
  return np.concatenate([np.zeros(0), *found])[: len(table)]


@jax.custom_jvp
def _flips(counts: jax.Array, sigma: jax.Array) -> jax.Array:
  return _integrate(counts, sigma)


@_flips.defjvp
def _flips_jvp(primals: PyTree, tangents: PyTree) -> PyTree:
  # Forward mode within the float64 block: transposing the integral itself
  # would happen outside of it, in float32.
  counts, sigma = primals
  with jax.enable_x64(True):
    found, by_sigma = jax.jvp(lambda s: _integrate(counts, s), (sigma,), (jnp.ones_like(sigma),))
    # Queries do not depend on each other: one direction per class moves all of them.
    units = jnp.eye(counts.shape[1], dtype=jnp.float64)
    by_class = jax.lax.map(
      lambda unit: jax.jvp(
        lambda c: _integrate(c, sigma), (counts,), (jnp.broadcast_to(unit, counts.shape),)
      )[1],
      units,
    )
    moved = jnp.sum(by_class.T * tangents[0].astype(jnp.float64), axis=1)
    return found, by_sigma * tangents[1].astype(jnp.float64) + moved


@jax.jit
def _integrate(counts: jax.Array, sigma: jax.Array) -> jax.Array:
  # Sorted, since an argmax would need ids that cannot be lowered outside of
  # float64 mode; the last of equals is dropped, and any would do.
  ranked = jnp.sort(counts, axis=1)
  gaps = (ranked[:, -1:] - ranked[:, :-1]) / sigma
  # Where a flip is rare, winner and rival meet halfway.
  middle = jax.lax.stop_gradient(-gaps.min(axis=1) / 2)
  z = middle[:, None] + np.linspace(-HALF_WIDTH, HALF_WIDTH, NUM_NODES)
  log_kept = _log_phi(z[:, :, None] + gaps[:, None, :]).sum(axis=-1)
  density = jnp.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
  step = 2 * HALF_WIDTH / (NUM_NODES - 1)
  return step * jnp.sum(density * -jnp.expm1(log_kept), axis=1)


def _log_phi(x: jax.Array) -> jax.Array:
  """ln Phi(x), precise relative to 1 - Phi, which is all that is used of it.

  Below -8 the probability to keep the label is nil either way. A general
  log_ndtr takes four times as long.
  """
  tail = 0.5 * jax.lax.erfc(jnp.maximum(x, -8.0) / math.sqrt(2))
  return jnp.log1p(-tail)
