"""Tests for core feature sets: are the answers so far enough?

A pure test checks that no possible answer to the hidden questions can change
the label. `IntervalTest` is sound: it never calls an impure set pure, and for
linear models it is exact. `GridTest` checks points of a grid, as the paper does.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.disclosure._network import Network, after_first, labels
from jaxfair.disclosure._questions import Questions
from jaxfair.types import Features, Key

GRID_LIMIT = 20  # questions


class Verdict(NamedTuple):
  """Whether a set is a core set, and its representative label."""

  core: jax.Array
  label: jax.Array


Test = Callable[[Any, Any], Verdict]  # (revealed [q], x [d]) -> Verdict


class PureTest(Protocol):
  """Builds a test for one network and one set of questions."""

  def build(self, network: Network, questions: Questions, *, key: Key) -> Test:
    """The test; inside a program."""


@dataclasses.dataclass(frozen=True)
class IntervalTest:
  """Bounds all outputs layer by layer (interval bound propagation).

  Linear models: lows of theta_c x - theta_c' x, summed over questions, are
  attained, so the test is exact and takes linear time. For one number in
  [-1, 1] it is theta_R x_R -+ ||theta_U||_1. Networks: the first layer is
  bounded over the answers to each question, later ones over boxes: sound, and
  it may ask for more than needed.

  A margin must exceed what float32 can be wrong by.

  Reference:
    Thesis, Proposition 7.6; Gowal et al. (2018) for the boxes.
  """

  def build(self, network: Network, questions: Questions, *, key: Key) -> Test:
    """The test; `key` is not used."""
    del key
    layers = _differences(network)
    weights, bias = layers[0]
    answers = jnp.einsum("qkd,dh->qkh", questions.values, weights)
    low, high = answers.min(axis=1), answers.max(axis=1)
    slack = _rounding(layers)

    def test(revealed: jax.Array, x: Features) -> Verdict:
      seen = jnp.where(questions.known(revealed), x, 0.0) @ weights + bias
      hidden = ~revealed[:, None]
      bottom = seen + jnp.sum(jnp.where(hidden, low, 0.0), axis=0)
      top = seen + jnp.sum(jnp.where(hidden, high, 0.0), axis=0)
      for w, b in layers[1:]:
        bottom, top = jax.nn.relu(bottom), jax.nn.relu(top)
        up, down = jnp.maximum(w, 0.0), jnp.minimum(w, 0.0)
        bottom, top = (bottom @ up + top @ down + b, top @ up + bottom @ down + b)
      classes = math.isqrt(bottom.shape[0])
      wins = (bottom > slack).reshape(classes, classes)
      leads = jnp.all(wins | jnp.eye(classes, dtype=bool), axis=1)
      return Verdict(jnp.any(leads), jnp.argmax(leads).astype(jnp.int32))

    return test


@dataclasses.dataclass(frozen=True)
class GridTest:
  """Tests whether the label is the same at every combination of listed answers.

  Up to `points` combinations, all are tested; of more, as many are drawn.
  Neither is sound for a network: between points, or at one that was not drawn,
  the label may differ. The paper counts (1 / Delta)^|U| points; a step Delta
  on [-1, 1] makes (2 / Delta + 1)^|U|.

  Attributes:
    points: the largest number of combinations that are tested.
  """

  points: int = 2048

  def __post_init__(self) -> None:
    checks.integer("points", self.points, low=1)

  def build(self, network: Network, questions: Questions, *, key: Key) -> Test:
    """The test; `key` draws combinations where there are too many."""
    size = questions.size
    checks.require(
      size <= GRID_LIMIT,
      f"the grid test takes at most {GRID_LIMIT} sensitive columns, not "
      f"{size}; use IntervalTest(), which needs no grid",
    )
    counts = jnp.asarray(questions.counts)
    # Answers as what they add to the first layer: h numbers instead of d.
    weights, bias = network.layers[0]
    worth = jnp.einsum("qkd,dh->qkh", questions.values, weights)
    numbers = jnp.arange(self.points)
    drawn = jax.random.randint(key, (self.points, size), 0, counts, dtype=jnp.int32)

    def test(revealed: jax.Array, x: Features) -> Verdict:
      radix = jnp.where(revealed, 1, counts)
      # Products beyond the cap only need to stay beyond it.
      stop = self.points + 1
      below = jnp.concatenate([jnp.ones(1, jnp.int32), radix[:-1]])
      place = jax.lax.associative_scan(lambda a, b: jnp.minimum(a * b, stop), below)
      fits = place[-1] * radix[-1] <= self.points
      counted = (numbers[:, None] // place) % radix
      choice = jnp.where(fits, counted, drawn)
      answers = jax.vmap(lambda v, c: v[c], (0, 1), 1)(worth, choice)
      hidden = jnp.where(revealed[:, None], 0.0, answers).sum(axis=1)
      seen = jnp.where(questions.known(revealed), x, 0.0) @ weights + bias
      found = labels(after_first(network, seen + hidden))  # [points]
      return Verdict(jnp.all(found == found[0]), found[0])

    return test


def _differences(network: Network) -> tuple[tuple[Any, Any], ...]:
  """The layers, with outputs o_c - o_c' for all pairs [C * C] at the end."""
  *first, (weights, bias) = network.layers
  if network.is_binary:
    weights = jnp.concatenate([jnp.zeros_like(weights), weights], axis=1)
    bias = jnp.concatenate([jnp.zeros_like(bias), bias])
  pairs = weights[:, :, None] - weights[:, None, :]
  shifts = bias[:, None] - bias[None, :]
  last = (pairs.reshape(pairs.shape[0], -1), shifts.reshape(-1))
  return (*first, last)


def _rounding(layers: tuple[tuple[Any, Any], ...]) -> jax.Array:
  """How far sums in float32 may be off, in any order; |x| <= 1."""
  magnitude: Any = 1.0
  terms = 0
  for weights, bias in layers:
    size = jnp.broadcast_to(magnitude, weights.shape[:1])
    magnitude = size @ jnp.abs(weights) + jnp.abs(bias)
    terms += weights.shape[0] + 2
  return 4 * terms * float(np.finfo(np.float32).eps) * magnitude
