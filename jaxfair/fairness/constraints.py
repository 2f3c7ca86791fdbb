"""Differentiable fairness notions, for use as training constraints and penalties.

A notion is a function of (scores, y, group). All have one form: a statistic h
of each person, compared between a group and everybody, among all people or
among those of one label (a stratum):

  gap_{s,a} = E[h | stratum s, group a] - E[h | stratum s]

A model is alpha-fair if no gap exceeds alpha in size. An empty
group has a gap of 0 and a count of 0: it contributes nothing.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness._notion import Gaps, Notion, Sides, Violations
from jaxfair.types import ArrayLike, Labels, Scores

__all__ = [
  "Gaps",
  "Notion",
  "Sides",
  "Violations",
  "accuracy_parity",
  "corrected",
  "demographic_parity",
  "equal_losses",
  "equal_opportunity",
  "equalized_odds",
  "generalized_demographic_parity",
]


def demographic_parity(
  num_groups: int, num_classes: int = 2, *, sharpness: float = 1.0, sides: Sides = "both"
) -> Notion:
  """Every class is given to every group equally often: h = prediction.

  Args:
    num_groups: G.
    num_classes: C; of two classes, class 1 alone is compared.
    sharpness: of the soft decisions softmax(sharpness * scores) that stand
      for hard ones in the objective; the larger, the closer.
    sides: see `Notion`.

  Returns:
    The notion; equal arguments give equal notions, which share programs.
  """
  soft, hard = _rates(num_classes, sharpness)
  return Notion("demographic parity", num_groups, 1, soft, hard, _everybody, sides=sides)


def equalized_odds(
  num_groups: int, num_classes: int = 2, *, sharpness: float = 1.0, sides: Sides = "both"
) -> Notion:
  """Demographic parity among the people of each true class.

  Arguments as in `demographic_parity`; S = C strata.
  """
  soft, hard = _rates(num_classes, sharpness)
  return Notion("equalized odds", num_groups, num_classes, soft, hard, jnp.asarray, sides=sides)


def equal_opportunity(
  num_groups: int, num_classes: int = 2, *, sharpness: float = 1.0, sides: Sides = "both"
) -> Notion:
  """True positives: P(prediction = k | y = k) is the same for every group.

  Arguments as in `demographic_parity`: of two classes, k = 1 alone.
  """
  soft, hard = _own_class(num_classes, sharpness)
  stratum = _Shifted(1) if num_classes == 2 else _Shifted(0)
  strata = 1 if num_classes == 2 else num_classes
  return Notion("equal opportunity", num_groups, strata, soft, hard, stratum, sides=sides)


def accuracy_parity(
  num_groups: int, num_classes: int = 2, *, sharpness: float = 1.0, sides: Sides = "both"
) -> Notion:
  """Every group is predicted right equally often: h = [prediction = y]."""
  soft, hard = _own_class(num_classes, sharpness)
  return Notion("accuracy parity", num_groups, 1, soft, hard, _everybody, sides=sides)


def generalized_demographic_parity(
  num_groups: int, num_classes: int = 2, *, moments: int = 2, sides: Sides = "both"
) -> Notion:
  """Scores have the same first moments in every group: h = score^1 .. score^H.

  It holds demographic parity to account at every threshold, as far as the
  moments tell; `wasserstein_disparity` measures the rest.

  Args:
    num_groups: G.
    num_classes: C; of two classes, the score of class 1 alone is compared.
    moments: H; the paper has 2.
    sides: see `Notion`.

  Returns:
    The notion. `measured` is of scores, not of decisions: which threshold
    will be used is not known.

  Reference:
    Tran et al. (2023), Definition 3.
  """
  checks.integer("num_classes", num_classes, low=2)
  checks.integer("moments", moments, low=1)
  powers = _Powers(num_classes, moments)
  return Notion(
    "generalized demographic parity", num_groups, 1, powers, powers, _everybody, sides=sides
  )


def equal_losses(
  num_groups: int, loss: Callable[[Any, Any], Any], *, bound: float = np.inf, sides: Sides = "both"
) -> Notion:
  """Every group has the same mean loss: h = loss(scores, y).

  Args:
    num_groups: G.
    loss: `(logits, y) -> [n]`.
    bound: the largest loss, if there is one.
    sides: see `Notion`.
  """
  column = _Column(loss)
  return Notion("equal losses", num_groups, 1, column, column, _everybody, bound, sides)


def corrected(notion: Notion, response: ArrayLike) -> Notion:
  """The notion for groups that were reported through known noise.

  E[h | A = a] is estimated from sums by reported group: those are mixtures
  with known weights, which the inverse matrix takes apart again.

  Args:
    notion: with respect to the true groups.
    response: [G, G] probabilities of each report (column) given each true
      group (row), as `privacy.response_matrix` gives them.

  Returns:
    The notion; on small samples an estimated count may be 0 or below, and
    that group contributes nothing.

  Assumptions:
    The report depends on the group alone, not on scores or labels, given the
    group: true for randomized response.

  Reference:
    Mozannar, Ohannessian & Srebro (2020), section 4.
  """
  matrix = np.asarray(response, np.float64)
  groups = notion.num_groups
  checks.require(
    matrix.shape == (groups, groups) and bool(np.allclose(matrix.sum(axis=1), 1.0)),
    f"response has shape {matrix.shape} or rows that do not sum to 1; pass "
    f"[{groups}, {groups}] probabilities of each report given each group",
  )
  # Sums by report are matrix^T times sums by group.
  inverse = np.linalg.inv(matrix.T)
  return dataclasses.replace(notion, unmix=tuple(map(tuple, inverse.tolist())))


def _everybody(y: Labels) -> jax.Array:
  return jnp.zeros(jnp.shape(y)[:1], jnp.int32)


@dataclasses.dataclass(frozen=True)
class _Shifted:
  """Class k is stratum k - shift."""

  shift: int

  def __call__(self, y: Labels) -> jax.Array:
    return jnp.asarray(y) - self.shift


@dataclasses.dataclass(frozen=True)
class _Soft:
  """Soft decisions: softmax(sharpness * scores)."""

  num_classes: int
  sharpness: float

  def __post_init__(self) -> None:
    checks.integer("num_classes", self.num_classes, low=2)
    checks.positive("sharpness", self.sharpness)

  def __call__(self, scores: Scores) -> jax.Array:
    _check_columns(scores, self.num_classes)
    return jax.nn.softmax(self.sharpness * scores, axis=-1)


@dataclasses.dataclass(frozen=True)
class _Hard:
  """Decisions: 1 for the largest score."""

  num_classes: int

  def __call__(self, scores: Scores) -> jax.Array:
    _check_columns(scores, self.num_classes)
    return jax.nn.one_hot(jnp.argmax(scores, axis=-1), self.num_classes)


@dataclasses.dataclass(frozen=True)
class _Rates:
  """The statistic of every class; with two classes, the second is enough."""

  decide: Callable[[Any], jax.Array]

  def __call__(self, scores: Scores, y: Labels) -> jax.Array:
    del y
    decided = self.decide(scores)
    return decided[:, 1:] if decided.shape[-1] == 2 else decided


@dataclasses.dataclass(frozen=True)
class _OwnClass:
  """The statistic of the true class."""

  decide: Callable[[Any], jax.Array]

  def __call__(self, scores: Scores, y: Labels) -> jax.Array:
    decided = self.decide(scores)
    own = jnp.asarray(y)[:, None] == jnp.arange(decided.shape[-1])
    return jnp.sum(jnp.where(own, decided, 0.0), axis=-1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class _Powers:
  """Powers 1..H of the scores of every class; of two, of the second."""

  num_classes: int
  moments: int

  def __call__(self, scores: Scores, y: Labels) -> jax.Array:
    rates = _Rates(_Soft(self.num_classes, 1.0))(scores, y)
    powers = [rates**power for power in range(1, self.moments + 1)]
    return jnp.concatenate(powers, axis=-1)


@dataclasses.dataclass(frozen=True)
class _Column:
  loss: Callable[[Any, Any], Any]

  def __call__(self, scores: Scores, y: Labels) -> jax.Array:
    return self.loss(scores, y)[:, None]


def _rates(num_classes: int, sharpness: float) -> tuple[_Rates, _Rates]:
  soft = _Soft(num_classes, float(sharpness))
  return _Rates(soft), _Rates(_Hard(num_classes))


def _own_class(num_classes: int, sharpness: float) -> tuple[_OwnClass, _OwnClass]:
  soft = _Soft(num_classes, float(sharpness))
  return _OwnClass(soft), _OwnClass(_Hard(num_classes))


def _check_columns(scores: Scores, num_classes: int) -> None:
  checks.require(
    jnp.ndim(scores) == 2 and scores.shape[1] == num_classes,
    f"scores has shape {jnp.shape(scores)}; pass logits [n, {num_classes}], one column per class",
  )
