"""One point of the grid: a budget, noise, and a test of consensus."""

from typing import NamedTuple

PLAIN, CONFIDENT = "gnmax", "confident-gnmax"


class Setting(NamedTuple):
  """One point of the grid."""

  epsilon: float
  sigma: float
  threshold: float

  @property
  def method(self) -> str:
    """Which rule it is."""
    return CONFIDENT if self.threshold > 0 else PLAIN
