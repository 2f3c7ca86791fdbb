"""What a run sends to a tracker such as MLflow, and what it does not.

Settings of cells and guarantees of released models are public. Rows of a run are measured on
people without noise: a tracker, which keeps what it is sent on another machine, gets them only if
that is allowed.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jaxfair import checks
from jaxfair.accounting import DataDependentEpsilon
from jaxfair.experiments._study import Study
from jaxfair.experiments._table import Table
from jaxfair.methods import Released

ALLOW = "--track-non-private"
NON_PRIVATE = "NonPrivate"


class Tracker(Protocol):
  """Whatever has these three functions is told how a run goes."""

  def on_cell(self, name: str, settings: Mapping[str, Any]) -> None:
    """A cell is computed: its name, and its settings by name."""

  def on_row(self, settings: Mapping[str, Any], figures: Mapping[str, float]) -> None:
    """A row of the results: its settings, group and seed among them, and what was measured."""

  def on_release(self, facts: Mapping[str, Any]) -> None:
    """A model was released: method, network, epsilon, delta, relation, unit, for_release."""


class Guard:
  """Passes on to a tracker what may leave the house.

  Args:
    tracker: told the rest.
    say: told once what was kept back.
    allow_non_private: passes on rows, too.
  """

  def __init__(
    self, tracker: Tracker, say: Callable[[str], None], *, allow_non_private: bool = False
  ):
    self._tracker, self._say, self._allow = tracker, say, allow_non_private

  def on_cell(self, name: str, settings: Mapping[str, Any]) -> None:
    """Passes a cell on."""
    self._tracker.on_cell(name, self._checked(settings))

  def on_table(self, study: Study, cells: list[str], table: Table) -> None:
    """Passes the rows on, if that is allowed."""
    told = {*cells, *study.setting_columns(table), "seed", "group"}
    told |= {name for name in table.names if table[name].dtype.kind != "f"}
    figures = [name for name in table.names if name not in told]
    if not self._allow:
      shown = ", ".join(figures[:3]) + (", ..." if len(figures) > 3 else "")
      self._say(
        f"The tracker was not sent the {len(table):,} rows of results ({shown}): they are measured "
        f"on people without noise. {ALLOW} sends them."
      )
      return
    for row in table.rows():
      settings = {name: value for name, value in row.items() if name in told}
      # A figure that does not exist, such as a rate of an empty group, is NaN.
      known = {name: row[name] for name in figures if not math.isnan(row[name])}
      self._tracker.on_row(settings, known)

  def on_release(self, released: Released) -> None:
    """Passes the guarantee of a released model on."""
    promised = released.guarantee.guarantee
    facts = {
      "method": released.method,
      "network": released.network.name,
      "epsilon": promised.epsilon,
      "delta": promised.delta,
      "relation": promised.relation.value,
      "unit": promised.unit,
      "for_release": bool(released.guarantee.for_release),
    }
    self._tracker.on_release(self._checked(facts))

  def _checked(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values; raises for one of a type that must not be published."""
    for name, value in values.items():
      kind = type(value)
      hidden = kind.__name__.startswith(NON_PRIVATE) or isinstance(value, DataDependentEpsilon)
      checks.require(
        self._allow or not hidden,
        f"{name} is a {kind.__name__}, computed from people without noise; leave it out, or allow "
        f"it with {ALLOW}",
      )
    return values
