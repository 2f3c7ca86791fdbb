"""The analyses that bound one epsilon from above, and the best of them.

Every analysis here bounds the same number, so the smallest bound that applies is valid.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.accounting import _bridge
from jaxfair.accounting import _events as ev
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._guarantee import Relation, delta_in_range
from jaxfair.accounting._randomized_response import randomized_response_epsilon
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon
from jaxfair.accounting._units import NotCovered, Units, overflow
from jaxfair.accounting._zcdp import zcdp_epsilon

Accountant = Literal["pld", "rdp"]
ACCOUNTANTS: tuple[Accountant, ...] = ("pld", "rdp")
# Events that no loss distribution is known for.
RENYI_ONLY = (ev.ZCdp, ev.Rdp, ev.RepeatAndSelect)


class Bound(NamedTuple):
  """An epsilon and the analysis it comes from."""

  epsilon: float
  accountant: str


def best_bound(
  counted: Units, *, delta: float, relation: Relation, accountant: Accountant
) -> Bound:
  """The smallest bound of those the accountant stands for."""
  checks.one_of("accountant", accountant, ACCOUNTANTS)
  delta_in_range(delta, zero=True)
  if not counted:
    return Bound(0.0, "nothing released")
  exact = _exact(counted, delta)
  if exact is not None:
    return exact
  found = list(_closed_forms(counted, delta))
  if accountant == "pld":
    found.append(_pld(counted, delta, relation))
  # A mixture is priced in two parts by "pld", which may be worse than whole.
  mixed = any(isinstance(unit, RENYI_ONLY) for unit, _ in counted)
  if accountant == "rdp" or mixed or found[-1].epsilon == math.inf:
    found.append(_rdp(counted, delta, relation))
  best = min(found)
  if math.isfinite(best.epsilon):
    return best
  raise NotCovered(_why_not(counted, delta, relation, accountant))


def fits(counted: Units, *, epsilon: float, delta: float, relation: Relation) -> bool:
  """Whether any analysis keeps the units within (epsilon, delta).

  Cheap analyses first: most charges are settled without a convolution.
  """
  if not counted:
    return True
  exact = _exact(counted, delta)
  if exact is not None:
    return exact.epsilon <= epsilon
  if any(b.epsilon <= epsilon for b in _closed_forms(counted, delta)):
    return True
  return any(analysis(counted, delta, relation).epsilon <= epsilon for analysis in (_rdp, _pld))


def require_covered(counted: Units, relation: Relation) -> None:
  """Requires that some analysis can price every unit.

  Raises:
    NotCovered: with the reason.
  """
  for unit, _ in counted:
    if isinstance(unit, ev.RepeatAndSelect):
      _bridge.rdp_curve(unit, DEFAULT_ORDERS, relation)


def _rdp(counted: Units, delta: float, relation: Relation) -> Bound:
  try:
    return Bound(_rdp_epsilon(counted, delta, relation), "rdp")
  except NotCovered:
    return Bound(math.inf, "rdp")


def _pld(counted: Units, delta: float, relation: Relation) -> Bound:
  try:
    return Bound(_pld_epsilon(counted, delta, relation), "pld")
  except NotCovered:
    return Bound(math.inf, "pld")


def _exact(counted: Units, delta: float) -> Bound | None:
  """Where the composition is known in closed form, there is no better one."""
  kinds = {type(unit) for unit, _ in counted}
  if delta == 0:
    return None
  # Gaussians on a grid carry (0, delta)-DP events along; see accounting.grid.
  rest = tuple(c for c in counted if not isinstance(c[0], ev.Gaussian))
  spent = math.fsum(count * _delta(unit) for unit, count in rest)
  if (
    ev.Gaussian in kinds
    and all(isinstance(u, ev.ApproxDp) and u.epsilon == 0 for u, _ in rest)
    and spent < delta
  ):
    gaussians = (c for c in counted if isinstance(c[0], ev.Gaussian))
    rho = math.fsum(count * _rho(unit) for unit, count in gaussians)
    sigma = 1 / math.sqrt(2 * rho)
    # Below the least noise that an event may have, no epsilon is given.
    little = sigma < ev.SMALLEST
    epsilon = math.inf if little else gaussian_epsilon(sigma=sigma, delta=delta - spent)
    return Bound(epsilon, "exact Gaussian")
  match counted:
    case ((ev.RandomizedResponse(epsilon=one, categories=k), count),):
      epsilon = randomized_response_epsilon(epsilon=one, categories=k, count=count, delta=delta)
      return Bound(epsilon, "exact randomized response")
  return None


def _closed_forms(counted: Units, delta: float) -> Iterator[Bound]:
  kinds = {type(unit) for unit, _ in counted}
  if kinds <= {ev.PureDp, ev.ApproxDp, ev.Laplace, ev.RandomizedResponse}:
    yield Bound(_basic(counted, delta), "basic composition")
  if kinds <= {ev.Gaussian, ev.ZCdp} and delta > 0:
    rho = math.fsum(count * _rho(unit) for unit, count in counted)
    yield Bound(zcdp_epsilon(rho=rho, delta=delta), "zCDP")


def _rdp_epsilon(counted: Units, delta: float, relation: Relation) -> float:
  approximate = tuple(c for c in counted if isinstance(c[0], ev.ApproxDp))
  others = tuple(c for c in counted if not isinstance(c[0], ev.ApproxDp))
  spent = math.fsum(count * _delta(unit) for unit, count in approximate)
  left = delta - spent - overflow(others)
  if left <= 0:
    return math.inf
  listed = {a for u, _ in others if isinstance(u, ev.Rdp) for a in u.orders}
  orders = tuple(sorted({*DEFAULT_ORDERS, *listed}))
  total = np.zeros(len(orders))
  for unit, count in others:
    total += count * _bridge.rdp_curve(unit, orders, relation)
  basic = _basic(approximate, delta)
  return basic + rdp_to_epsilon(total, orders, delta=left) if others else basic


def _pld_epsilon(counted: Units, delta: float, relation: Relation) -> float:
  """PLD for what has a loss distribution, RDP for the rest, delta halved."""
  rest = tuple(c for c in counted if isinstance(c[0], RENYI_ONLY))
  main = tuple(c for c in counted if not isinstance(c[0], RENYI_ONLY))
  if not main:
    return math.inf
  if not rest:
    return _bridge.pld_epsilon(main, delta, relation)
  half = _bridge.pld_epsilon(main, delta / 2, relation)
  return half + _rdp_epsilon(rest, delta / 2, relation)


def _basic(counted: Units, delta: float) -> float:
  """Sums of epsilons, and of deltas, which must stay within delta."""
  if math.fsum(count * _delta(unit) for unit, count in counted) > delta:
    return math.inf
  return math.fsum(count * _epsilon(unit) for unit, count in counted)


def _epsilon(unit: ev.Event) -> float:
  match unit:
    case ev.Laplace(noise_multiplier=scale):
      return 1 / scale
    case ev.PureDp() | ev.ApproxDp() | ev.RandomizedResponse():
      return unit.epsilon
  raise NotCovered(f"{unit.kind} has no epsilon of its own")


def _delta(unit: ev.Event) -> float:
  return unit.delta if isinstance(unit, ev.ApproxDp) else 0.0


def _rho(unit: ev.Event) -> float:
  match unit:
    case ev.Gaussian(noise_multiplier=sigma):
      return 0.5 / sigma**2
    case ev.ZCdp(rho=rho):
      return rho
  raise NotCovered(f"{unit.kind} has no rho")


def _why_not(counted: Units, delta: float, relation: Relation, accountant: Accountant) -> str:
  if delta == 0:
    return "delta=0 is for pure mechanisms only; pass a delta above 0"
  if overflow(counted) >= delta:
    return (
      f"batches overflow max_batch with probability {overflow(counted):.1e}, "
      f"above delta={delta:g}; raise max_batch (max_batch_for gives the size)"
    )
  try:
    _rdp_epsilon(counted, delta, relation)
  except NotCovered as reason:
    return str(reason)
  return (
    f"no finite epsilon at delta={delta:g} by accountant={accountant!r}; add noise or raise delta"
  )
