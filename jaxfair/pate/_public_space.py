"""Coordinates in which public people have nearly unit covariance, and a student in them."""

from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.types import Features

RIDGES = np.geomspace(1e-4, 1e5, 91)  # ridge penalties tried, as multiples of the mean variance
SWEEPS = 50


class PublicSpace(NamedTuple):
  """Principal axes of public people, shrunk.

  z(x) = (x - mean) axes / sqrt(variances + shrinkage)

  Attributes:
    mean: [d] of the people.
    axes: [d, r] orthonormal.
    variances: [r] along the axes, above 0.
    coordinates: [n, r] the people along the axes, each column of length one.
    shrinkage: what is added to the variances.
  """

  mean: np.ndarray
  axes: np.ndarray
  variances: np.ndarray
  coordinates: np.ndarray
  shrinkage: float

  @property
  def lengths(self) -> np.ndarray:
    """[r] lengths of the columns of z of the people."""
    shrunk = self.variances / (self.variances + self.shrinkage)
    return np.sqrt(len(self.coordinates) * shrunk)

  def scoring(self) -> np.ndarray:
    """[d, n] the matrix that takes a direction in features to scores z . z' of the people."""
    scaled = self.axes / np.sqrt(self.variances + self.shrinkage)
    return scaled @ (self.coordinates * self.lengths).T


def public_space(x: Features, *, shrinkage: float) -> PublicSpace:
  """The coordinates of these people.

  Args:
    x: [n, ...] features of public people.
    shrinkage: what is added to the variances, as a multiple of their sum over n: about the error
      that n people leave in the estimate of a variance.

  Returns:
    The space of at most min(n - 1, d) axes.

  Privacy:
    Computed from public people alone: free.
  """
  checks.positive("shrinkage", shrinkage)
  rows = np.asarray(x, np.float64).reshape(len(x), -1)
  mean = rows.mean(axis=0)
  centered = rows - mean
  size, features = centered.shape
  if features <= size:
    squares, axes = np.linalg.eigh(centered.T @ centered)
  else:
    squares, left = np.linalg.eigh(centered @ centered.T)
  kept = squares > 1e-10 * max(squares.max(), 1e-300)
  checks.require(bool(kept.any()), "public people have no variance; features must differ")
  squares = squares[kept]
  if features <= size:
    axes = axes[:, kept]
    coordinates = centered @ axes / np.sqrt(squares)
  else:
    coordinates = left[:, kept]
    axes = centered.T @ coordinates / np.sqrt(squares)
  variances = squares / size
  return PublicSpace(mean, axes, variances, coordinates, shrinkage * variances.sum() / size)


def score_student(
  scores: np.ndarray, class_counts: np.ndarray, space: PublicSpace
) -> dict[str, np.ndarray]:
  """The linear model that fits noisy scores of the public people best.

  Ridge regression in the coordinates of the space; its penalty minimizes generalized
  cross-validation on the noisy scores. Constants are such that each class is the largest for its
  share of the public people, since scores have no common zero. Logits have a root mean square of
  one: their scale is not known.

  Args:
    scores: [n, C] noisy sums of scores.
    class_counts: [C] noisy numbers of people by class.
    space: coordinates of the n people.

  Returns:
    Parameters of `models.logistic`: {"w": [d, C], "b": [C]}.

  Privacy:
    Post-processing of what was released: free.

  Reference:
    Golub, Heath & Wahba (1979), for the choice of the penalty.
  """
  targets = scores - scores.mean(axis=0)
  targets = targets - targets.mean(axis=1, keepdims=True)
  lengths = space.lengths
  projected = space.coordinates.T @ targets
  ridge = _ridge(lengths**2, projected, float(np.sum(targets**2)), len(targets))
  fitted = projected * (lengths / (lengths**2 + ridge))[:, None]  # weights along z
  logits = (space.coordinates * lengths) @ fitted
  scale = 1 / max(float(np.sqrt(np.mean(logits**2))), 1e-12)
  weights = space.axes @ (fitted / np.sqrt(space.variances + space.shrinkage)[:, None]) * scale
  constants = matching_constants(logits * scale, class_counts)
  return {
    "w": weights.astype(np.float32),
    "b": (constants - space.mean @ weights).astype(np.float32),
  }


def matching_constants(logits: np.ndarray, class_counts: np.ndarray) -> np.ndarray:
  """[C] constants with which each class is the largest for its share of the rows.

  One class after the other, until nothing changes; of two classes the first step is exact. Counts
  below half a row are raised to it.
  """
  size, classes = logits.shape
  counts = np.maximum(np.asarray(class_counts, np.float64), 0.0)
  least = max(float(counts.sum()), 1.0) * 0.5 / size
  shares = np.maximum(counts, least)
  shares = shares / shares.sum()
  constants = np.zeros(classes)
  for _ in range(SWEEPS):
    before = constants.copy()
    for c in range(classes):
      others = np.delete(logits + constants, c, axis=1).max(axis=1)
      constants[c] = np.quantile(others - logits[:, c], shares[c])
    if np.allclose(before, constants, rtol=0, atol=1e-9):
      break
  return constants - constants.mean()


def _ridge(squares: np.ndarray, projected: np.ndarray, total: float, size: int) -> float:
  """The penalty with the least generalized cross-validation error."""
  energy = np.sum(projected**2, axis=1)
  outside = max(total - float(energy.sum()), 0.0)

  def error(ridge: float) -> float:
    left = ridge / (squares + ridge)
    free = size - 1 - float(np.sum(1 - left))
    return (float(np.sum(left**2 * energy)) + outside) / max(free, 1e-9) ** 2

  found: float = min(RIDGES * squares.mean(), key=error)
  return float(found)
