"""Where the numbers of a column lie, found in histograms with noise: post-processing of both.

The first histogram has public bins between powers of two, of both signs. Bins that stand out from
the noise give the range of the column. With few people no bin does, or one side of a curve alone;
so neighboring magnitudes are also added up, with the weights that a bell curve has. If neither
stands out, the scale is unknown: the bin with the largest noise is not a scale.
"""

import math

import numpy as np

# Numbers are first placed between powers of two, up to their sign.
_POWERS = 2.0 ** np.arange(-20, 41)
MAGNITUDES = np.concatenate([-_POWERS[::-1], _POWERS])
EDGES = np.concatenate([[2 * MAGNITUDES[0]], MAGNITUDES, [2 * MAGNITUDES[-1]]])
STEPS = (4, 64)  # fewest and most bins between the bounds that the first histogram gives
_ZERO = len(_POWERS)  # number of the bin around 0
# Shares of |N(0, 1)| between 1 and 2, 1/2 and 1, 1/4 and 1/2, 1/8 and 1/4.
_BELL = np.array([0.272, 0.300, 0.186, 0.098])
# Of noise alone, one of 123 bins is above 5 sigma with a chance below 4e-5, and one of about 180
# weighted sums, each of variance sigma^2, is above 4 sigma with a chance below 0.6%.
_ONE_BIN, _WEIGHTED = 5.0, 4.0


def second_grid(noisy: np.ndarray, sigma: float) -> np.ndarray | None:
  """Edges of equal bins over the magnitudes that are seen; None if none is.

  There are as many bins as leave each with 8 sigma people on average.

  Args:
    noisy: counts between `MAGNITUDES`, with noise.
    sigma: of the noise.
  """
  seen, weighted = np.flatnonzero(noisy > _ONE_BIN * sigma), _weighted(noisy, sigma)
  if seen.size:  # numbers that are close together need no wider range
    weighted = weighted[noisy[weighted] > 2 * sigma]
  seen = np.union1d(seen, weighted).astype(int)
  if not seen.size:
    return None
  steps = np.clip(noisy[seen].sum() // (8 * sigma), *STEPS)
  return np.linspace(EDGES[seen[0]], EDGES[seen[-1] + 1], int(steps) + 1)


def mean_and_deviation(noisy: np.ndarray, grid: np.ndarray, sigma: float) -> tuple[float, float]:
  """Of people spread evenly within each bin; bins that are mostly noise count as empty."""
  seen = np.where(noisy > 2 * sigma, noisy, 0)
  if not seen.any():
    seen = np.ones(len(noisy))  # all that is known is the range
  shares, middles = seen / seen.sum(), (grid[1:] + grid[:-1]) / 2
  mean = shares @ middles
  variance = shares @ (middles - mean) ** 2 + (grid[1] - grid[0]) ** 2 / 12
  return float(mean), math.sqrt(variance)


def _weighted(noisy: np.ndarray, sigma: float) -> np.ndarray:
  """The bins of the magnitudes whose weighted sum stands out most; none if none does."""
  above, below = noisy[_ZERO + 1 :], noisy[:_ZERO][::-1]
  sides = [(1,), (-1,), (1, -1)]
  counts = [above, below, (above + below) / math.sqrt(2)]  # the same noise in all three
  # At place i: the magnitudes i + 3, ..., i, from the largest one down.
  weights = _BELL / np.linalg.norm(_BELL)
  scores = np.array([np.convolve(own, weights, "valid") for own in counts])
  side, place = np.unravel_index(scores.argmax(), scores.shape)
  if scores[side, place] < _WEIGHTED * sigma:
    return np.zeros(0, int)
  low, high = int(place) + 1, int(place) + len(_BELL)
  return np.array([_ZERO + sign * i for sign in sides[side] for i in range(low, high + 1)])
