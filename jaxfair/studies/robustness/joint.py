"""Fairness and PGD training together: Figures 6.6 and 6.7 of the thesis."""

from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Figure, Summary
from jaxfair.experiments._measures import EVERYONE
from jaxfair.studies.robustness import networks
from jaxfair.studies.robustness.price import PLAIN, in_each_attack

ALL = {"group": EVERYONE}


class Config(networks.NetworkConfig):
  """Settings; see `networks.NetworkConfig`."""

  defences: ex.Sweep[ex.NonNegative] = (0.0, 0.01, 0.02)
  attacks: ex.Sweep[networks.AttackName] = (networks.PGD_LINF,)
  losses: ex.Sweep[networks.LossName] = ("cross_entropy",)
  strengths: ex.Sweep[ex.NonNegative] = (0.0, 0.5, 1.0)


def _named(table: ex.Table) -> ex.Table:
  if "defence" not in table:
    return table
  return table.plus(
    trained_for=[f"{value:g}" for value in table["defence"]],
    panel=[f"lambda {name}" for name in table["setting"]],
  )


def _clean(column: str, along: str) -> ex.Statistic:
  return ex.trend(column, along).at(**PLAIN, **ALL)


def _attacked(along: str) -> ex.Statistic:
  return ex.trend("robust_error", along).at(**ALL)


STUDY = ex.Study(
  name="robustness.joint",
  summary="Can a network be fair and robust at once?",
  config=Config,
  cells=networks.cells,
  run=networks.run,
  precheck=networks.precheck,
  derive=_named,
  notes=networks.notes,
  claims=(
    Claim(
      "price of robustness",
      "Training against larger pushes costs natural accuracy, at every lambda",
      (_clean("natural_error", "defence") > 0).in_each("setting"),
      "Fig. 6.6",
    ),
    Claim(
      "violation",
      "A larger lambda lowers the violation, at every defence",
      (_clean("violation", "strength") < 0).in_each("trained_for"),
      "Fig. 6.6",
    ),
    Claim(
      "defence",
      "Training against larger pushes lowers the robust error, at every lambda",
      in_each_attack((_attacked("defence") < 0).in_each("setting")),
      "Fig. 6.7",
    ),
    Claim(
      "price of fairness",
      "A larger lambda raises the robust error, at every defence",
      in_each_attack((_attacked("strength") > 0).in_each("trained_for")),
      "Fig. 6.7",
    ),
  ),
  figures=(
    Figure(
      "natural",
      "Errors without an attack",
      "strength",
      "natural_error",
      "line",
      "trained_for",
      where=PLAIN | ALL,
      x_title="lambda",
      caption="One line per size of the pushes that were trained against.",
    ),
    Figure(
      "violation",
      "Fairness violation",
      "strength",
      "violation",
      "line",
      "trained_for",
      where=PLAIN | ALL,
      x_title="lambda",
    ),
    Figure(
      "robust",
      "Robust errors",
      "epsilon",
      "robust_error",
      "line",
      "trained_for",
      facet="panel",
      where=ALL | {"attack": networks.ATTACKS},
      caption="The further right, the larger the attack's pushes.",
    ),
  ),
  summaries=(
    Summary(
      "Without an attack",
      ("defence", "strength"),
      ("natural_error", "violation", "distance"),
      PLAIN | ALL,
    ),
    Summary(
      "Under attack",
      ("attack", "epsilon", "defence", "strength"),
      ("boundary_error", "robust_error"),
      ALL | {"attack": networks.ATTACKS},
    ),
  ),
)
