"""A privacy filter: which events a budget covers if they are chosen one by one.

Somebody who looks at each release before choosing the next one, or before
stopping, may not take the best of several analyses of what was charged in the
end: those are proved for events that were fixed beforehand. This filter is
proved for any such choice, and is exact for one event alone.
"""

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from jaxfair.accounting import _bridge
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bounds import fits
from jaxfair.accounting._guarantee import Relation
from jaxfair.accounting._rdp import DEFAULT_ORDERS
from jaxfair.accounting._units import NotCovered, Units, overflow

# An overrun this small (relative) is the rounding of a sum: 3 x 0.1 > 0.3.
ROUNDING = 1e-12
# Shares of delta for caps on batches and for (epsilon, delta)-DP events: the
# second if the first event is one with a large delta of its own.
SHARES = (0.01, 0.5)
# Between and beyond dp-accounting's orders; the largest are for events whose
# divergence is a closed form.
MORE_ORDERS = tuple(float(round(64 * 1.03**k)) for k in range(330))
ORDERS = tuple(sorted({*DEFAULT_ORDERS, *MORE_ORDERS}))
MODERATE_ORDERS = tuple(order for order in ORDERS if order <= 1024)


Spent = tuple[Fraction | float, Fraction]  # divergence and delta, exactly


class Limits(NamedTuple):
  """What may be spent, fixed when nothing has been released yet.

  Attributes:
    order: order of the Renyi divergences that are added up; infinite for pure DP.
    divergence: what they may add up to.
    delta: what the deltas of events may add up to besides.
  """

  order: float
  divergence: float
  delta: float


class PrivacyFilter:
  """Accepts events until the budget is spent.

  Privacy:
    The rule. The first event is accepted if any analysis keeps it within
    (epsilon, delta). Limits follow from it: an order a and a share s of delta
    (0 < s < delta, or s = delta at a = infinity). A history of two or more
    events is accepted if their divergences of order a add up to at most r(a)
    and their own deltas to at most s, where

      r(a) = epsilon - ln(1 - 1/a) + ln((delta - s) a) / (a - 1)

    is the divergence of order a that implies (epsilon, delta - s), and
    r(infinity) = epsilon.

    Everything chosen by this rule is (epsilon, delta)-DP together, however
    each event, and the end, depends on the releases before. The first event
    is chosen before anything is released, so are a, s and whether it meets
    the limits. If it does not, no other event is ever accepted, and the
    analysis of the first one alone holds. If it does, every history meets the
    limits. Take them without deltas first: Feldman & Zrnic prove that
    divergences of one fixed order which add up to at most a fixed r along
    every history are a divergence of at most r in all (Rogers et al. for
    infinite order), and r implies (epsilon, delta - s).

    With deltas: given the history, the two output laws of an event with delta
    d are (1 - p) A + p B and (1 - p) A' + p B' with the same p <= d, where A
    and A' keep the divergence. For a cap on batches B is an overflow, whose
    probability does not depend on the person; an (e, d)-DP event is computed
    from randomized response that fails with probability d (Kairouz et al.).
    Let G be that no B is drawn. A history has in G the
    probability of its A's (or A''s) times the same product of 1 - p on both
    sides, at most 1, so on G the excess of one side over e^epsilon times the
    other is at most the one of the A's alone: delta - s. Pr[not G] is at most
    the largest sum of d along a history: s.

  Reference:
    Feldman & Zrnic (2021), Individual Privacy Accounting via a Renyi Filter,
    Theorem 3.1; Rogers, Roth, Ullman & Vadhan (2016), Privacy Odometers and
    Filters; Kairouz, Oh & Viswanath (2015), The Composition Theorem for
    Differential Privacy; Canonne, Kamath & Steinke (2020), Proposition 12.
  """

  def __init__(self, epsilon: float, delta: float, relation: Relation):
    self._epsilon = epsilon
    self._delta = delta
    self._relation = relation
    self._limits: Limits | None = None
    self._begun = False
    self._spent: Spent = (Fraction(0), Fraction(0))

  def accepts(self, *batches: Units) -> bool:
    """Whether these events, one after the other, stay within the budget."""
    costly = [batch for batch in map(_costly, batches) if batch]
    if not costly:
      return True
    limits, spent = self._limits, self._spent
    if not self._begun:
      if len(costly) == 1 and self._alone(costly[0]):
        return True
      limits = self._fix(costly[0])
    for batch in costly:
      spent = _added(spent, batch, limits, self._relation)
    return _within(spent, limits)

  def count(self, batch: Units) -> None:
    """Adds what is now charged."""
    batch = _costly(batch)
    if not batch:
      return
    if not self._begun:
      self._limits, self._begun = self._fix(batch), True
    self._spent = _added(self._spent, batch, self._limits, self._relation)

  def _alone(self, batch: Units) -> bool:
    return fits(
      batch, epsilon=self._epsilon * (1 + ROUNDING), delta=self._delta, relation=self._relation
    )

  def _fix(self, first: Units) -> Limits | None:
    """The order at which the budget pays for the most of the first event.

    Returns:
      None if it pays for nothing like it at any order.
    """
    orders = _orders(first)
    costs = _divergences(first, orders, self._relation).tolist()
    deltas = _deltas(first)
    found = []
    for order, cost in zip(orders, costs, strict=True):
      for share in SHARES:
        limits = self._limits_at(order, share)
        times = limits.divergence / max(cost, math.ulp(0.0))
        if deltas > 0:
          times = min(times, limits.delta / deltas)
        found.append((times, limits))
    times, limits = max(found)
    return limits if times > 0 else None

  def _limits_at(self, order: float, share: float) -> Limits:
    if order == math.inf:
      return Limits(order, self._epsilon * (1 + ROUNDING), self._delta)
    if self._delta == 0:
      return Limits(order, 0.0, 0.0)
    kept = math.log(self._delta * (1 - share))
    divergence = (
      self._epsilon
      - ROUNDING * self._epsilon  # of this sum
      - math.log1p(-1 / order)
      + (kept + math.log(order)) / (order - 1)
    )
    return Limits(order, divergence, share * self._delta)


def _costly(batch: Units) -> Units:
  """Leaves out events that reveal nothing: they cost nothing and are not releases."""
  return tuple((unit, count) for unit, count in batch if not _silent(unit))


def _silent(unit: ev.Event) -> bool:
  match unit:
    case ev.PureDp(epsilon=0.0) | ev.ZCdp(rho=0.0) | ev.ApproxDp(0.0, 0.0):
      return True
    case ev.Rdp(values=values):
      return min(values) == 0  # at any order: the two laws are the same
  return False


def _orders(first: Units) -> tuple[float, ...]:
  listed = {a for u, _ in first if isinstance(u, ev.Rdp) for a in u.orders}
  closed = all(isinstance(unit, ev.Gaussian | ev.ZCdp) for unit, _ in first)
  usual = ORDERS if closed else MODERATE_ORDERS
  return (*sorted({*usual, *listed}), math.inf)


def _added(spent: Spent, batch: Units, limits: Limits | None, relation: Relation) -> Spent:
  """The exact amount spent including the batch: sums of thousands of events."""
  if limits is None:
    return spent
  (divergence,) = _divergences(batch, (limits.order,), relation)
  if divergence == math.inf or spent[0] == math.inf:
    return math.inf, spent[1]
  return spent[0] + Fraction(divergence), spent[1] + Fraction(_deltas(batch))


def _within(spent: Spent, limits: Limits | None) -> bool:
  return limits is not None and spent[0] <= limits.divergence and spent[1] <= limits.delta


def _divergences(batch: Units, orders: tuple[float, ...], relation: Relation) -> np.ndarray:
  """[orders] Renyi divergences of a batch, besides its deltas."""
  total = np.zeros(len(orders))
  for unit, count in batch:
    total += count * _curve(unit, orders, relation)
  # Sums of products round by less than this.
  return total * (1 + ROUNDING / 4)


@functools.lru_cache(maxsize=4096)
def _curve(unit: ev.Event, orders: tuple[float, ...], relation: Relation) -> np.ndarray:
  finite = tuple(order for order in orders if order < math.inf)
  pure = ev.PureDp(unit.epsilon) if isinstance(unit, ev.ApproxDp) else unit
  try:
    curve = _bridge.rdp_curve(pure, finite, relation)
  except NotCovered:
    curve = np.full(len(finite), math.inf)
  largest = [_largest_loss(unit)] * (len(orders) - len(finite))
  return np.append(curve, largest)


def _largest_loss(unit: ev.Event) -> float:
  match unit:
    case ev.PureDp() | ev.ApproxDp() | ev.RandomizedResponse():
      return unit.epsilon
    case ev.Laplace(noise_multiplier=scale):
      return math.nextafter(1 / scale, math.inf)
  return math.inf


def _deltas(batch: Units) -> float:
  own = (c * u.delta for u, c in batch if isinstance(u, ev.ApproxDp))
  return math.fsum(own) + overflow(batch)
