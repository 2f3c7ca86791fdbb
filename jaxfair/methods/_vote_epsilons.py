"""Three epsilons of the same votes: for any votes, sanitized, and not publishable."""

import functools
import math

from jaxfair import accounting
from jaxfair.methods._method import Plan
from jaxfair.methods._sanitized import NonPrivateEpsilons, noise_of
from jaxfair.types import Key, VotesLike


def vote_epsilons(
  plan: Plan, counts: VotesLike, *, key: Key, compare: bool = False
) -> NonPrivateEpsilons:
  """The three epsilons of the answers of a plan, at the delta of its budget.

  Args:
    plan: of `pate` or of a method with a test of consensus.
    counts: [queries, C] votes.
    key: used once, for the noise of the sanitized figure.
    compare: draws a figure also where the plan has none, by a plan of its own, for a study of what
      data-dependent accounting would gain. Its price is in no guarantee then.

  Privacy:
    The figure of a plan with `sanitized_epsilon` is charged with the plan and may be published; it
    is never above the guarantee for any votes. All three beside one another may not.
  """
  assert plan.budget is not None
  assert plan.guarantee is not None
  delta, noise = plan.budget.delta, noise_of(plan.config.rule)
  sanitizing = plan.config.sanitizing
  if sanitizing is None and compare:
    sanitizing = _sanitizing(
      num_queries=plan.config.queries,
      num_teachers=plan.settings.num_teachers,
      num_classes=plan.sizes.classes,
      delta=delta,
      **noise,
    )
  own = accounting.pate_diagnosis(counts, delta=delta, discrete=True, **noise)
  any_votes, figure = plan.guarantee.guarantee.epsilon, math.nan
  if sanitizing is not None:
    shown = accounting.sanitized_epsilon(
      counts, delta=delta, plan=sanitizing, key=key, discrete=True, **noise
    )
    figure = shown.epsilon if compare else min(shown.epsilon, any_votes)
  return NonPrivateEpsilons(any_votes, figure, float(own.not_for_release))


_sanitizing = functools.cache(accounting.plan_sanitizing)  # of public numbers, for all seeds
