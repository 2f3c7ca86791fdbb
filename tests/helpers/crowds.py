"""People of normal features for tests that need nothing special of them."""

from collections.abc import Sequence

import numpy as np

from jaxfair.types import Examples


def crowd(
  size: int,
  shape: int | tuple[int, ...],
  *,
  classes: int = 2,
  groups: int = 1,
  apart: float | Sequence[float] = 0.0,
  scale: float = 1.0,
  seed: int = 0,
) -> Examples:
  """x = scale N(0, 1) + apart y, with classes and groups of equal chances.

  Args:
    size: number of people.
    shape: of the features of one person.
    classes: number of classes.
    groups: number of groups.
    apart: distance between the means of neighboring classes, one for all features or one for each.
    scale: standard deviation of every feature.
    seed: of the draw.
  """
  rng = np.random.default_rng(seed)
  y = rng.integers(0, classes, size).astype(np.int32)
  x = scale * rng.normal(size=(size, *np.atleast_1d(shape)))
  means = np.multiply.outer(y, np.broadcast_to(apart, x.shape[1:]))
  return Examples((x + means).astype(np.float32), y, rng.integers(0, groups, size).astype(np.int32))
