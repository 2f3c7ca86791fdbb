"""An attack that is learned: a discriminant on the outputs of a mechanism."""

from collections.abc import Callable

import numpy as np

from jaxfair import checks

Score = Callable[[np.ndarray], np.ndarray]
# (outputs of one neighbor, outputs of the other) -> scores of new outputs.
Attack = Callable[[np.ndarray, np.ndarray], Score]

MAX_NUMBERS = 1000


def discriminant(without: np.ndarray, present: np.ndarray) -> Score:
  """Learns a score that tells two neighboring data sets apart by a mechanism's outputs.

  score(x) = w . features(x),  w = (Sigma + shrinkage)^-1 (mean_1 - mean_0)

  The features are the released numbers, their squares, the squares of the
  differences between consecutive ones, and how many are not finite. So it sees
  a shifted mean, a changed variance, and noise that was used twice, if what it
  was used for lies side by side.

  Returns:
    `[k, d] outputs -> [k] scores`, higher where `present` is likelier.
  """
  numbers = without.shape[1]
  checks.require(
    numbers <= MAX_NUMBERS,
    f"the mechanism releases {numbers} numbers, more than the {MAX_NUMBERS} "
    "this attack can weigh; release fewer of them, or pass your own attack",
  )
  clean = [np.where(np.isfinite(x), x, 0.0) for x in (without, present)]
  pooled = np.concatenate(clean)
  center, spread = pooled.mean(0), pooled.std(0)
  spread = np.where(spread > 0, spread, 1.0)

  def features(outputs: np.ndarray) -> np.ndarray:
    finite = np.isfinite(outputs)
    known = np.where(finite, outputs, 0.0)
    scaled = (known - center) / spread
    missing = np.sum(~finite, axis=1, keepdims=True)
    steps = np.diff(known, axis=1)
    return np.concatenate([scaled, scaled**2, steps**2, missing], axis=1)

  weights = _weights(features(without), features(present))
  return lambda outputs: features(outputs) @ weights


def _weights(without: np.ndarray, present: np.ndarray) -> np.ndarray:
  """Fisher's direction; correlations are shrunk as far as the runs are few."""
  shift = present.mean(0) - without.mean(0)
  spread = np.sqrt((without.var(0) + present.var(0)) / 2)
  # A feature that never varies decides alone if it differs, and is else mute.
  floor = np.maximum(1e-6 * np.abs(shift), np.finfo(float).tiny ** 0.5)
  spread = np.maximum(spread, floor)
  residuals = np.concatenate([(x - x.mean(0)) / spread for x in (without, present)])
  correlation = residuals.T @ residuals / len(residuals)
  shrinkage = min(1.0, max(1e-6, len(shift) / len(residuals)))
  shrunk = (1 - shrinkage) * correlation + shrinkage * np.eye(len(shift))
  weights: np.ndarray = np.linalg.solve(shrunk, shift / spread) / spread
  return weights
