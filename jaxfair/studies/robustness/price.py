"""Fairness against robustness: one network, more and more fairness.

Figures 6.3 to 6.5, 6.9 to 6.12 and 6.14 to 6.21 of the thesis.
"""

import dataclasses

import numpy as np

from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import claims, protocol
from jaxfair.studies.claims import Check
from jaxfair.studies.protocol import Claim, Figure, Finding, Summary
from jaxfair.studies.robustness import networks

CROSS_ENTROPY = {"group": EVERYONE, "loss": "cross_entropy"}
RAMP = {"group": EVERYONE, "loss": "ramp"}
PLAIN = {"attack": networks.NO_ATTACK}
FAIR = {"fair": "yes"}


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings; see `networks.NetworkConfig`."""


def with_broken_share(table: Table) -> Table:
  """Adds the share of right predictions that an attack breaks.

  A fairer model is wrong more often without any attack, and what is wrong
  cannot be broken: the boundary error alone makes it look robust.
  """
  if "robust_error" not in table:
    return table
  names = ("seed", "loss", "defence", "strength", "group")
  clean = table.where(**PLAIN)
  keys = list(zip(*(clean[name] for name in names), strict=True))
  known = dict(zip(keys, clean["natural_error"], strict=True))
  own = zip(*(table[name] for name in names), strict=True)
  right = 1 - np.array([known[key] for key in own])
  share = np.divide(
    table["boundary_error"], right, out=np.full(len(table), np.nan),
    where=right > 0,
  )  # fmt: skip
  return table.plus(broken_share=share)


def in_each_attack(check: Check) -> Check:
  """The check holds for every attack."""

  def under(table: Table) -> Finding:
    if "attack" not in table:
      return Finding("", why="the table has no column attack")
    names = tuple(n for n in table.unique("attack") if n != networks.NO_ATTACK)
    return claims.in_each("attack", check)(table.where(attack=names))

  return under


def fair_figures(strength: str = "strength of the fairness") -> list[Figure]:
  """Natural error, violation and distance along the strength."""
  pictures = (
    ("natural", "Errors without an attack", "natural_error", "natural error"),
    ("violation", "Fairness violation", "violation", "violation"),
    ("distance", "Distance to the boundary", "distance", "top two margin"),
  )
  return [
    Figure(
      name, title, x="strength", y=column, color="loss", mark="line",
      where=PLAIN | {"group": EVERYONE}, x_title=strength, y_title=words,
    )
    for name, title, column, words in pictures
  ]  # fmt: skip


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


def _stronger(
  column: str, words: str, *, rises: bool = True, source: str = ""
) -> Claim:
  """A column along the strength: without attacks, or under each of them."""
  attacked = column in _UNDER_ATTACK
  where = CROSS_ENTROPY if attacked else PLAIN | CROSS_ENTROPY
  check = claims.trend(column, "strength", rises=rises, where=where)
  return Claim(
    column.replace("_", " "),
    f"The stronger the fairness, {words}",
    in_each_attack(check) if attacked else check,
    source=source,
  )


_UNDER_ATTACK = ("boundary_error", "broken_share", "robust_error")


def _ramp_is_smaller(error: str, source: str) -> Claim:
  return Claim(
    f"ramp, {error}",
    f"Fair models trained with the ramp loss have smaller {error} errors than "
    "with cross-entropy",
    in_each_attack(
      claims.difference_above(
        f"{error}_error", first=CROSS_ENTROPY | FAIR, second=RAMP | FAIR
      )
    ),
    source=source,
  )


STUDY = protocol.Study(
  name="robustness.price",
  summary="Does fairness make a network easier to attack?",
  config=Config,
  cells=networks.cells,
  run=networks.run,
  derive=with_broken_share,
  notes=networks.notes,
  claims=(
    _stronger(
      "violation", "the smaller the violation", rises=False,
      source="Fig. 6.4, 6.9 to 6.12",
    ),
    _stronger(
      "natural_error", "the larger the natural error",
      source="Fig. 6.4, 6.9 to 6.12",
    ),
    _stronger(
      "distance", "the nearer the images are to the boundary", rises=False,
      source="Fig. 6.4, 6.9 to 6.11",
    ),
    _stronger(
      "boundary_error", "the larger the boundary error",
      source="Fig. 6.5, 6.12, 6.14 to 6.21",
    ),
    _stronger("broken_share", "the more of the right predictions break"),
    _stronger(
      "robust_error", "the larger the robust error", source="Sec. 6.10.3.2"
    ),
    _ramp_is_smaller("boundary", "Fig. 6.5, 6.14 to 6.21"),
    _ramp_is_smaller("robust", "Sec. 6.8"),
    Claim(
      "ramp, violation",
      "They are fairer, too",
      claims.difference_above(
        "violation",
        first=PLAIN | CROSS_ENTROPY | FAIR,
        second=PLAIN | RAMP | FAIR,
      ),
      source="Sec. 6.10.3.3",
    ),
  ),
  figures=(
    *fair_figures(),
    boundary_figure("boundary_linf", "of every pixel", networks.LINF_ATTACKS),
    boundary_figure("boundary_l2", "of the whole image", networks.L2_ATTACKS),
    Figure(
      "groups",
      "Natural errors of the groups, with more and more fairness",
      x="group",
      y="natural_error",
      color="setting",
      facet="loss",
      where=PLAIN,
    ),
  ),
  summaries=(
    Summary(
      "Without an attack",
      by=("loss", "strength"),
      values=("natural_error", "violation", "distance"),
      where=PLAIN | {"group": EVERYONE},
    ),
    Summary(
      "Under attack",
      by=("attack", "epsilon", "loss", "strength"),
      values=("boundary_error", "broken_share", "robust_error"),
      where={"group": EVERYONE, "attack": networks.ATTACKS},
    ),
  ),
)  # fmt: skip
