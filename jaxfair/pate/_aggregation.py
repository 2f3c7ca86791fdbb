"""Noisy aggregation of votes, compiled: for studies and simulations.

Pure functions of a key that map over seeds. The noise is discrete, on the
integers, as in a release; its parameter must be known before tracing. With
`continuous=True` it is real, as in the papers' analyses, and the parameter may
be traced and mapped over. A release goes through `Answerer`, which draws from
the operating system and keeps a ledger.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from jaxfair import checks
from jaxfair.privacy import _random_words, noise
from jaxfair.types import Key, Number, Votes, VotesLike

NO_ANSWER = -1


def gnmax(
  counts: VotesLike, *, sigma: Number, key: Key, continuous: bool = False
) -> Int[jax.Array, "n"]:
  """Labels each query by the largest noisy vote count (GNMax).

  label = argmax_c n_c + N(0, sigma^2)

  Args:
    counts: [n, C] votes per class; one teacher contributes one vote.
    sigma: standard deviation of the noise, in votes.
    key: used once.
    continuous: real instead of discrete Gaussian noise.

  Returns:
    [n] int32 class ids; ties are broken fairly.

  Privacy:
    One teacher moves two counts by one: each label is (a, a / sigma^2)-RDP
    for every a > 1, by discrete and by real noise alike.

  Reference:
    Papernot et al. (2018), Proposition 8.
  """
  counts = as_counts(counts)
  key_noise, key_ties = _keys(key, 2)
  noisy = _gaussian(counts, "sigma", sigma, key_noise, continuous)
  return _fair_argmax(noisy, key_ties)


def confident_gnmax(
  counts: VotesLike,
  *,
  threshold: Number,
  sigma_threshold: Number,
  sigma_answer: Number,
  key: Key,
  continuous: bool = False,
) -> Int[jax.Array, "n"]:
  """GNMax where the teachers agree, no label elsewhere (Confident-GNMax).

  answered = max_c n_c + N(0, sigma_threshold^2) >= threshold
  label = argmax_c n_c + N(0, sigma_answer^2)   with fresh noise

  Args:
    counts: [n, C] votes per class.
    threshold: T, in votes.
    sigma_threshold: standard deviation of the test's noise.
    sigma_answer: standard deviation of the answer's noise.
    key: used once.
    continuous: real instead of discrete Gaussian noise.

  Returns:
    [n] int32 class ids, `NO_ANSWER` where the test failed.

  Privacy:
    A query that fails costs (a, a / (2 sigma_threshold^2))-RDP, one that
    passes a / sigma_answer^2 on top.

  Reference:
    Papernot et al. (2018), Algorithm 1.
  """
  draws = confident_draws(
    as_counts(counts),
    threshold=threshold,
    sigma_threshold=sigma_threshold,
    sigma_answer=sigma_answer,
    key=key,
    continuous=continuous,
  )
  return jnp.where(draws.confident, draws.labels(), NO_ANSWER)


class ConfidentDraws(NamedTuple):
  """Both noises of Confident-GNMax, for every query: not for release.

  Attributes:
    confident: [n] whether the test passed.
    noisy: [n, C] counts with the answer's noise.
    key_ties: for breaking ties between them.
  """

  confident: jax.Array
  noisy: jax.Array
  key_ties: jax.Array

  def labels(self) -> jax.Array:
    """[n] the largest noisy count, ties broken fairly."""
    return _fair_argmax(self.noisy, self.key_ties)

  def ranks(self) -> jax.Array:
    """[n, C] 0 for the largest noisy count, and so on, ties broken fairly."""
    words = _random_words.random_words(self.key_ties, self.noisy.size).high
    order = jnp.lexsort((words.reshape(self.noisy.shape), -self.noisy), axis=-1)
    return jnp.argsort(order, axis=-1).astype(jnp.int32)


def confident_draws(
  counts: jax.Array,
  *,
  threshold: Number,
  sigma_threshold: Number,
  sigma_answer: Number,
  key: Key,
  continuous: bool = False,
) -> ConfidentDraws:
  """The test and the noisy counts of `confident_gnmax`, not yet put together.

  Args and privacy as there; `counts` come from `as_counts`. A threshold that is known beforehand is
  rounded up to whole votes for discrete noise: float32 would round it down where a share of the
  teachers came out a little above a whole number, and `accounting` prices the test without that.
  """
  checks.number("threshold", threshold)
  _check_reachable(counts, threshold, sigma_threshold)
  if not continuous and checks.concrete(threshold):
    threshold = np.ceil(np.asarray(threshold, np.float64)).astype(np.float32)
  key_test, key_noise, key_ties = _keys(key, 3)
  largest = jnp.max(counts, axis=-1)
  tested = _gaussian(largest, "sigma_threshold", sigma_threshold, key_test, continuous)
  noisy = _gaussian(counts, "sigma_answer", sigma_answer, key_noise, continuous)
  return ConfidentDraws(tested >= threshold, noisy, key_ties)


def soft_labels(
  counts: VotesLike, *, sigma: Number, key: Key, continuous: bool = False
) -> Float[jax.Array, "n classes"]:
  """Noisy shares of the votes, one weight for each class.

  weights_c = (n_c + N(0, sigma^2)) / k

  Args:
    counts: [n, C] votes per class; each row sums to k.
    sigma: standard deviation of the noise, in votes.
    key: used once.
    continuous: real instead of discrete Gaussian noise.

  Returns:
    [n, C] float32 weights, raw: they need not sum to one and may be negative.
    `project_to_simplex` fixes that at no cost.

  Privacy:
    (a, a / sigma^2)-RDP for each query, exactly, however strongly the
    teachers agree: the data-dependent bound of GNMax is about the argmax
    alone and does not hold here. k is public: every teacher votes.
  """
  counts = as_counts(counts)
  teachers = jnp.sum(counts, axis=-1, keepdims=True)
  if checks.concrete(teachers):
    sums = np.asarray(teachers)
    checks.require(
      bool(sums.size == 0 or (sums.min() == sums.max() and sums.min() > 0)),
      "counts has rows with different sums, but every teacher votes once on "
      "every query; pass whole histograms",
    )
  checks.one_key("key", key)
  noisy = _gaussian(counts, "sigma", sigma, key, continuous)
  return noisy.astype(jnp.float32) / teachers


def plurality(counts: VotesLike, *, key: Key) -> Int[jax.Array, "n"]:
  """The class with the most votes, ties broken at random; not private.

  Args:
    counts: [n, C] votes per class.
    key: used once, for ties.

  Returns:
    [n] int32 class ids.
  """
  counts = as_counts(counts)
  checks.one_key("key", key)
  return _fair_argmax(counts, key)


@jax.jit
def project_to_simplex(weights: jax.Array) -> jax.Array:
  """The nearest weights that are 0 or above and sum to one.

  argmin_p ||p - weights||  over the probability simplex

  Args:
    weights: [..., C] such as noisy vote shares.

  Returns:
    [..., C] probabilities.

  Privacy:
    Post-processing: free.

  Reference:
    Held, Wolfe & Crowder (1974): p = max(w - t, 0), the t of the sum one.
  """
  falling = -jnp.sort(-weights, axis=-1)
  excess = jnp.cumsum(falling, axis=-1) - 1.0
  rank = jnp.arange(1, weights.shape[-1] + 1, dtype=weights.dtype)
  kept = jnp.sum(falling * rank > excess, axis=-1, keepdims=True)
  shift = jnp.take_along_axis(excess, kept - 1, axis=-1) / kept
  return jnp.maximum(weights - shift, 0.0)


def as_counts(counts: VotesLike) -> Int[jax.Array, "n classes"]:
  """[n, C] int32 vote counts, or an error that says what they are instead."""
  check_counts(counts)
  return jnp.asarray(counts, jnp.int32)


def check_counts(counts: Any) -> None:
  """Raises if the counts are not one histogram of votes per query."""
  if not hasattr(counts, "dtype"):
    counts = np.asarray(counts)
  checks.require(
    counts.ndim == 2 and counts.shape[1] > 0,
    f"counts has shape {counts.shape}; pass [n, C], one row of votes per query",
  )
  checks.require(
    counts.dtype.kind in "iu",
    f"counts holds {counts.dtype} numbers; votes are whole, so pass the integers of vote_counts",
  )
  if checks.concrete(counts) and counts.size:
    checks.number(
      "counts",
      [counts.min(), counts.max()],
      low=0.0,
      high=2.0**24,
      remedy="count one vote per teacher",
    )


def _check_reachable(counts: Votes, threshold: Number, sigma: Number) -> None:
  """Raises for a test that no vote can pass."""
  if not checks.concrete((counts, threshold, sigma)) or not np.size(counts):
    return
  if np.all(np.asarray(sigma) == 0):
    teachers = int(np.sum(counts, axis=-1).max())
    checks.require(
      bool(np.all(np.asarray(threshold) <= teachers)),
      f"threshold={threshold} is above the {teachers} teachers and the test "
      "has no noise, so nothing would be answered; lower the threshold",
    )


def _gaussian(
  counts: jax.Array, name: str, sigma: Number, key: jax.Array, continuous: bool
) -> jax.Array:
  if continuous:
    return noise.gaussian(counts.astype(jnp.float32), sigma=sigma, key=key)
  _known(name, sigma)
  return noise.discrete_gaussian(counts, sigma=sigma, key=key)


def _known(name: str, value: Number) -> None:
  checks.require(
    checks.concrete(value),
    f"{name} is traced, and discrete noise needs it beforehand; pass a Python "
    "number, or continuous=True to map over many",
  )


def _keys(key: jax.Array, count: int) -> jax.Array:
  checks.one_key("key", key)
  return jax.random.split(key, count)


@jax.jit
def _fair_argmax(values: jax.Array, key: jax.Array) -> jax.Array:
  """One of the largest of each row, all of them alike.

  The remainder of 32 random bits favors a class by at most C / 2^32.
  """
  best = values == jnp.max(values, axis=-1, keepdims=True)
  tied = jnp.sum(best, axis=-1, dtype=jnp.uint32)
  drawn = _random_words.random_words(key, values.shape[0]).high % tied
  place = jnp.cumsum(best, axis=-1, dtype=jnp.uint32) - 1
  chosen = best & (place == drawn[:, None])
  return jnp.argmax(chosen, axis=-1).astype(jnp.int32)
