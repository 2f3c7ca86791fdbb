"""Non-dominated sets in any number of objectives.

a dominates b if a is nowhere worse and somewhere better. Equal points do not
dominate one another: duplicates stay.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.frontier._objectives import Better, Missing, costs, known_rows
from jaxfair.types import ArrayLike

_BLOCK = 128  # points that are compared with the frontier so far at a time


class NonDominated(NamedTuple):
  """Which points are Pareto-optimal.

  Attributes:
    on: [n] whether the point is on the frontier; rows with NaN are not.
    dropped: how many rows have NaN.
  """

  on: np.ndarray
  dropped: int


def non_dominated(
  values: ArrayLike, better: Sequence[Better], *, missing: Missing = "refuse"
) -> NonDominated:
  """Marks the points that no other point dominates.

  Points are taken in the order of the sums of their ranks. A dominating point
  comes before those it dominates, so each block is compared with the frontier
  so far and with itself: n times the frontier's size, not n squared.

  Args:
    values: [n, d] numbers; infinities are allowed.
    better: "low" or "high", d of them.
    missing: refuse rows with NaN, or drop and count them.
  """
  array = np.asarray(values, np.float64)
  checks.require(
    array.ndim == 2 and array.shape[1] == len(better) > 0,
    f"values has shape {array.shape}; pass (points, {len(better)}), one column for each direction",
  )
  for one in better:
    checks.one_of("better", one, ("low", "high"))
  rows, dropped = known_rows(array, missing)
  on = np.zeros(len(array), bool)
  on[rows] = _minimal(_ranks(costs(array[rows], better)))
  return NonDominated(on, dropped)


def dominated(values: jax.Array) -> jax.Array:
  """[n] whether a point is dominated, less being better; for use inside jit.

  Args:
    values: [n, d] costs without NaN.
  """
  nowhere_worse = jnp.ones((values.shape[0],) * 2, bool)
  somewhere_better = jnp.zeros_like(nowhere_worse)
  for column in values.T:  # d is small and static
    nowhere_worse &= column[:, None] <= column[None]
    somewhere_better |= column[:, None] < column[None]
  return jnp.any(nowhere_worse & somewhere_better, axis=0)


def _ranks(values: np.ndarray) -> np.ndarray:
  """[n, d] ranks of distinct values: finite, and equal where they are."""
  ranks = [np.unique(column, return_inverse=True)[1] for column in values.T]
  return np.stack(ranks, axis=1).astype(np.int32)


def _minimal(ranks: np.ndarray) -> np.ndarray:
  unique, own = np.unique(ranks, axis=0, return_inverse=True)
  order = np.argsort(unique.sum(axis=1, dtype=np.int64), kind="stable")
  frontier = np.empty((0, ranks.shape[1]), np.int32)
  kept: list[np.ndarray] = []
  for start in range(0, len(order), _BLOCK):
    block = order[start : start + _BLOCK]
    block = block[~_covered(frontier, unique[block])]
    # Distinct points: who is nowhere better than another is beaten by it.
    block = block[_covered(unique[block], unique[block], itself=True)]
    kept.append(block)
    frontier = np.concatenate([frontier, unique[block]])
  minimal = np.zeros(len(unique), bool)
  minimal[np.concatenate([np.empty(0, np.intp), *kept])] = True
  return minimal[own.ravel()]


def _covered(by: np.ndarray, those: np.ndarray, *, itself: bool = False) -> np.ndarray:
  """Whether some point of `by` is nowhere worse.

  With `itself`, whether a point is covered by itself alone.
  """
  below = np.ones((len(by), len(those)), bool)
  for a, b in zip(by.T, those.T, strict=True):
    below &= a[:, None] <= b[None]
  found: np.ndarray = below.sum(axis=0)
  return found == 1 if itself else found > 0
