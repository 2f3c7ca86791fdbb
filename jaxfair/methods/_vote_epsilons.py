"""Three epsilons of the same votes: for any votes, sanitized, and not publishable."""

import functools
import math
from typing import Any, NamedTuple

from jaxfair import accounting, pate
from jaxfair.methods._method import Plan
from jaxfair.methods._teachers import NonPrivateVotes
from jaxfair.types import Key


class NonPrivateEpsilons(NamedTuple):
  """What the answers of one study cost, told in three ways.

  Attributes:
    any_votes: holds for every data set: the one to publish where no figure is drawn.
    sanitized: a figure for these votes with noise, its own price included; NaN where the plan says
      beforehand that no figure pays.
    not_publishable: computed from the votes; never for release.
  """

  any_votes: float
  sanitized: float
  not_publishable: float


def vote_epsilons(plan: Plan, votes: NonPrivateVotes, *, key: Key) -> NonPrivateEpsilons:
  """The three epsilons of the answers of a fit, at the delta of its budget.

  Args:
    plan: of `pate` or of a method with a test of consensus.
    votes: trace of the fit.
    key: used once, for the noise of the sanitized figure.

  Privacy:
    For a study of what data-dependent accounting would gain: all three are beside one another, so
    none is released. To publish a sanitized figure, decide so before the votes are read and charge
    `accounting.sanitizing_event`; see docs/pate_accounting.md.
  """
  assert plan.budget is not None
  assert plan.guarantee is not None
  rule, delta = plan.config.rule, plan.budget.delta
  noise: dict[str, Any] = {"sigma": getattr(rule, "sigma", None) or rule.sigma_answer}
  if isinstance(rule, pate.ConfidentGnMax):
    noise |= {"threshold": rule.threshold, "sigma_threshold": rule.sigma_threshold}
  sanitizing = _sanitizing(
    num_queries=plan.config.queries,
    num_teachers=plan.settings.num_teachers,
    num_classes=plan.sizes.classes,
    delta=delta,
    **noise,
  )
  own = accounting.pate_diagnosis(votes.counts, delta=delta, discrete=True, **noise)
  figure = math.nan
  if sanitizing is not None:
    shown = accounting.sanitized_epsilon(
      votes.counts, delta=delta, plan=sanitizing, key=key, discrete=True, **noise
    )
    figure = shown.epsilon
  any_votes = plan.guarantee.guarantee.epsilon
  return NonPrivateEpsilons(any_votes, figure, float(own.not_for_release))


_sanitizing = functools.cache(accounting.plan_sanitizing)  # of public numbers, for all seeds
