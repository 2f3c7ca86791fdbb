"""DP-SGD: from noise to epsilon, and back."""

import contextlib
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from jaxfair import checks
from jaxfair.accounting import _bridge
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bounds import Accountant
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._guarantee import (
  BudgetError,
  DeltaWarning,
  Relation,
  delta_in_range,
  round_up,
)
from jaxfair.accounting._search import MAX_NOISE, most_steps, smallest_noise
from jaxfair.accounting._units import NotCovered, units

# Spacing of the loss distributions that only start a search.
COARSE_GRID = 1e-3


def dp_sgd_epsilon(
  *,
  noise_multiplier: float,
  sampling_rate: float,
  steps: int,
  delta: float,
  accountant: Accountant = "pld",
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  dataset_size: int | None = None,
  max_batch: int | None = None,
  shards: int | None = None,
  bands: int | None = None,
) -> float:
  """The epsilon of DP-SGD with Poisson-sampled batches.

  Args:
    noise_multiplier: sigma / l2_clip.
    sampling_rate: q, each person's chance to be in a batch.
    steps: number of steps.
    delta: in (0, 1).
    accountant: "pld" (nearly exact) or "rdp" (fast, about ten percent more).
    relation: which data sets count as neighbors.
    dataset_size: n; with max_batch.
    max_batch: public cap on a batch; of a larger sample a uniformly random
      subset of this size is kept. None: no cap.
    shards: number of blocks of people that have a cap of `max_batch` each; see the event `DpSgd`.
    bands: number of steps that share their noise; see the event `DpSgd`.

  Returns:
    epsilon, rounded towards privacy. For a delta too small for "pld" (below about
    1e-15 steps), "rdp" is used.

  Privacy:
    Assumes what the event `DpSgd` says: independent Poisson samples, each
    person's contribution clipped, the noised *sum* released, divided by
    nothing that depends on the sample.
  """
  delta_in_range(delta)
  _warn_of_large_delta(delta, dataset_size)
  event = ev.DpSgd(noise_multiplier, sampling_rate, steps, dataset_size, max_batch, shards, bands)
  return composed_epsilon([event], delta=delta, relation=relation, accountant=accountant)


def calibrate_dp_sgd(
  *,
  epsilon: float,
  delta: float,
  sampling_rate: float,
  steps: int,
  accountant: Accountant = "pld",
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  dataset_size: int | None = None,
  max_batch: int | None = None,
  shards: int | None = None,
  bands: int | None = None,
) -> float:
  """The smallest noise multiplier that keeps DP-SGD within (epsilon, delta).

  Args:
    epsilon: above 0.
    delta: in (0, 1).
    sampling_rate: q.
    steps: number of steps.
    accountant: as in `dp_sgd_epsilon`.
    relation: which data sets count as neighbors.
    dataset_size: n; with max_batch.
    max_batch: public cap on a batch.
    shards: number of blocks of people that have a cap of `max_batch` each.
    bands: number of steps that share their noise.

  Returns:
    A number of six digits, at least 0.02, whose own epsilon was computed: it
    is not above the target, and less than 1e-4 (relative) below it.
  """
  checks.positive("epsilon", epsilon)
  delta_in_range(delta)
  _warn_of_large_delta(delta, dataset_size)

  def event(noise: float) -> ev.DpSgd:
    return ev.DpSgd(noise, sampling_rate, steps, dataset_size, max_batch, shards, bands)

  _covered(event(MAX_NOISE), delta, relation, accountant)
  noise = 1.0
  for cost in _quick_costs(event, delta, relation, accountant):
    with contextlib.suppress(checks.ArgumentError):
      noise = smallest_noise(cost, epsilon, noise)
  cost = functools.partial(_cost, event, delta, relation, accountant)
  return smallest_noise(cost, epsilon, noise)


def max_steps(
  *,
  epsilon: float,
  delta: float,
  noise_multiplier: float,
  sampling_rate: float,
  accountant: Accountant = "pld",
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  dataset_size: int | None = None,
  max_batch: int | None = None,
  shards: int | None = None,
  bands: int | None = None,
) -> int:
  """The number of steps of DP-SGD that the budget allows.

  Args:
    epsilon: epsilon of the budget, above 0.
    delta: delta of the budget, in (0, 1).
    noise_multiplier: sigma / l2_clip.
    sampling_rate: q.
    accountant: as in `dp_sgd_epsilon`.
    relation: which data sets count as neighbors.
    dataset_size: n; with max_batch.
    max_batch: public cap on a batch.
    shards: number of blocks of people that have a cap of `max_batch` each.
    bands: number of steps that share their noise.

  Returns:
    The largest number of steps within (epsilon, delta), at most 10^8.

  Raises:
    BudgetError: if it does not cover one step.
  """
  checks.positive("epsilon", epsilon)
  delta_in_range(delta)
  _warn_of_large_delta(delta, dataset_size)

  def event(steps: int) -> ev.DpSgd:
    return ev.DpSgd(noise_multiplier, sampling_rate, steps, dataset_size, max_batch, shards, bands)

  one = _covered(event(1), delta, relation, accountant)
  if one > epsilon:
    raise BudgetError(
      f"epsilon={epsilon:g} at delta={delta:g} does not cover one step, which costs "
      f"{round_up(one)}; raise the budget or the noise_multiplier "
      f"of {noise_multiplier:g}, or lower the sampling_rate"
    )
  steps = 1
  for cost in _quick_costs(event, delta, relation, accountant):
    steps = most_steps(cost, epsilon, steps)
  cost = functools.partial(_cost, event, delta, relation, accountant)
  return most_steps(cost, epsilon, steps)


def _quick_costs(
  event: Callable[[Any], ev.DpSgd], delta: float, relation: Relation, accountant: Accountant
) -> list[Callable[[Any], float]]:
  """Faster functions that bring a search close to its end."""

  def limit(at: Any) -> float:
    one = event(at)
    # In the limit of many steps it is one Gaussian (Bu et al. 2020).
    rate, count = one.releases
    signal = math.expm1(min(one.noise_multiplier**-2, 700.0))
    mean = rate * math.sqrt(count * signal)
    whole = math.sqrt(count) / one.noise_multiplier
    return gaussian_epsilon(sigma=1 / min(mean, whole), delta=delta)

  def coarse(at: Any) -> float:
    counted = units([event(at)], relation)
    return _bridge.pld_epsilon(counted, delta, relation, COARSE_GRID)

  return [limit, coarse] if accountant == "pld" else [limit]


def _cost(
  event: Callable[[Any], ev.DpSgd],
  delta: float,
  relation: Relation,
  accountant: Accountant,
  at: Any,
) -> float:
  try:
    return _covered(event(at), delta, relation, accountant)
  except NotCovered:  # hardly any noise, or very many steps
    return math.inf


def _covered(event: ev.DpSgd, delta: float, relation: Relation, accountant: Accountant) -> float:
  return composed_epsilon([event], delta=delta, relation=relation, accountant=accountant)


def _warn_of_large_delta(delta: float, dataset_size: int | None) -> None:
  if dataset_size is not None and delta * dataset_size > 1:
    warnings.warn(
      f"delta={delta:g} is above 1/n = {1 / dataset_size:.1e}: publishing one "
      "person's whole record would satisfy it; use a smaller delta",
      DeltaWarning,
      stacklevel=3,
    )
