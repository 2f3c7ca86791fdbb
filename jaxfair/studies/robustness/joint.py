"""Fairness and PGD training together: Figures 6.6 and 6.7 of the thesis."""

from jaxfair import experiments as ex
from jaxfair.experiments import _claims
from jaxfair.studies.robustness import networks
from jaxfair.studies.robustness.networks import ALL, PLAIN, in_each_attack, in_each_network


class Config(networks.NetworkConfig):
  """Settings; see `networks.NetworkConfig`."""

  defences: ex.Sweep[ex.NonNegative] = (0.0, 0.01, 0.02)
  attacks: ex.Sweep[networks.AttackName] = (networks.PGD_LINF,)
  losses: ex.Sweep[networks.LossName] = ("cross_entropy",)
  strengths: ex.Sweep[ex.NonNegative] = (0.0, 0.5, 1.0)


def _trend(column: str, along: str) -> _claims.Statistic:
  return ex.trend(column, along).at(**ALL)


STUDY = networks.study(
  name="robustness.joint",
  summary="Can a network be fair and robust at once?",
  config=Config,
  derive=lambda table: table.plus(trained_for="{defence:g}", panel="lambda {setting}"),
  claims={
    "price of robustness: Training against larger pushes costs natural accuracy, at every lambda "
    "[Fig. 6.6]": in_each_network(
      (_trend("natural_error", "defence") > 0).at(**PLAIN).in_each("setting")
    ),
    "violation: A larger lambda lowers the violation, at every defence [Fig. 6.6]": in_each_network(
      (_trend("violation", "strength") < 0).at(**PLAIN).in_each("trained_for")
    ),
    "defence: Training against larger pushes lowers the robust error, at every lambda "
    "[Fig. 6.7]": in_each_attack((_trend("robust_error", "defence") < 0).in_each("setting")),
    "price of fairness: A larger lambda raises the robust error, at every defence "
    "[Fig. 6.7, fairness]": in_each_attack(
      (_trend("robust_error", "strength") > 0).in_each("trained_for")
    ),
  },
  figures=(
    ex.lines(
      "natural: Errors without an attack",
      "natural_error ~ strength, trained_for",
      "One line per size of the pushes that were trained against.",
      where=PLAIN | ALL,
    ),
    ex.lines(
      "violation: Fairness violation", "violation ~ strength, trained_for", where=PLAIN | ALL
    ),
    ex.lines(
      "robust: Robust errors",
      "robust_error ~ epsilon, trained_for | panel",
      "The further right, the larger the attack's pushes.",
      where=ALL | {"attack": networks.ATTACKS},
    ),
  ),
  titles={"strength": "lambda"},
  summaries=(
    ex.summary(
      "Without an attack", "natural_error, violation, distance ~ defence, strength", PLAIN | ALL
    ),
    ex.summary(
      "Under attack",
      "boundary_error, robust_error ~ attack, epsilon, defence, strength",
      ALL | {"attack": networks.ATTACKS},
    ),
  ),
)
