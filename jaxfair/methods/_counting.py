"""Counts over people, in memory or read from disk a block at a time.

Counts are integers, and those of everybody are the sum of those of the blocks: they do not depend
on how many people are read at once.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.types import Features, Source

BLOCK = 2**24  # bytes of features that are in memory at once


class Counts(NamedTuple):
  """What one pass over people finds.

  Attributes:
    histograms: of each feature that was asked for; see `histogram`.
    present: [d] how many people have a positive number in each feature.
  """

  histograms: list[np.ndarray]
  present: np.ndarray


def count(people: Features | Source, width: int, edges: Mapping[int, np.ndarray]) -> Counts:
  """Reads all people once.

  Args:
    people: [n, d] features, or people on disk.
    width: d.
    edges: of the histogram of each feature, by its place.
  """
  found = [np.zeros(own.size + 1, np.int64) for own in edges.values()]
  present = np.zeros(width, np.int64)
  for x in _blocks(people):
    checks.require(
      x.ndim == 2 and x.shape[1] == width,
      f"x has shape {x.shape}, and the encoder makes {width} features; pass what it made",
    )
    for total, (place, own) in zip(found, edges.items(), strict=True):
      total += histogram(x[:, place], own)
    present += np.count_nonzero(x > 0, axis=0)
  return Counts(found, present)


def histogram(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
  """[m + 1] how many numbers lie between m edges; beyond them in the outer bins.

  A number that is missing or infinite is in no bin.
  """
  places = np.searchsorted(edges, values[np.isfinite(values)], side="right")
  return np.bincount(places, minlength=edges.size + 1)


def _blocks(people: Features | Source) -> Iterator[np.ndarray]:
  if not isinstance(people, Source):
    yield np.asarray(people)
    return
  one = np.asarray(people.take(np.zeros(1, np.int64)).x)
  rows = max(1, BLOCK // max(1, one.nbytes))
  for first in range(0, people.size, rows):
    yield np.asarray(people.take(np.arange(first, min(first + rows, people.size))).x)
