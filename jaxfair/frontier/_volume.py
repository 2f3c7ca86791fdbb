"""How much a frontier covers: the dominated hypervolume, exact up to 4 axes."""

from collections.abc import Sequence

import numpy as np

from jaxfair import checks
from jaxfair.frontier._dominance import non_dominated
from jaxfair.frontier._objectives import Better, Missing, costs, known_rows
from jaxfair.types import ArrayLike

MOST_AXES = 4


def hypervolume(
  values: ArrayLike,
  better: Sequence[Better],
  *,
  reference: Sequence[float],
  missing: Missing = "refuse",
) -> float:
  """The volume of the region that the points dominate, bounded by the reference point.

  vol { z : some a in values is nowhere worse than z, z better than reference }

  Points enter in the order of the first objective. A grid over two others
  holds the best value of the fourth reached so far; a point lowers one corner
  of it, and the area between is what it adds for all that follow. In n points
  of four objectives n^3, of three n^2, vectorized but for the n.

  Args:
    values: [n, d] points, d from 1 to 4.
    better: "low" or "high", d of them.
    reference: d limits, such as epsilon 10, gap 1, accuracy 0, coverage 0.
      Values worse than these add no volume.
    missing: refuse rows with NaN, or drop them.

  Returns:
    The volume in the product of the objectives' units; 0 without points.

  Reference:
    Zitzler & Thiele (1998), the size of the space covered.
  """
  array = np.asarray(values, np.float64)
  limits = np.asarray(reference, np.float64)
  checks.require(
    array.ndim == 2 and array.shape[1] == len(better) == len(limits) <= MOST_AXES,
    f"values has shape {array.shape}, with {len(better)} directions and "
    f"{len(limits)} reference values; pass as many as there are columns, 4 "
    "at most",
  )
  checks.finite("reference", limits[:, None])
  rows, _ = known_rows(array, missing)
  found, corner = costs(array[rows], better), costs(limits, better)
  found = found[(found < corner).all(axis=1)]
  checks.require(
    bool(np.isfinite(found).all()), "values has points that are infinitely good; leave them out"
  )
  if not len(found):
    return 0.0
  on = non_dominated(found, ["low"] * len(better)).on
  return _sweep(np.unique(found[on], axis=0), corner)


def _sweep(found: np.ndarray, corner: np.ndarray) -> float:
  """The volume between distinct points and the corner, less being better.

  Objectives that are not there are 0 at every point and 1 at the corner.
  """
  lacking = MOST_AXES - found.shape[1]
  found = np.pad(found, ((0, 0), (0, lacking)))
  corner = np.pad(corner, (0, lacking), constant_values=1.0)
  (rows, tall), (columns, wide) = (_steps(found[:, axis], corner[axis]) for axis in (2, 3))
  reached = np.full((len(tall), len(wide)), corner[1])
  order = np.argsort(found[:, 0], kind="stable")
  heights = np.diff(np.append(found[order, 0], corner[0]))
  area = volume = 0.0
  for point, height in zip(order, heights, strict=True):
    row, column, value = rows[point], columns[point], found[point, 1]
    # The grid falls along both axes: beyond these ends nothing is above.
    down = row + np.count_nonzero(reached[row:, column] > value)
    across = column + np.count_nonzero(reached[row, column:] > value)
    part = reached[row:down, column:across]
    lowered = np.minimum(part, value)
    area += tall[row:down] @ (part - lowered) @ wide[column:across]
    part[:] = lowered
    volume += area * height
  return float(volume)


def _steps(values: np.ndarray, end: float) -> tuple[np.ndarray, np.ndarray]:
  """Where each value lies among the distinct ones, and the steps between."""
  places, own = np.unique(values, return_inverse=True)
  return own.ravel(), np.diff(np.append(places, end))
