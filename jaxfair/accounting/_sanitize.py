"""A data-dependent epsilon that can be published.

The cost R of the votes at one fixed order and the logarithm of its smooth
sensitivity S are both released with Gaussian noise,

  R + sigma_cost S N(0, 1),    ln S + sigma_scale beta N(0, 1),

and an upper bound on R follows that holds with a stated confidence. Nothing
else that depends on the votes leaves this module.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks
from jaxfair.accounting import _smooth_sensitivity as smooth
from jaxfair.accounting import _votes
from jaxfair.accounting._composition import composed_guarantee
from jaxfair.accounting._guarantee import PrivacyGuarantee, Relation, delta_in_range, round_up
from jaxfair.accounting._margin_costs import Ladder, margin_ladder, margin_rungs, threshold_ladder
from jaxfair.accounting._pate_cost import check_threshold, pate_events
from jaxfair.accounting._rdp import rdp_to_epsilon
from jaxfair.accounting._sanitizing_plan import (
  LARGEST,
  SanitizingPlan,
  log_margin,
  release_rdp,
  sanitizing_event,
)


@dataclass(frozen=True)
class SanitizedEpsilon:
  """A data-dependent epsilon with noise: it may be published.

  Attributes:
    epsilon: at least the data-dependent epsilon of all labels and of this
      figure itself, with the plan's confidence; never above `guarantee`.
    delta: the delta it goes with.
    plan: the parameters, fixed without looking at the votes.
    num_queries: number of queries whose votes may have been read.
    max_answers: cap on the labels; every query is charged for one if None.
    guarantee: what holds for every possible data set and whatever was
      answered, publishing this figure included. It is above that without the
      figure, which does not hold any more once the figure is drawn.
  """

  epsilon: float
  delta: float
  plan: SanitizingPlan
  num_queries: int
  max_answers: int | None
  guarantee: PrivacyGuarantee

  def __str__(self) -> str:
    plan = self.plan
    return (
      f"epsilon {round_up(self.epsilon)}, delta {round_up(self.delta)} at "
      f"these votes, sanitized (confidence {plan.confidence:g}, order "
      f"{plan.order:g}, beta {plan.beta:.4g}, sigma_cost "
      f"{plan.sigma_cost:.4g}, sigma_scale {plan.sigma_scale:.4g})"
    )


def sanitized_epsilon(
  counts: ArrayLike,
  *,
  sigma: float,
  delta: float,
  plan: SanitizingPlan,
  key: Any,
  threshold: float | None = None,
  sigma_threshold: float | None = None,
  max_answers: int | None = None,
  discrete: bool = False,
) -> SanitizedEpsilon:
  """Publishes the data-dependent cost of labels, with noise that has a small cost of its own.

  Args:
    counts: [n, classes] votes on every query that may be asked, also on those
      that a cap kept from being asked.
    sigma: standard deviation of the noise on each count.
    delta: in (0, 1).
    plan: from `plan_sanitizing`, or any other choice made from public numbers.
      Where that gives None, publish the epsilon for any votes.
    key: used once; `privacy.os_key()` for a release.
    threshold: T of Confident-GNMax; None where every query is answered.
    sigma_threshold: standard deviation of the test's noise.
    max_answers: cap on the labels that was fixed beforehand, as in
      `pate_events`. None charges a label for every query.
    discrete: whether the noise on the votes is discrete Gaussian; the figure
      holds for continuous noise, too.

  Returns:
    The figure, rounded up to four digits.

  Privacy:
    Numbers of queries, teachers and classes, all noises, the threshold and
    the cap are public. The divergence of the labels and of this release
    from those of any neighbor is bounded at these votes and in this
    direction; `guarantee` holds for all votes in both directions. Neither
    depends on which queries passed the test: that is one outcome of many. A
    label is charged for every query, or for the `max_answers` costliest,
    which no sequence of answers exceeds. Calling it again is another release:
    charge `sanitizing_event(plan)` each time.

  Reference:
    Papernot et al. (2018), appendix B, with the scale released as well.
  """
  from jaxfair.privacy import noise  # JAX, which no other accounting needs

  checks.require(
    isinstance(plan, SanitizingPlan),
    "plan is missing; where plan_sanitizing gives None, publish the epsilon for any votes instead",
  )
  delta_in_range(delta)
  checks.one_key("key", key)
  sigma = _votes.noise_sigma(sigma)
  table = _votes.vote_table(counts)
  check_threshold(threshold, sigma_threshold)
  events = pate_events(
    sigma=sigma, num_queries=len(table), sigma_threshold=sigma_threshold, max_answers=max_answers
  )
  parts = []
  if len(table):
    labels = _labels(table, sigma, plan.order, discrete)
    most = len(table) if max_answers is None else max_answers
    parts.append(labels._replace(most=most))
  if threshold is not None and len(table):
    test = _votes.noise_sigma(sigma_threshold, name="sigma_threshold")
    parts.append(_tests(table, threshold, test, plan.order, discrete))
  draws = np.asarray(noise.gaussian(np.zeros(2, np.float32), sigma=1.0, key=key), np.float64)
  cost = _upper_bound(parts, draws, plan) + release_rdp(plan, plan.order)
  epsilon = rdp_to_epsilon([cost], [plan.order], delta=delta)
  guarantee = composed_guarantee(
    [*events, sanitizing_event(plan)], delta=delta, relation=Relation.REPLACE_ONE
  )
  return SanitizedEpsilon(
    epsilon=round_up(min(epsilon, guarantee.epsilon)),
    delta=delta,
    plan=plan,
    num_queries=len(table),
    max_answers=max_answers,
    guarantee=guarantee,
  )


def _labels(table: np.ndarray, sigma: float, order: float, discrete: bool) -> smooth.Part:
  ladder = margin_ladder(
    num_teachers=int(table[0].sum()), num_classes=table.shape[1], sigma=sigma, order=order
  )
  return _part(ladder, margin_rungs(table, sigma=sigma, discrete=discrete))


def _tests(
  table: np.ndarray, threshold: float, sigma: float, order: float, discrete: bool
) -> smooth.Part:
  checks.number("threshold", threshold)
  ladder = threshold_ladder(
    num_teachers=int(table[0].sum()),
    threshold=threshold,
    sigma=sigma,
    order=order,
    discrete=discrete,
  )
  return _part(ladder, table.max(axis=1))


def _part(ladder: Ladder, rungs: np.ndarray) -> smooth.Part:
  occupied, counts = np.unique(rungs, return_counts=True)
  return smooth.Part(ladder, occupied, counts.astype(np.float64))


def _upper_bound(parts: list[smooth.Part], draws: np.ndarray, plan: SanitizingPlan) -> float:
  """A bound on the cost that fails with probability 1 - confidence at most."""
  if not parts:
    return 0.0
  cost = sum(part.cost for part in parts)
  totals, distances = smooth.totals_by_distance(parts)
  log_scale = smooth.log_smooth_sensitivity(totals, distances, beta=plan.beta)
  if log_scale == -math.inf:  # all votes cost the same: it is public, and added up without them
    return float(sum(part.ladder.costs[0] * min(part.most, sum(part.weights)) for part in parts))
  step = plan.sigma_scale * plan.beta
  log_bound = log_scale + step * draws[1] + log_margin(plan.confidence, step)
  noisy_cost = cost + plan.sigma_cost * math.exp(log_scale) * draws[0]
  return max(0.0, noisy_cost + plan.sigma_cost * math.exp(min(log_bound, LARGEST)))
