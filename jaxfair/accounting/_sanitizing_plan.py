"""How to sanitize a data-dependent cost, chosen from public numbers alone."""

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting import _smooth_sensitivity as smooth
from jaxfair.accounting import _votes
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._guarantee import Relation, delta_in_range
from jaxfair.accounting._margin_costs import margin_ladder, margin_rungs, threshold_ladder
from jaxfair.accounting._pate_cost import check_threshold, pate_events
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon

# What the planner tries: orders, shares of the largest beta, and noises.
ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
BETA_SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
SIGMA_COSTS = np.geomspace(1, 1000, 31)[:, None]
SIGMA_SCALES = np.geomspace(1, 1000, 31)
SCENARIO = 64  # imagined queries
LARGEST = 600.0  # of an exponent: beyond it the bound says nothing anyway
# Steps at which the planner knows `log_margin`, and how finely.
STEPS = np.geomspace(1e-5, 1000, 64)
COARSE, FINE = 500, 5000


@dataclass(frozen=True)
class SanitizingPlan:
  """How a cost will be sanitized; to be fixed before looking at the votes.

  Attributes:
    order: a, the Renyi order at which the cost is released.
    beta: of the smooth sensitivity; order < 1 / (1 - e^(-2 beta)).
    sigma_cost: noise on the cost, over its smooth sensitivity (sigma_ss).
    sigma_scale: noise on the log of the smooth sensitivity, over beta.
    confidence: probability with which the published figure is a bound.
    expected: the figure for the votes that the planner assumed; None for a hand-written plan.
  """

  order: float
  beta: float
  sigma_cost: float
  sigma_scale: float
  confidence: float = 0.999
  expected: float | None = None

  def __post_init__(self) -> None:
    checks.number("order", self.order, low=1.0, open_low=True)
    checks.positive("beta", self.beta)
    checks.positive("sigma_cost", self.sigma_cost)
    checks.positive("sigma_scale", self.sigma_scale)
    _check_confidence(self.confidence)
    limit = max_beta(self.order)
    checks.require(
      self.beta < limit,
      f"beta={self.beta:g} is too large for order={self.order:g}: noise "
      f"scaled by a smooth sensitivity has no Renyi divergence there; use a "
      f"beta below {limit:.4g}",
    )


def plan_sanitizing(
  *,
  num_queries: int,
  num_teachers: int,
  num_classes: int,
  sigma: float,
  delta: float,
  threshold: float | None = None,
  sigma_threshold: float | None = None,
  max_answers: int | None = None,
  consensus: float = 0.9,
  confidence: float = 0.999,
  max_overhead: float = 0.1,
) -> SanitizingPlan | None:
  """Plans a sanitized epsilon: the plan with the smallest epsilon for votes assumed beforehand.

  Args:
    num_queries: number of queries whose votes may be read.
    num_teachers: k.
    num_classes: number of classes.
    sigma: standard deviation of the noise on each count.
    delta: in (0, 1).
    threshold: T of Confident-GNMax; None where every query is answered.
    sigma_threshold: standard deviation of the test's noise.
    max_answers: cap on the labels, as in `pate_events`.
    consensus: mean share of teachers that agree, guessed from public data. A wrong guess costs
      utility, not privacy.
    confidence: probability with which the published figure is a bound.
    max_overhead: share by which the figure's cost may raise the epsilon for
      any votes. It bounds what a wrong guess costs: the figure is never above
      (1 + max_overhead) times the epsilon for any votes without it.

  Returns:
    None where even for these votes the figure would not be below the epsilon
    for any votes without it: then publish that one, and no figure.

  Privacy:
    No vote is read, and none may be: tuning the guess until the figure
    looks good would be another release. So would drawing a figure and then
    deciding which epsilon to publish: with a plan, every epsilon of these labels
    includes the cost of the figure.
  """
  checks.integer("num_queries", num_queries, low=1)
  checks.integer("num_teachers", num_teachers, low=1)
  checks.integer("num_classes", num_classes, low=2)
  checks.number(
    "consensus", consensus, low=1 / num_classes, high=1.0, remedy="it is a share of teachers"
  )
  sigma = _votes.noise_sigma(sigma)
  delta_in_range(delta)
  check_threshold(threshold, sigma_threshold)
  events = pate_events(
    sigma=sigma, num_queries=num_queries, sigma_threshold=sigma_threshold, max_answers=max_answers
  )
  checks.positive("max_overhead", max_overhead)
  _check_confidence(confidence)

  def any_votes(*more: ev.Event) -> float:
    return composed_epsilon([*events, *more], delta=delta, relation=Relation.REPLACE_ONE)

  alone = any_votes()
  limit = _Limit(_zcdp(events), (1 + max_overhead) * alone)
  imagined = _imagined_votes(num_teachers, num_classes, consensus)
  each = np.full(SCENARIO, num_queries / SCENARIO)
  most = math.inf if max_answers is None else max_answers
  found: list[tuple[float, SanitizingPlan]] = []
  for order in ORDERS:
    ladder = margin_ladder(
      num_teachers=num_teachers, num_classes=num_classes, sigma=sigma, order=order
    )
    rungs = margin_rungs(imagined, sigma=sigma)
    parts = [smooth.Part(ladder, rungs, each, most)]
    if threshold is not None and sigma_threshold is not None:
      ladder = threshold_ladder(
        num_teachers=num_teachers, threshold=threshold, sigma=sigma_threshold, order=order
      )
      parts.append(smooth.Part(ladder, imagined.max(axis=1), each))
    found += _best_plans(parts, order, delta, confidence, limit)
  for epsilon, plan in sorted(found, key=lambda pair: pair[0]):
    if epsilon >= alone:
      break
    if any_votes(sanitizing_event(plan)) <= limit.epsilon:
      return plan
  return None


def _zcdp(events: Iterable[Any]) -> float:
  """rho of repeated zCDP events."""
  return float(sum(one.count * one.event.rho for one in events))


def _check_confidence(confidence: float) -> None:
  checks.number("confidence", confidence, low=0.5, high=1.0, open_low=True, open_high=True)


@functools.cache
def log_margin(confidence: float, step: float) -> float:
  """ln m: cost + sigma_cost S (x + m e^(step y)) is a bound, for normal draws x and y.

  It fails to be one if x < -m e^(step y), whatever the cost and S are. So m is the least number,
  rounded up, with

    E_y Phi(-m e^(step y)) <= 1 - confidence.

  The expectation is bounded from above by its values at the left ends of cells of y, since it falls
  with y. A quantile z of (1 - confidence) / 2 for each draw, m = z e^(step z), is an upper bound of
  m, by the union of both failures.

  Args:
    confidence: probability with which the bound holds.
    step: sigma_scale beta, the noise on ln S.
  """
  return float(_log_margins(confidence, np.array([step]), FINE)[0])


def _log_margins(confidence: float, steps: np.ndarray, cells: int) -> np.ndarray:
  ends = np.linspace(-9.0, 9.0, cells + 1)
  inside = special.ndtr(ends)
  masses = np.diff(np.concatenate([inside[:-1], [1.0]]))
  z = -special.ndtri((1 - confidence) / 2)
  low, high = np.full(len(steps), -LARGEST), math.log(z) + steps * z
  low = np.minimum(low, high)
  for _ in range(45):
    middle = (low + high) / 2
    exponents = np.clip(middle[:, None] + steps[:, None] * ends[:-1], -LARGEST, LARGEST)
    fails = np.sum(special.ndtr(-np.exp(exponents)) * masses, axis=1) + inside[0]
    holds = fails <= 1 - confidence
    low, high = np.where(holds, low, middle), np.where(holds, middle, high)
  return np.asarray(high)


@functools.cache
def _known_margins(confidence: float) -> np.ndarray:
  return _log_margins(confidence, STEPS, COARSE)


def sanitizing_event(plan: SanitizingPlan) -> ev.Rdp:
  """What publishing one sanitized figure costs, for a ledger."""
  orders = sorted({*DEFAULT_ORDERS, plan.order})
  listed = tuple(a for a in orders if plan.beta < max_beta(a))
  return ev.Rdp(listed, tuple(release_rdp(plan, a) for a in listed))


def release_rdp(plan: SanitizingPlan, order: float) -> float:
  """The divergence of order a of releasing cost and scale with noise.

  With r = e^(-2 beta) and v = 1 - a (1 - r) > 0,

    a r / (2 sigma_cost^2 v) - (a beta + ln(v) / 2) / (a - 1)
      + a / (2 sigma_scale^2)

  The first line is the divergence between N(0, sigma^2 S^2) and
  N(S', sigma^2 S'^2) for S' = e^(-beta) S, the worst case of neighbors: both
  of its terms fall while S'/S rises to 1, and beyond 1 the first keeps
  falling and the second stays below its value at e^(-beta).
  """
  checks.require(plan.beta < max_beta(order), f"order={order:g} is too large for this plan's beta")
  return float(_release_rdp(order, plan.beta, plan.sigma_cost, plan.sigma_scale))


def max_beta(order: float) -> float:
  """The beta at which noise scaled by S has no divergence of this order."""
  return -0.5 * math.log1p(-1 / order)


def _imagined_votes(teachers: int, classes: int, consensus: float) -> np.ndarray:
  """Votes from unanimous to contested, with one rival class."""
  spread = -np.log1p(-(np.arange(SCENARIO) + 0.5) / SCENARIO)
  share = np.maximum(1 - (1 - consensus) * spread, 0.5)
  first = np.round(share * teachers).astype(np.int64)
  table = np.zeros((SCENARIO, classes), np.int64)
  table[:, 0] = first
  table[:, 1] = teachers - first
  return table


def _release_rdp(order: float, beta: float, sigma_cost: Any, sigma_scale: Any) -> Any:
  left = 1 + order * math.expm1(-2 * beta)
  mean = order * math.exp(-2 * beta) / (2 * sigma_cost**2 * left)
  spread = (order * beta + 0.5 * math.log(left)) / (order - 1)
  return mean - spread + order / (2 * sigma_scale**2)


class _Limit(NamedTuple):
  """A limit on the joint cost of the figure and labels of this rho in zCDP, for any votes."""

  rho: float
  epsilon: float

  def holds(self, beta: float, delta: float) -> Any:
    """[costs, scales] whether the noises keep to the limit, by the planner's orders."""
    orders = [a for a in ORDERS if beta < max_beta(a)]
    rdp = [a * self.rho + _release_rdp(a, beta, SIGMA_COSTS, SIGMA_SCALES) for a in orders]
    return rdp_to_epsilon(np.stack(rdp, axis=-1), orders, delta=delta) <= self.epsilon


def _best_plans(
  parts: list[smooth.Part], order: float, delta: float, confidence: float, limit: _Limit
) -> list[tuple[float, SanitizingPlan]]:
  totals, distances = smooth.totals_by_distance(parts)
  cost = sum(part.cost for part in parts)
  found = []
  for share in BETA_SHARES:
    beta = share * max_beta(order)
    log_scale = smooth.log_smooth_sensitivity(totals, distances, beta=beta)
    # The noises are as likely up as down; the bound lies above.
    log_margins = np.interp(SIGMA_SCALES * beta, STEPS, _known_margins(confidence))
    margin = SIGMA_COSTS * np.exp(np.minimum(log_scale + log_margins, LARGEST))
    spent = _release_rdp(order, beta, SIGMA_COSTS, SIGMA_SCALES)
    total = np.where(limit.holds(beta, delta), cost + margin + spent, np.inf)
    if np.isinf(total).all():
      continue
    i, j = np.unravel_index(int(total.argmin()), total.shape)
    epsilon = rdp_to_epsilon([total[i, j]], [order], delta=delta)
    noises = float(SIGMA_COSTS[i, 0]), float(SIGMA_SCALES[j])
    plan = SanitizingPlan(float(order), beta, *noises, confidence, float(epsilon))
    found.append((epsilon, plan))
  return found
