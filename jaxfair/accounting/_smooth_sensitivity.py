"""How far one teacher can move a data-dependent cost, smoothed over all votes.

With L(j) the largest change of cost within reach of rung j (see _margin_costs),
L_d(j) the largest L within d votes of it, and all queries moving at once,

  S = max_d e^(-beta d) sum_i L_d(j_i)

bounds the change of the total cost by one teacher, and itself changes by a
factor of at most e^beta, since L_d(j) <= L_{d+1}(j') for neighbors j and j'.

Where at most m queries are answered, every sum over queries is the sum of its
m largest terms. That sum is a maximum over choices of m queries, so it rises
with every term and moves by no more than the m largest moves: both statements
hold for it as well.

Reference:
  Nissim, Raskhodnikova & Smith (2007), Claim 3.2.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from jaxfair.accounting._margin_costs import Ladder

BLOCK = 2**22


class Part(NamedTuple):
  """Queries of one kind on their ladder; private.

  Attributes:
    ladder: costs by rung.
    rungs: [m] rungs that are occupied.
    weights: [m] how many queries are on each.
    most: how many of these queries count, at most; public.
  """

  ladder: Ladder
  rungs: np.ndarray
  weights: np.ndarray
  most: float = math.inf

  @property
  def cost(self) -> float:
    """The largest cost of as many of these queries as count."""
    return float(self.total(self.ladder.costs[self.rungs]))

  def total(self, values: np.ndarray) -> np.ndarray:
    """[...] the sum of the `most` largest of values [..., m], by weight."""
    if self.most >= self.weights.sum():
      return np.asarray(values @ self.weights)
    falling = np.argsort(-values, axis=-1)
    weights = self.weights[falling]
    before = np.cumsum(weights, axis=-1) - weights
    counted = np.clip(self.most - before, 0.0, weights)
    ranked = np.take_along_axis(values, falling, axis=-1)
    return np.asarray(np.sum(ranked * counted, axis=-1))


def local_sensitivity(ladder: Ladder) -> np.ndarray:
  """[rungs] the largest change of cost within reach: L(j)."""
  size = 2 * ladder.reach + 1
  above = ndimage.maximum_filter1d(ladder.costs, size, mode="nearest")
  below = ndimage.minimum_filter1d(ladder.costs, size, mode="nearest")
  return np.maximum(above - ladder.costs, ladder.costs - below)


def sensitivity_at_distance(part: Part, distances: np.ndarray) -> np.ndarray:
  """[distances] sums over queries of L_d, the largest L within d votes."""
  ladder, rungs = part.ladder, part.rungs
  levels = _window_maxima(local_sensitivity(ladder))
  last = len(ladder.costs) - 1
  totals = np.zeros(len(distances))
  per_block = max(1, BLOCK // max(1, len(rungs)))
  for start in range(0, len(distances), per_block):
    block = distances[start : start + per_block]
    move = (block * ladder.reach)[:, None]
    low = np.maximum(rungs - move, 0)
    high = np.minimum(rungs + move, last)
    # Two overlapping windows of a power of two cover any window.
    level = np.frexp(high - low + 1)[1] - 1
    largest = np.maximum(levels[level, low], levels[level, high - (1 << level) + 1])
    totals[start : start + per_block] = part.total(largest)
  return totals


def totals_by_distance(parts: list[Part]) -> tuple[np.ndarray, np.ndarray]:
  """Sums of L_d over all queries of all parts, and the distances d."""
  far = max(math.ceil(len(p.ladder.costs) / p.ladder.reach) for p in parts)
  distances = np.arange(far + 1)
  totals = sum(
    (sensitivity_at_distance(part, distances) for part in parts), start=np.zeros(far + 1)
  )
  return totals, distances


def log_smooth_sensitivity(totals: np.ndarray, distances: np.ndarray, *, beta: float) -> float:
  """ln S from `totals_by_distance`; -inf where no vote can move any cost."""
  moved = totals > 0
  if not moved.any():
    return -math.inf
  return float(np.max(np.log(totals[moved]) - beta * distances[moved]))


def _window_maxima(values: np.ndarray) -> np.ndarray:
  """levels[i, j] = max of values[j : j + 2^i], cut at the end."""
  depth = len(values).bit_length()
  levels = np.tile(values, (depth, 1))
  for i in range(1, depth):
    half = 1 << (i - 1)
    levels[i, :-half] = np.maximum(levels[i - 1, :-half], levels[i - 1, half:])
    levels[i, -half:] = levels[i - 1, -half:]
  return levels
