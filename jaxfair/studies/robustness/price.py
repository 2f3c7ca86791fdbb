"""Fairness against robustness: one network, more and more fairness.

Figures 6.3 to 6.5, 6.9 to 6.12 and 6.14 to 6.21 of the thesis.
"""

import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import _claims
from jaxfair.studies.robustness import networks
from jaxfair.studies.robustness.networks import (
  ALL,
  L2_ATTACKS,
  LINF_ATTACKS,
  PLAIN,
  in_each_attack,
  in_each_network,
)

CROSS_ENTROPY, RAMP, FAIR = ALL | {"loss": "cross_entropy"}, ALL | {"loss": "ramp"}, {"fair": "yes"}


def with_broken_share(table: ex.Table) -> ex.Table:
  """Adds the share of right predictions that an attack breaks.

  A fairer model is wrong more often without any attack, and what is wrong cannot be broken: the
  boundary error alone makes it look robust.
  """
  names = ("network", "seed", "loss", "defence", "strength", "group")
  right = 1 - table.join(table.where(**PLAIN), names, clean="natural_error")["clean"]
  share = np.divide(
    table["boundary_error"], right, out=np.full(len(table), np.nan), where=right > 0
  )
  return table.plus(broken_share=share)


READ = (
  "One line per strength of the fairness; 0 is the natural model. What is wrong without a push "
  "cannot break: read it beside the natural errors."
)


def _trend(column: str) -> _claims.Statistic:
  """How a column changes with the strength, with cross-entropy."""
  return ex.trend(column, "strength").at(**CROSS_ENTROPY)


def _ramp_leads(column: str) -> _claims.Statistic:
  """By how much a column of fair models is smaller with the ramp loss than with cross-entropy."""
  return ex.difference(column, CROSS_ENTROPY | FAIR, RAMP | FAIR)


STUDY = networks.study(
  name="robustness.price",
  summary="Does fairness make a network easier to attack?",
  config=networks.NetworkConfig,
  derive=with_broken_share,
  claims={
    "violation: The stronger the fairness, the smaller the violation "
    "[Fig. 6.4; Fig. 6.9; Fig. 6.10; Fig. 6.11; Fig. 6.12]": in_each_network(
      _trend("violation") < 0
    ).at(**PLAIN),
    "natural error: The stronger the fairness, the larger the natural error "
    "[Fig. 6.4; Fig. 6.9; Fig. 6.10; Fig. 6.11; Fig. 6.12]": in_each_network(
      _trend("natural_error") > 0
    ).at(**PLAIN),
    "distance: The stronger the fairness, the nearer the images are to the boundary "
    "[Fig. 6.4, distance; Fig. 6.9; Fig. 6.10; Fig. 6.11]": in_each_network(
      _trend("distance") < 0
    ).at(**PLAIN),
    "groups: With lambda 1 the violation is smaller, and the images are nearer to the boundary, "
    "than without fairness [Fig. 6.3]": in_each_network(
      _claims.every(
        {name: _trend(name) < 0 for name in ("violation", "distance")}, strength=(0.0, 1.0), **PLAIN
      )
    ),
    "boundary error: The stronger the fairness, the larger the boundary error "
    "[Fig. 6.5; Fig. 6.12; Fig. 6.14; Fig. 6.15; Fig. 6.16; Fig. 6.17; Fig. 6.18; Fig. 6.19; "
    "Fig. 6.20; Fig. 6.21]": in_each_attack(_trend("boundary_error") > 0),
    "broken share: The stronger the fairness, the more of the right predictions "
    "break": in_each_attack(_trend("broken_share") > 0),
    "robust error: The stronger the fairness, the larger the robust error "
    "[Fig. 6.12]": in_each_attack(_trend("robust_error") > 0),
    "ramp, boundary: Fair models trained with the ramp loss have smaller boundary errors than with "
    "cross-entropy [Sec. 6.10.3.3]": in_each_attack(_ramp_leads("boundary_error") > 0),
    "ramp, robust: Fair models trained with the ramp loss have smaller robust errors than with "
    "cross-entropy [Fig. 6.5, ramp; Sec. 6.10.3.3]": in_each_attack(
      _ramp_leads("robust_error") > 0
    ),
    "ramp, violation: Fair models trained with the ramp loss have smaller violations than with "
    "cross-entropy [Sec. 6.10.3.3]": in_each_network(_ramp_leads("violation") > 0).at(**PLAIN),
  },
  figures=(
    *(
      ex.lines(told, f"{y} ~ strength, loss", where=PLAIN | ALL)
      for told, y in (
        ("natural: Errors without an attack", "natural_error"),
        ("violation: Fairness violation", "violation"),
        ("distance: Distance to the boundary", "distance"),
      )
    ),
    *(
      ex.lines(told, "boundary_error ~ epsilon, setting | panel", READ, where=ALL | {"attack": own})
      for told, own in (
        ("boundary_linf: Right predictions that pushes of every pixel break", LINF_ATTACKS),
        ("boundary_l2: Right predictions that pushes of the whole image break", L2_ATTACKS),
      )
    ),
    ex.bars(
      "groups: Natural errors of the groups, with more and more fairness",
      "natural_error ~ group, setting | loss",
      where=PLAIN,
    ),
  ),
  titles={"strength": "strength of the fairness", "distance": "top two margin"},
  summaries=(
    ex.summary(
      "Without an attack",
      "natural_error, violation, distance ~ network, loss, strength",
      PLAIN | ALL,
    ),
    ex.summary(
      "Under attack",
      "boundary_error, broken_share, robust_error ~ network, attack, epsilon, loss, strength",
      ALL | {"attack": networks.ATTACKS},
    ),
  ),
)
