"""A part of the people of a source, with features as a method takes them."""

import dataclasses
import hashlib
from collections.abc import Callable

import numpy as np

from jaxfair.types import Examples, Source


@dataclasses.dataclass(frozen=True, eq=False)
class SourceView:
  """Some people of a source; nothing is copied.

  Attributes:
    source: everybody.
    left_out: [m] row numbers that are not part of it, ascending.
    change: of [n, ...] features, each row by itself.
    told: what `left_out` and `change` are, for the fingerprint.
  """

  source: Source
  left_out: np.ndarray
  change: Callable[[np.ndarray], np.ndarray]
  told: str

  @property
  def size(self) -> int:
    """Number of people."""
    return self.source.size - len(self.left_out)

  def take(self, rows: np.ndarray) -> Examples:
    """Copies of some rows, changed."""
    # Row i of those who are left has as many rows left out before it as j - (number of rows left
    # out before j) <= i for their own numbers j.
    before = self.left_out - np.arange(len(self.left_out))
    found = self.source.take(rows + np.searchsorted(before, rows, side="right"))
    with np.errstate(invalid="ignore", over="ignore"):  # broken records stay broken
      return found._replace(x=self.change(found.x))

  def fingerprint(self) -> str:
    """Of the whole source and of what is changed."""
    return hashlib.sha256(f"{self.source.fingerprint()} {self.told}".encode()).hexdigest()
