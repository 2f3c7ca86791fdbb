"""Confidence intervals from bootstrap draws and from repeated seeds.

Computed on the host in float64, with NaN draws left out and counted.
"""

from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.fairness import _inputs
from jaxfair.types import ArrayLike

Kind: TypeAlias = Literal["percentile", "basic", "bca"]
KINDS: tuple[Kind, ...] = ("percentile", "basic", "bca")


class Interval(NamedTuple):
  """An estimate and where the true value plausibly lies.

  The fields have the shape (or pytree structure) of the statistic.

  Attributes:
    estimate: the statistic of the sample.
    low: lower end.
    high: upper end.
    level: probability that such an interval covers the true value.
    dropped: how many draws or seeds were left out because they gave NaN.
  """

  estimate: Any
  low: Any
  high: Any
  level: float
  dropped: Any


def seed_interval(values: ArrayLike, *, axis: int = 0, level: float = 0.95) -> Interval:
  """Student's t interval for the mean over repeated seeds.

  mean +- t_{n-1, (1+level)/2} s / sqrt(n)

  Args:
    values: one number per seed along `axis`; NaN where a seed has none.
    axis: the axis of seeds.
    level: coverage.

  Returns:
    The interval, of shape `values` without `axis`. With fewer than two seeds
    left its ends are NaN.

  Assumptions:
    Seeds are independent, and their mean is nearly normal.
  """
  _inputs.on_host("seed_interval", values)
  _check_level(level)
  values = np.moveaxis(np.asarray(values, np.float64), axis, 0)
  known = ~np.isnan(values)
  n = known.sum(axis=0)
  mean = _quotient(np.where(known, values, 0.0).sum(axis=0), n)
  squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
  variance = _quotient(squares, n - 1)
  t = special.stdtrit(np.maximum(n - 1, 1), (1 + level) / 2)
  half_width = t * np.sqrt(_quotient(variance, n))
  return Interval(
    estimate=mean,
    low=mean - half_width,
    high=mean + half_width,
    level=level,
    dropped=values.shape[0] - n,
  )


def paired_interval(
  first: ArrayLike, second: ArrayLike, *, axis: int = 0, level: float = 0.95
) -> Interval:
  """Student's t interval for the mean of first - second over shared seeds.

  Pairing removes what both have in common (the split, the initialization). A
  seed that is NaN in either one is dropped.

  Args:
    first: one number per seed along `axis`.
    second: the same seeds in the same order.
    axis: the axis of seeds.
    level: coverage.

  Returns:
    The interval of the difference.
  """
  _inputs.on_host("paired_interval", first, second)
  first, second = np.asarray(first), np.asarray(second)
  checks.require(
    first.shape == second.shape,
    f"first has shape {first.shape} and second {second.shape}; pass the same "
    "seeds in the same order",
  )
  return seed_interval(first.astype(np.float64) - second, axis=axis, level=level)


def interval_of_draws(
  estimate: ArrayLike,
  draws: ArrayLike,
  *,
  level: float = 0.95,
  kind: Kind = "percentile",
  acceleration: Any = None,
) -> Interval:
  """Bootstrap interval of a statistic from its draws.

  percentile: the quantiles q of the draws at (1 -+ level) / 2
  basic:      2 estimate - q, ends swapped
  bca:        the percentile interval at levels corrected for the median bias
              of the draws and for how the spread changes with the value

  Args:
    estimate: the statistic of the sample, a pytree.
    draws: the same pytree, with a leading axis of draws.
    level: coverage.
    kind: which interval.
    acceleration: for `bca`, the same pytree as `estimate`.

  Returns:
    The interval, with `estimate`'s structure in every field but `level`.

  Reference:
    Efron 1987, Better bootstrap confidence intervals.
  """
  check_options(level, kind)
  if acceleration is None:
    checks.require(kind != "bca", "kind='bca' needs the acceleration")
    acceleration = jax.tree.map(np.zeros_like, estimate)
  trees = (estimate, draws, acceleration)
  parts = [
    _ends(np.asarray(e, np.float64), np.asarray(d, np.float64), a, level, kind)
    for e, d, a in zip(*map(jax.tree.leaves, trees), strict=True)
  ]
  structure = jax.tree.structure(estimate)
  estimate, low, high, dropped = (
    jax.tree.unflatten(structure, field) for field in zip(*parts, strict=True)
  )
  return Interval(estimate, low, high, level, dropped)


def check_options(level: float, kind: Kind) -> None:
  """Requires a level inside (0, 1) and a known kind of interval."""
  _check_level(level)
  checks.one_of("kind", kind, KINDS)


def _check_level(level: float) -> None:
  checks.number(
    "level", level, low=0.0, high=1.0, open_low=True, open_high=True, remedy="0.95 is usual"
  )


def _ends(
  estimate: np.ndarray, draws: np.ndarray, acceleration: Any, level: float, kind: Kind
) -> tuple[Any, Any, Any, Any]:
  known = np.sum(~np.isnan(draws), axis=0)
  tails = (1 - level) / 2, (1 + level) / 2
  if kind == "bca":
    tails = _corrected(estimate, draws, known, acceleration, tails)
  draws = np.sort(draws, axis=0)  # NaN goes last
  low, high = (_quantile(draws, known, tail) for tail in tails)
  if kind == "basic":
    low, high = 2 * estimate - high, 2 * estimate - low
  return estimate[()], low[()], high[()], (draws.shape[0] - known)[()]


def _corrected(
  estimate: np.ndarray,
  draws: np.ndarray,
  known: np.ndarray,
  acceleration: Any,
  tails: tuple[float, float],
) -> tuple[Any, Any]:
  below = np.sum(draws < estimate, axis=0) + np.sum(draws == estimate, axis=0) / 2
  # With every draw on one side the bias is only known to be beyond the last
  # draw: half a draw keeps it finite.
  share = np.clip(_quotient(below, known), 0.5 / len(draws), 1 - 0.5 / len(draws))
  bias = special.ndtri(share)

  def corrected(tail: float) -> Any:
    shifted = bias + special.ndtri(tail)
    return special.ndtr(bias + shifted / (1 - np.asarray(acceleration) * shifted))

  return corrected(tails[0]), corrected(tails[1])


def _quantile(ordered: np.ndarray, known: np.ndarray, level: Any) -> np.ndarray:
  """Linearly interpolated quantile of the first `known` values; or NaN."""
  last = np.maximum(known - 1, 0)
  position = np.nan_to_num(level * last)
  lower = np.floor(position).astype(int)
  upper = np.minimum(lower + 1, last)
  below, above = (np.take_along_axis(ordered, index[None], axis=0)[0] for index in (lower, upper))
  value = below + (position - lower) * (above - below)
  return np.where(np.isnan(level), np.nan, value)


def _quotient(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
  """numerator / denominator, NaN where the denominator is 0 or below."""
  known = denominator > 0
  return np.where(known, numerator / np.where(known, denominator, 1), np.nan)
