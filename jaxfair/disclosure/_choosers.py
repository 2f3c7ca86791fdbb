"""Which question next? Scores of the questions that are still open.

No score reads a hidden value: it gets the answers so far and the laws.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.disclosure._beliefs import (
  Beliefs,
  expected_parts,
  label_entropy,
  pre_activation,
  revealed_next,
)
from jaxfair.disclosure._network import after_first
from jaxfair.types import Array, Key


class Person(NamedTuple):
  """Someone who is asked: their features, and a key of their own."""

  x: Array
  key: Key


Scores = Callable[[Any, Person], jax.Array]  # (revealed [q], person) -> [q]


class Chooser(Protocol):
  """Builds the scores for one model; the highest open question is asked."""

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores; inside a program."""


@dataclasses.dataclass(frozen=True)
class ByEntropy:
  """Orders questions by the expected certainty of the label after the answer (the paper's PFR).

  F(j) = mean over answers z ~ X_j | x_R of -H[f | x_R, X_j = z]

  The paper writes the sum; the mean gives the same order. Answers are drawn as their
  effect on the first layer, which has the same distribution. People share
  the draws, which does not reduce the accuracy for any of them.

  Attributes:
    draws: number of simulated answers.
    label_draws: draws of the outputs with more than two classes.

  Reference:
    Thesis, Equations 7.3 and 7.4, Algorithms 2 and 3.
  """

  draws: int = 1000
  label_draws: int = 1000

  def __post_init__(self) -> None:
    checks.integer("draws", self.draws, low=1)
    checks.integer("label_draws", self.label_draws, low=1)

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores."""
    network = known.network
    key_answer, key_label = jax.random.split(key)
    hidden = network.layers[0][1].shape[0]
    classes = network.layers[-1][1].shape[0]
    answers = jax.random.normal(key_answer, (self.draws, hidden))
    normals = jax.random.normal(key_label, (self.label_draws, classes))

    def scores(revealed: jax.Array, person: Person) -> jax.Array:
      center = pre_activation(known, revealed, person.x)

      def one(after: jax.Array, factor: jax.Array) -> jax.Array:
        rest = known.law(after).covariance
        means = center + answers @ factor.T
        left = jax.vmap(lambda mean: label_entropy(network, mean, rest, normals))(means)
        return -jnp.mean(left)

      return jax.vmap(one)(revealed_next(revealed), known.factors(revealed))

    return scores


@dataclasses.dataclass(frozen=True)
class ByVariance:
  """Orders questions by how little variance of the margin the answer leaves; needs no sampling.

  For a linear model and two classes this is the order of `ByEntropy` without
  its sampling error. The margin given R is N(m, s^2); an answer moves m by a
  normal of variance v_j and leaves s^2 - v_j. Of two answers the one with the
  smaller v is a noisier copy of the other, so by the data-processing
  inequality it leaves more entropy. v_j does not depend on any answer: the
  order is the same for everybody, and only the point where it stops differs.

  For networks the gradient at the mean stands in for the weights.
  """

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores; `key` is not used."""
    del key
    network = known.network
    checks.require(
      network.is_binary, "ByVariance supports two classes; with more classes use ByEntropy()"
    )

    def scores(revealed: jax.Array, person: Person) -> jax.Array:
      center = pre_activation(known, revealed, person.x)
      slope = jax.grad(lambda a: after_first(network, a)[0])(center)
      moved = jnp.einsum("h,qhk->qk", slope, known.factors(revealed))
      return jnp.sum(moved**2, axis=-1)

    return scores


@dataclasses.dataclass(frozen=True)
class ByProgress:
  """Orders questions by how far the answer is expected to lift the worst case; for delta = 0.

  Let c be the likely label and g the gradient of its lead over the next one.
  A hidden column contributes its worst answer, min_v g v; once revealed it
  contributes its actual value, in expectation g E[X_j | x_R]. The score is the
  difference. For a linear model and two classes the smallest pure core set
  has the largest *actual* differences, so this is the optimum with hidden
  values replaced by their expectations.
  """

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores; `key` is not used."""
    del key
    network = known.network
    answers = known.questions.values @ network.layers[0][0]  # [q, K, h]

    def lead(a: jax.Array) -> jax.Array:
      found = after_first(network, a)
      if network.is_binary:
        return jnp.abs(found[0])
      best = jax.lax.top_k(found, 2)[0]
      return best[0] - best[1]

    def scores(revealed: jax.Array, person: Person) -> jax.Array:
      slope = jax.grad(lead)(pre_activation(known, revealed, person.x))
      expected = expected_parts(known, revealed, person.x) @ slope
      return expected - jnp.min(answers @ slope, axis=1)

    return scores


@dataclasses.dataclass(frozen=True)
class ByImportance:
  """Orders questions by how much each column moves the first layer; the same for everybody.

  The variance of the pre-activations that a column explains before anything
  sensitive is known. A baseline.
  """

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores; `key` is not used."""
    del key
    nothing = jnp.zeros(known.questions.size, bool)
    fixed = jnp.sum(known.factors(nothing) ** 2, axis=(1, 2))
    return lambda revealed, person: fixed


@dataclasses.dataclass(frozen=True)
class AtRandom:
  """Asks in a random order for each person; a baseline."""

  def build(self, known: Beliefs, *, key: Key) -> Scores:
    """The scores; each person's own key makes the order."""
    del key
    size = known.questions.size
    return lambda revealed, person: jax.random.uniform(person.key, (size,))
