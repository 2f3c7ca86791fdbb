"""The model's output as a random variable, given the answers so far.

A network sees features through its first layer only, so the Gaussian of d
features is carried as a Gaussian of its h pre-activations. Those laws depend
on which questions are answered, not on the answers: they are computed once for
all people.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import tree
from jaxfair.disclosure._gaussian import Gaussian, condition, factor
from jaxfair.disclosure._network import Network, after_first
from jaxfair.disclosure._questions import Questions
from jaxfair.types import Features

TABLE_LIMIT = 8  # questions; beyond, 2^q laws are more than the people need


class Law(NamedTuple):
  """Pre-activations of the first layer given the known features.

  Attributes:
    weights: [d, h] of the known features; 0 for the others.
    offset: [h].
    covariance: [h, h].
  """

  weights: jax.Array
  offset: jax.Array
  covariance: jax.Array


class Beliefs(NamedTuple):
  """Beliefs about people's answers and margins, as functions of what is revealed.

  Attributes:
    network: the model.
    questions: what may be asked.
    law: revealed [q] -> Law.
    factors: revealed [q] -> [q, h, h]: a square root of the variance that the
      answer to each question takes away.
    parts: revealed [q] -> (weights [q, d, h], offset [q, h]): what each
      question is expected to add to the pre-activations.
  """

  network: Network
  questions: Questions
  law: Callable[[Any], Law]
  factors: Callable[[Any], jax.Array]
  parts: Callable[[Any], tuple[Any, Any]]


def beliefs(network: Network, gaussian: Gaussian, questions: Questions) -> Beliefs:
  """Prepares the laws for every set of answers; for use inside a program."""
  weights, bias = network.layers[0]

  def one_law(revealed: jax.Array) -> Law:
    given = condition(gaussian, questions.known(revealed))
    linear = given.gain.T @ weights
    offset = bias + gaussian.mean @ weights - gaussian.mean @ linear
    return Law(linear, offset, weights.T @ given.covariance @ weights)

  law = _over_subsets(one_law, questions.size)

  def one_factor(revealed: jax.Array) -> jax.Array:
    before = law(revealed).covariance
    after = jax.vmap(lambda r: law(r).covariance)(revealed_next(revealed))
    return factor(before - after)

  def one_part(revealed: jax.Array) -> tuple[Any, Any]:
    given = condition(gaussian, questions.known(revealed))
    own = jnp.where(questions.members[:, :, None], weights, 0.0)
    linear = jnp.einsum("fd,qfh->qdh", given.gain, own)
    center = gaussian.mean
    offset = jnp.einsum("d,qdh->qh", center, own - linear)
    return linear, offset

  size = questions.size
  return Beliefs(
    network, questions, law, _over_subsets(one_factor, size), _over_subsets(one_part, size)
  )


def revealed_next(revealed: jax.Array) -> jax.Array:
  """[q, q]: row j has question j answered as well."""
  return revealed | jnp.eye(revealed.shape[0], dtype=bool)


def pre_activation(known: Beliefs, revealed: jax.Array, x: Features) -> jax.Array:
  """[h] expected pre-activations; hidden entries of x are never read."""
  law = known.law(revealed)
  seen = jnp.where(known.questions.known(revealed), x, 0.0)
  return law.offset + seen @ law.weights


def expected_parts(known: Beliefs, revealed: jax.Array, x: Features) -> jax.Array:
  """[q, h] what each answer is expected to be worth; hidden x is not read."""
  weights, offset = known.parts(revealed)
  seen = jnp.where(known.questions.known(revealed), x, 0.0)
  return offset + jnp.einsum("d,qdh->qh", seen, weights)


def label_probabilities(
  network: Network, mean: jax.Array, covariance: jax.Array, normals: jax.Array
) -> jax.Array:
  """[C] probabilities of the labels for Gaussian pre-activations.

  outputs ~ N(f(mean), J covariance J')  (exact for linear models)

  Two classes: Phi(m / s). More: the share of draws of the outputs in which
  each class is the largest.

  Args:
    network: whose layers after the first are linearized at the mean.
    mean: [h].
    covariance: [h, h].
    normals: [draws, C] standard normal numbers; unused with two classes.

  Reference:
    Thesis, Propositions 7.4 and 7.5, Theorem 7.1, Section 7.9.4.
  """
  if network.is_binary:
    upper = jax.scipy.special.ndtr(_margin_over_deviation(network, mean, covariance))
    return jnp.stack([1 - upper, upper])
  scores = after_first(network, mean)
  jacobian = jax.jacrev(lambda a: after_first(network, a))(mean)
  spread = jacobian @ covariance @ jacobian.T
  winners = jnp.argmax(scores + normals @ factor(spread).T, axis=-1)
  return jnp.mean(jax.nn.one_hot(winners, scores.shape[0]), axis=0)


def label_entropy(
  network: Network, mean: jax.Array, covariance: jax.Array, normals: jax.Array
) -> jax.Array:
  """Entropy of `label_probabilities`; with two classes exact in both tails."""
  if network.is_binary:
    ratio = _margin_over_deviation(network, mean, covariance)
    return sign_entropy(ratio)
  return entropy(label_probabilities(network, mean, covariance, normals))


def sign_entropy(ratio: jax.Array) -> jax.Array:
  """Entropy of the sign of N(ratio, 1), elementwise.

  p = Phi(-|ratio|),  -p log p - (1 - p) log(1 - p)

  The work of the order by entropy is this function. Written by the rarer sign
  it needs one erfc and two logarithms, about a fifth of the time that XLA
  takes for ndtr and two entr.
  """
  rare = 0.5 * jax.lax.erfc(jnp.abs(ratio) * math.sqrt(0.5))
  log_rare = jnp.log(jnp.maximum(rare, np.finfo(np.float32).tiny))
  return -rare * log_rare - (1 - rare) * jnp.log1p(-rare)


def entropy(probabilities: jax.Array) -> jax.Array:
  """-sum p log p over the last axis; 0 log 0 = 0."""
  return jnp.sum(jax.scipy.special.entr(probabilities), axis=-1)


def all_subsets(size: int) -> np.ndarray:
  """[2^q, q] every set of questions; row i holds the bits of i."""
  bits = itertools.product((False, True), repeat=size)
  return np.array(list(bits), bool)[:, ::-1]


def _margin_over_deviation(network: Network, mean: jax.Array, covariance: jax.Array) -> jax.Array:
  """m / s of a margin N(m, s^2); infinite where nothing is left to learn."""
  margin = lambda a: after_first(network, a)[0]  # noqa: E731
  value, slope = jax.value_and_grad(margin)(mean)
  deviation = jnp.sqrt(jnp.maximum(slope @ covariance @ slope, 0.0))
  certain = jnp.where(value > 0, jnp.inf, -jnp.inf)
  ratio = value / jnp.where(deviation > 0, deviation, 1.0)
  return jnp.where(deviation > 0, ratio, certain)


def _over_subsets(function: Callable[[Any], Any], size: int) -> Callable[[Any], Any]:
  """The function of a set of questions, from a table where that is small."""
  if size > TABLE_LIMIT:
    return function
  masks = jnp.asarray(all_subsets(size))
  table = jax.vmap(function)(masks)
  powers = 2 ** jnp.arange(size)
  return lambda revealed: tree.take(table, jnp.sum(revealed * powers))
