"""Fairness against robustness: one network, more and more fairness.

Figures 6.3 to 6.5, 6.9 to 6.12 and 6.14 to 6.21 of the thesis.
"""

import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Figure, Summary
from jaxfair.experiments._measures import EVERYONE
from jaxfair.studies.robustness import networks

CROSS_ENTROPY = {"group": EVERYONE, "loss": "cross_entropy"}
RAMP = {"group": EVERYONE, "loss": "ramp"}
PLAIN = {"attack": networks.NO_ATTACK}
FAIR = {"fair": "yes"}


def with_broken_share(table: ex.Table) -> ex.Table:
  """Adds the share of right predictions that an attack breaks.

  A fairer model is wrong more often without any attack, and what is wrong
  cannot be broken: the boundary error alone makes it look robust.
  """
  if "robust_error" not in table:
    return table
  names = ("seed", "loss", "defence", "strength", "group")
  right = 1 - table.join(table.where(**PLAIN), names, clean="natural_error")["clean"]
  share = np.divide(
    table["boundary_error"], right, out=np.full(len(table), np.nan), where=right > 0
  )
  return table.plus(broken_share=share)


def in_each_attack(check: ex.Check) -> ex.Check:
  """The check holds for every attack."""
  return check.in_each("attack").at(attack=ex.but(networks.NO_ATTACK))


def fair_figures(strength: str = "strength of the fairness") -> list[Figure]:
  """Natural error, violation and distance along the strength."""
  pictures = (
    ("natural", "Errors without an attack", "natural_error", "natural error"),
    ("violation", "Fairness violation", "violation", "violation"),
    ("distance", "Distance to the boundary", "distance", "top two margin"),
  )
  return [
    Figure(
      name,
      title,
      x="strength",
      y=column,
      color="loss",
      mark="line",
      where=PLAIN | {"group": EVERYONE},
      x_title=strength,
      y_title=words,
    )
    for name, title, column, words in pictures
  ]


def boundary_figure(name: str, push: str, attacks: tuple[str, ...]) -> Figure:
  """Boundary errors along epsilon, for attacks in one norm."""
  return Figure(
    name,
    f"Right predictions that pushes {push} break",
    x="epsilon",
    y="boundary_error",
    color="setting",
    facet="panel",
    mark="line",
    where={"group": EVERYONE, "attack": attacks},
    caption="One line per strength of the fairness; 0 is the natural model. "
    "What is wrong without a push cannot break: read it beside the natural "
    "errors.",
  )


def _stronger(column: str, words: str, source: str = "") -> Claim:
  """A column rises with the strength: without attacks, or under each of them."""
  trend = ex.trend(column, "strength").at(**CROSS_ENTROPY)
  attacked = column in ("boundary_error", "broken_share", "robust_error")
  return Claim(
    column.replace("_", " "),
    f"The stronger the fairness, {words}",
    in_each_attack(trend > 0) if attacked else (trend > 0).at(**PLAIN),
    source=source,
  )


def _weaker(column: str, words: str, source: str) -> Claim:
  """A column falls with the strength, without attacks."""
  check = (ex.trend(column, "strength") < 0).at(**PLAIN, **CROSS_ENTROPY)
  return Claim(column, f"The stronger the fairness, {words}", check, source)


def _ramp_is_smaller(error: str, source: str) -> Claim:
  lead = ex.difference(f"{error}_error", CROSS_ENTROPY | FAIR, RAMP | FAIR)
  return Claim(
    f"ramp, {error}",
    f"Fair models trained with the ramp loss have smaller {error} errors than with cross-entropy",
    in_each_attack(lead > 0),
    source,
  )


STUDY = ex.Study(
  name="robustness.price",
  summary="Does fairness make a network easier to attack?",
  config=networks.NetworkConfig,
  cells=networks.cells,
  run=networks.run,
  precheck=networks.precheck,
  derive=with_broken_share,
  notes=networks.notes,
  claims=(
    _weaker("violation", "the smaller the violation", "Fig. 6.4, 6.9 to 6.12"),
    _stronger("natural_error", "the larger the natural error", "Fig. 6.4, 6.9 to 6.12"),
    _weaker("distance", "the nearer the images are to the boundary", "Fig. 6.4, 6.9 to 6.11"),
    _stronger("boundary_error", "the larger the boundary error", "Fig. 6.5, 6.12, 6.14 to 6.21"),
    _stronger("broken_share", "the more of the right predictions break"),
    _stronger("robust_error", "the larger the robust error", "Sec. 6.10.3.2"),
    _ramp_is_smaller("boundary", "Fig. 6.5, 6.14 to 6.21"),
    _ramp_is_smaller("robust", "Sec. 6.8"),
    Claim(
      "ramp, violation",
      "They are fairer, too",
      ex.difference("violation", PLAIN | CROSS_ENTROPY | FAIR, PLAIN | RAMP | FAIR) > 0,
      "Sec. 6.10.3.3",
    ),
  ),
  figures=(
    *fair_figures(),
    boundary_figure("boundary_linf", "of every pixel", networks.LINF_ATTACKS),
    boundary_figure("boundary_l2", "of the whole image", networks.L2_ATTACKS),
    Figure(
      "groups",
      "Natural errors of the groups, with more and more fairness",
      "group",
      "natural_error",
      color="setting",
      facet="loss",
      where=PLAIN,
    ),
  ),
  summaries=(
    Summary(
      "Without an attack",
      ("loss", "strength"),
      ("natural_error", "violation", "distance"),
      PLAIN | {"group": EVERYONE},
    ),
    Summary(
      "Under attack",
      ("attack", "epsilon", "loss", "strength"),
      ("boundary_error", "broken_share", "robust_error"),
      {"group": EVERYONE, "attack": networks.ATTACKS},
    ),
  ),
)
