"""Bridge to dp-accounting: its events, its Renyi curves, its loss distributions.

dp-accounting is loaded on first use, since that takes a second. Its results are rounded in the
safe direction by the largest error that its floating-point arithmetic can make.
"""

import contextlib
import functools
import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxfair.accounting import _events as ev
from jaxfair.accounting._guarantee import Relation
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon
from jaxfair.accounting._units import NotCovered, Units, overflow, units

# Rounding of dp-accounting's Renyi divergences per release, measured against
# 50-digit arithmetic: below 1e-15 relative to max(1, divergence).
RDP_ROUNDING = 2e-15
# Rounding of a delta by one convolution of loss distributions, measured
# against the exact Gaussian: below 1e-16, and it adds up over the releases.
PLD_ROUNDING = 5e-16
# Above this epsilon (at delta 1e-15), or below this noise, a loss distribution
# takes minutes and gigabytes to say that there is no privacy.
PLD_MAX_EPSILON = 300.0
PLD_MIN_NOISE = 0.1
PLD_GRID = 1e-4  # dp-accounting's
FEW = 1000  # losses of a distribution that dp-accounting composes one by one
# A cap on batches that takes at most this share of delta is priced out of
# delta; the exact loss distribution of the capped sampler takes ten times as
# long and would move epsilon by less than a thousandth.
CAP_SHARE = 0.01


def to_dp_event(event: ev.Event, *, grown: int = 0) -> Any:
  """The same event as dp-accounting writes it.

  Args:
    event: any but Rdp, PureDp and ApproxDp, which it has no words for.
    grown: people to add to the size of a data set with capped batches.
  """
  from dp_accounting import dp_event as dp

  match event:
    case ev.Gaussian(noise_multiplier=sigma):
      return dp.GaussianDpEvent(sigma)
    case ev.Laplace(noise_multiplier=scale):
      return dp.LaplaceDpEvent(scale)
    case ev.DpSgd(shards=int(shards)):
      raise NotCovered(f"dp-accounting has no event for batches with a cap per shard, {shards=}")
    case ev.DpSgd(bands=int(bands), max_batch=int()):
      raise NotCovered(f"dp-accounting has no event for capped batches with {bands=}")
    case ev.DpSgd(dataset_size=int(n), max_batch=int(cap)):
      step = dp.TruncatedSubsampledGaussianDpEvent(
        n + grown, event.sampling_rate, cap, event.noise_multiplier
      )
      return dp.SelfComposedDpEvent(step, event.steps)
    case ev.DpSgd(noise_multiplier=sigma, releases=(q, steps)):
      step = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
      return dp.SelfComposedDpEvent(step, steps)
    case ev.ShuffledDpSgd(noise_multiplier=sigma, epochs=epochs):
      return dp.SelfComposedDpEvent(dp.GaussianDpEvent(sigma), epochs)
    case ev.RandomizedResponse(epsilon=epsilon, categories=k, count=count):
      # Theirs replaces the answer by a uniform one with this probability.
      response = dp.RandomizedResponseDpEvent(_uniform(epsilon, k), k)
      return dp.SelfComposedDpEvent(response, count)
    case ev.ZCdp(rho=rho):
      return dp.ZCDpEvent(rho)
    case ev.Composed(events=inner):
      return dp.ComposedDpEvent([to_dp_event(e, grown=grown) for e in inner])
    case ev.Repeated(event=one, count=count):
      return dp.SelfComposedDpEvent(to_dp_event(one, grown=grown), count)
    case ev.RepeatAndSelect(event=one, mean_runs=mean, shape=shape):
      return dp.RepeatAndSelectDpEvent(
        to_dp_event(one, grown=grown), mean, math.inf if shape is None else shape
      )
  raise NotCovered(f"dp-accounting has no event for {event.kind}")


@functools.lru_cache(maxsize=4096)
def rdp_curve(unit: ev.Event, orders: tuple[float, ...], relation: Relation) -> np.ndarray:
  """[orders] Renyi divergences of one unit, without the price of a cap.

  Raises:
    NotCovered: for a mechanism without Renyi bound under this relation.
  """
  match unit:
    case ev.Rdp():
      return _tabulated(unit, orders)
    case ev.ZCdp(rho=rho):  # its definition; dp-accounting need not be loaded
      return rho * np.array(orders) * (1 + RDP_ROUNDING)
    case ev.ApproxDp():
      raise NotCovered("an approx-dp event has no Renyi divergence")
    case ev.PureDp(epsilon=0.0):
      return np.zeros(len(orders))
    case ev.PureDp(epsilon=epsilon):
      # Binary randomized response is the worst of all epsilon-DP mechanisms.
      unit, relation = ev.RandomizedResponse(epsilon, 2), Relation.REPLACE_ONE
    case ev.RandomizedResponse():
      relation = Relation.REPLACE_ONE  # also bounds the zeroed-out answer
  from dp_accounting import UnsupportedEventError, rdp

  accountant = rdp.RdpAccountant(orders, _their_relation(relation))
  try:
    with _quiet(), np.errstate(over="ignore", invalid="ignore"):
      accountant.compose(to_dp_event(_uncapped(unit, relation)))
  except UnsupportedEventError:
    raise NotCovered(
      f"the rdp accountant does not cover {unit.kind} under {relation.value}; use accountant='pld'"
    ) from None
  except ArithmeticError:  # as good as no noise
    return np.full(len(orders), np.inf)
  curve = np.nan_to_num(accountant.rdp, nan=np.inf, posinf=np.inf)
  curve = np.maximum(curve, 0.0) * (1 + RDP_ROUNDING) + RDP_ROUNDING
  curve.flags.writeable = False  # it is shared by everyone who asks
  return curve


@functools.lru_cache(maxsize=4096)
def pld_epsilon(counted: Units, delta: float, relation: Relation, grid: float = PLD_GRID) -> float:
  """epsilon by composing privacy loss distributions.

  Infinite where that cannot be resolved: a delta within the rounding of the
  convolutions, or losses too large for the grid.

  Args:
    counted: units with a loss distribution.
    delta: in (0, 1).
    relation: which data sets count as neighbors.
    grid: spacing of the losses; wider is faster, and still an upper bound.
  """
  spent = overflow(counted)
  # The loss distribution of a capped sampler is known for one cap on a sample of everybody.
  several = any(isinstance(unit, ev.DpSgd) and (unit.shards or unit.bands) for unit, _ in counted)
  if several and spent >= delta:
    return math.inf
  if several or 0 < spent <= CAP_SHARE * delta:
    counted = _uncapped_units(counted, relation)
    return pld_epsilon(counted, delta - spent, relation, grid)
  rounding = PLD_ROUNDING * (len(counted) + sum(n for _, n in counted))
  if delta <= 2 * rounding or _too_large(counted, relation):
    return math.inf
  # Neighbors of n people by add-or-remove are n and n - 1, or n + 1 and n.
  sizes = (0,) if relation.fixed_size or spent == 0 else (0, 1)
  try:
    return max(
      composed_pld(counted, relation, grown, grid).get_epsilon_for_delta(delta - rounding)
      for grown in sizes
    )
  except ValueError:
    # dp-accounting refuses a grid on which its deltas do not fall.
    return math.inf


@functools.lru_cache(maxsize=4)
def composed_pld(counted: Units, relation: Relation, grown: int, grid: float = PLD_GRID) -> Any:
  """The privacy loss distribution of all units together."""
  parts = []
  for unit, count in counted:
    if isinstance(unit, ev.Gaussian):  # n of them are one, exactly
      unit, count = ev.Gaussian(unit.noise_multiplier / math.sqrt(count)), 1
    one = unit_pld(unit, relation, grown, grid)
    times = count if count < FEW else _Times(count)
    parts.append(one.self_compose(times) if count > 1 else one)
  return functools.reduce(lambda a, b: a.compose(b), parts)


@functools.lru_cache(maxsize=8)
def unit_pld(unit: ev.Event, relation: Relation, grown: int, grid: float = PLD_GRID) -> Any:
  """The privacy loss distribution of one unit."""
  from dp_accounting.pld import common
  from dp_accounting.pld import privacy_loss_distribution as pld

  theirs = _their_relation(relation)
  spaced: dict[str, Any] = {"value_discretization_interval": grid}
  match unit:
    case ev.Gaussian(noise_multiplier=sigma):
      return pld.from_gaussian_mechanism(sigma, **spaced)
    case ev.Laplace(noise_multiplier=scale):
      return pld.from_laplace_mechanism(scale, **spaced)
    case ev.DpSgd(dataset_size=int(n), max_batch=int(cap)):
      return pld.from_truncated_subsampled_gaussian_mechanism(
        n + grown,
        unit.sampling_rate,
        cap,
        unit.noise_multiplier,
        neighboring_relation=theirs,
        **spaced,
      )
    case ev.DpSgd(noise_multiplier=sigma, sampling_rate=q):
      return pld.from_gaussian_mechanism(
        sigma, sampling_prob=q, neighboring_relation=theirs, **spaced
      )
    case ev.RandomizedResponse(epsilon=epsilon, categories=k):
      return pld.from_randomized_response(_uniform(epsilon, k), k, **spaced)
    case ev.PureDp(epsilon=epsilon):
      parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
      return pld.from_privacy_parameters(parameters, **spaced)
    case ev.ApproxDp(epsilon=epsilon, delta=delta):
      parameters = common.DifferentialPrivacyParameters(epsilon, delta)
      return pld.from_privacy_parameters(parameters, **spaced)
  raise NotCovered(f"the pld accountant does not cover {unit.kind}")


class _Times(int):
  """Many compositions, of which dp-accounting asks whether size**times is above FEW.

  For 10^7 steps the exact power takes a minute; a power that is large enough has the same answer.
  """

  def __rpow__(self, size: int, modulus: int | None = None) -> int:  # type: ignore[misc]
    del modulus
    return size**FEW


def _uniform(epsilon: float, categories: int) -> float:
  odds = math.exp(-epsilon)
  return categories * odds / (1 + (categories - 1) * odds)


def _uncapped_units(counted: Units, relation: Relation) -> Units:
  return tuple((_uncapped(unit, relation), count) for unit, count in counted)


def _uncapped(unit: ev.Event, relation: Relation) -> ev.Event:
  """The unit with caps on batches lifted; `units.overflow` prices them."""
  if isinstance(unit, ev.DpSgd):
    return ev.DpSgd(unit.noise_multiplier, *unit.releases)
  if isinstance(unit, ev.RepeatAndSelect):
    runs = [
      ev.Repeated(_uncapped(one, relation), count) for one, count in units([unit.event], relation)
    ]
    return ev.RepeatAndSelect(ev.Composed(tuple(runs)), unit.mean_runs, unit.shape)
  return unit


def _tabulated(event: ev.Rdp, orders: tuple[float, ...]) -> np.ndarray:
  """Divergences grow with the order: the next listed order is a bound."""
  values = np.append(event.values, np.inf)
  return values[np.searchsorted(event.orders, orders)]


def _too_large(counted: Units, relation: Relation) -> bool:
  """Whether a loss distribution would not fit its grid; a rough estimate."""
  total = np.zeros(len(DEFAULT_ORDERS))
  for unit, count in counted:
    match unit:
      case ev.Gaussian(noise_multiplier=sigma) if sigma < PLD_MIN_NOISE:
        return True
      case ev.DpSgd(noise_multiplier=sigma, sampling_rate=q):
        if sigma < PLD_MIN_NOISE:
          return True
        unit = ev.DpSgd(sigma, q, 1)
      case ev.ApproxDp(epsilon=epsilon):
        unit = ev.PureDp(epsilon)
    total += count * rdp_curve(unit, DEFAULT_ORDERS, Relation.ZERO_OUT)
  extent = rdp_to_epsilon(total, DEFAULT_ORDERS, delta=1e-15)
  # A substitution is a removal and an addition.
  return (2 if relation.substitutes else 1) * extent > PLD_MAX_EPSILON


def _their_relation(relation: Relation) -> Any:
  """Zeroing out is add-or-remove to them, an attribute a replacement."""
  from dp_accounting import NeighboringRelation

  if relation.substitutes:
    return NeighboringRelation.REPLACE_ONE
  return NeighboringRelation.ADD_OR_REMOVE_ONE


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Silences warnings about orders that dp-accounting leaves out (validly)."""
  logger = logging.getLogger("absl")
  level = logger.level
  logger.setLevel(logging.ERROR)
  try:
    yield
  finally:
    logger.setLevel(level)
