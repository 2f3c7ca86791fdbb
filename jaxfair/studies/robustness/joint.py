"""Fairness and PGD training together: Figures 6.6 and 6.7 of the thesis."""

import dataclasses

from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import claims, protocol
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.robustness import networks
from jaxfair.studies.robustness.price import PLAIN, in_each_attack

ALL = {"group": EVERYONE}


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings; see `networks.NetworkConfig`."""

  defences: tuple[float, ...] = (0.0, 0.01, 0.02)
  attacks: tuple[networks.AttackName, ...] = (networks.PGD_LINF,)
  losses: tuple[networks.LossName, ...] = ("cross_entropy",)
  strengths: tuple[float, ...] = (0.0, 0.5, 1.0)


def _named(table: Table) -> Table:
  if "defence" not in table:
    return table
  return table.plus(
    trained_for=[f"{value:g}" for value in table["defence"]],
    panel=[f"lambda {name}" for name in table["setting"]],
  )


def _at_every(
  fixed: str, name: str, statement: str, column: str, along: str, *, rises: bool
) -> Claim:
  """A trend while the other setting is fixed, whatever it is fixed at."""
  attacked = column == "robust_error"
  where = ALL if attacked else PLAIN | ALL
  check = claims.in_each(
    fixed, claims.trend(column, along, rises=rises, where=where)
  )
  return Claim(
    name,
    statement,
    in_each_attack(check) if attacked else check,
    source="Fig. 6.7" if attacked else "Fig. 6.6",
  )


STUDY = protocol.Study(
  name="robustness.joint",
  summary="Can a network be fair and robust at once?",
  config=Config,
  cells=networks.cells,
  run=networks.run,
  derive=_named,
  notes=networks.notes,
  claims=(
    _at_every(
      "setting", "price of robustness",
      "Training against larger pushes costs natural accuracy, at every lambda",
      "natural_error", "defence", rises=True,
    ),
    _at_every(
      "trained_for", "violation",
      "A larger lambda lowers the violation, at every defence",
      "violation", "strength", rises=False,
    ),
    _at_every(
      "setting", "defence",
      "Training against larger pushes lowers the robust error, at every lambda",
      "robust_error", "defence", rises=False,
    ),
    _at_every(
      "trained_for", "price of fairness",
      "A larger lambda raises the robust error, at every defence",
      "robust_error", "strength", rises=True,
    ),
  ),
  figures=(
    Figure(
      "natural",
      "Errors without an attack",
      x="strength",
      y="natural_error",
      color="trained_for",
      mark="line",
      where=PLAIN | ALL,
      x_title="lambda",
      caption="One line per size of the pushes that were trained against.",
    ),
    Figure(
      "violation",
      "Fairness violation",
      x="strength",
      y="violation",
      color="trained_for",
      mark="line",
      where=PLAIN | ALL,
      x_title="lambda",
    ),
    Figure(
      "robust",
      "Robust errors",
      x="epsilon",
      y="robust_error",
      color="trained_for",
      facet="panel",
      mark="line",
      where=ALL | {"attack": networks.ATTACKS},
      caption="The further right, the larger the attack's pushes.",
    ),
  ),
  summaries=(
    Summary(
      "Without an attack",
      by=("defence", "strength"),
      values=("natural_error", "violation", "distance"),
      where=PLAIN | ALL,
    ),
    Summary(
      "Under attack",
      by=("attack", "epsilon", "defence", "strength"),
      values=("boundary_error", "robust_error"),
      where=ALL | {"attack": networks.ATTACKS},
    ),
  ),
)  # fmt: skip
