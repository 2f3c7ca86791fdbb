"""What is left of the earlier frame, until every study is on the new one."""

import dataclasses
import math
from collections.abc import Callable

from jaxfair.experiments.claims import Verdict
from jaxfair.experiments.study import Cell as Settings
from jaxfair.experiments.study import (
  Context,
  Figure,
  Parts,
  Study,
  Summary,
  cell_name,
)
from jaxfair.experiments.table import Table

__all__ = [
  "Claim",
  "Context",
  "Figure",
  "Finding",
  "Parts",
  "Settings",
  "Study",
  "Summary",
  "cell_name",
]


@dataclasses.dataclass(frozen=True)
class Finding:
  """What a claim's check found on the table."""

  statistic: str
  value: float = math.nan
  low: float = math.nan
  high: float = math.nan
  holds: bool | None = None
  why: str = ""

  @property
  def verdict(self) -> Verdict:
    """Supported / not supported / not run."""
    if self.holds is None:
      return "not run"
    return "supported" if self.holds else "not supported"


@dataclasses.dataclass(frozen=True)
class Claim:
  """A sentence that the table can support or not."""

  name: str
  statement: str
  check: Callable[[Table], Finding]
  source: str = ""
  quote: str = ""
