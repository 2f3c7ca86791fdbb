"""Statistics that claims are made of, each with its 95% interval.

Intervals over seeds tell how much repeating the experiment moves a number, not
how much another population would.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from jaxfair import fairness
from jaxfair.experiments._claims import (
  LEVEL,
  CannotTellError,
  Estimate,
  Statistic,
  Where,
  narrowed,
  words,
)
from jaxfair.experiments._measures import column_range
from jaxfair.experiments._table import Table
from jaxfair.types import ArrayLike

DRAWS = 1_000
Labels = list[tuple[Any, ...]]
Range = tuple[float, float]
ANYWHERE = (-math.inf, math.inf)


def mean(value: str) -> Statistic:
  """The mean over seeds, with Student's interval; a seed's rows are averaged first."""

  def estimate(table: Table, level: float) -> Estimate:
    own = by_seed(table, value)
    return student(f"mean {value}", own, _range(value, own), level=level)

  return Statistic(estimate)


def least(value: str) -> Statistic:
  """The mean over seeds of the least value among a seed's rows."""

  def estimate(table: Table, level: float) -> Estimate:
    own = by_seed(table, value, np.min)
    return student(f"least {value}", own, _range(value, own), level=level)

  return Statistic(estimate)


def difference(value: str, first: Where, second: Where, *, relative: bool = False) -> Statistic:
  """`first` minus `second`, paired over seeds.

  Args:
    value: the column.
    first: names the rows of one side.
    second: names those of the other.
    relative: divide by the mean of `second`, which is taken as known.
  """

  def estimate(table: Table, level: float) -> Estimate:
    shared = {k: v for k, v in first.items() if k in second and second[k] == v}
    left, right = ({k: v for k, v in side.items() if k not in shared} for side in (first, second))
    told = f"{value}: {words(left)} minus {words(right)}, paired"
    rows = narrowed(table, shared)
    a, b = (by_seed(narrowed(rows, side), value) for side in (left, right))
    seeds, scale = sorted(a.keys() & b.keys()), 1.0
    ends = _range_apart(value, a, b)
    if relative:
      total = sum(b[seed] for seed in seeds)
      if total <= 0:
        raise CannotTellError(f"the mean {value} of {words(right)} is not positive")
      told, scale, ends = f"{told}, over the latter", len(seeds) / total, ANYWHERE
    apart = {seed: (a[seed] - b[seed]) * scale for seed in seeds}
    return student(told, apart, ends, level=level)

  return Statistic(estimate)


def spread(value: str, between: str) -> Statistic:
  """The largest mean of a column's values minus the smallest, paired over seeds.

  The two values are chosen on the same seeds that give the interval, so
  with more than a few values the interval is too short.
  """

  def estimate(table: Table, level: float) -> Estimate:
    found = {name: by_seed(part, value) for (name,), part in table.split(between)}
    found = {name: own for name, own in found.items() if own}
    if len(found) < 2:
      raise CannotTellError(f"fewer than two {between}s")
    order = sorted(found, key=lambda name: float(np.mean([*found[name].values()])))
    low, high = found[order[0]], found[order[-1]]
    pairs = {seed: high[seed] - low[seed] for seed in sorted(low.keys() & high.keys())}
    told = f"{value}: {order[-1]} minus {order[0]}, paired"
    return student(told, pairs, _range_apart(value, low, high), level=level)

  return Statistic(estimate)


def trend(value: str, along: str) -> Statistic:
  """Spearman's correlation of a value with a column, seed by seed.

  Rows of one seed and place are averaged first. It rises if the mean over
  seeds is above 0.
  """

  def estimate(table: Table, level: float) -> Estimate:
    if len(table.unique(along)) < 2:
      raise CannotTellError(f"{along} has one value only")
    found = {}
    for (seed,), part in table.split("seed"):
      averaged = ((at, by_seed(rows, value)) for (at,), rows in part.split(along))
      places = [(at, own) for at, found_at in averaged for own in found_at.values()]
      correlation = rank_correlation(*np.array(places).T) if places else math.nan
      if np.isfinite(correlation):
        found[seed] = float(correlation)
    told = f"rank correlation of {value} with {along}"
    return student(told, found, (-1.0, 1.0), level=level)

  return Statistic(estimate)


def exact(told: str, statistic: Callable[[Table], float]) -> Statistic:
  """A number without uncertainty, such as a worst case over all rows."""

  def estimate(table: Table, level: float) -> Estimate:
    del level
    value = float(statistic(table))
    if not math.isfinite(value):
      raise CannotTellError(f"{told} is undefined on these rows")
    return Estimate(told, value, value, value)

  return Statistic(estimate)


def student(
  told: str, values: Mapping[Any, float], within: Range = ANYWHERE, *, level: float = LEVEL
) -> Estimate:
  """The mean over seeds with Student's interval, which ends where the range does."""
  if len(values) < 2:
    raise CannotTellError("an interval needs at least 2 seeds")
  numbers = np.array(list(values.values()))
  if not np.isfinite(numbers).all():
    raise CannotTellError(f"{told} is infinite for some seeds")
  found = fairness.seed_interval(numbers, level=level)
  low, high = np.clip([found.low, found.high], *within)
  return Estimate(told, float(found.estimate), float(low), float(high))


def _range(column: str, *values: Mapping[Any, float]) -> Range:
  return column_range(column, [x for own in values for x in own.values()])


def _range_apart(column: str, *values: Mapping[Any, float]) -> Range:
  """The range of a difference of two values of a column."""
  low, high = _range(column, *values)
  return low - high, high - low


def by_seed(rows: Table, value: str, reduce: Callable[..., Any] = np.mean) -> dict[Any, float]:
  """One number of each seed's rows; a seed without a known value drops out."""
  if rows[value].dtype.kind != "f":
    raise CannotTellError(f"column {value} holds no numbers")
  known = {seed: part[value][~np.isnan(part[value])] for (seed,), part in rows.split("seed")}
  return {seed: float(reduce(own)) for seed, own in known.items() if len(own)}


def of_points(
  told: str,
  statistic: Callable[..., np.ndarray],
  *,
  values: Sequence[str],
  points: Sequence[str],
  within: Sequence[str] = (),
  over: Callable[..., np.ndarray] = np.mean,
) -> Statistic:
  """Any statistic of points, each the mean of its seeds.

  Args:
    told: what the statistic is, in words.
    statistic: `(labels, *values) -> [draws]`: labels is the list of the
      points' columns, each value a [points, draws] array of means.
    values: columns that are averaged over seeds.
    points: columns that name a point, those of `within` included.
    within: columns that name a stratum; the statistic is computed from the
      points of each stratum alone.
    over: combines the strata, such as `np.min` for "in every data set".

  Returns:
    The statistic. Its 95% interval is the percentile bootstrap over seeds, the
    same seeds for all points: what repeating the experiment on the same people
    would move. It says nothing about other data sets.
  """
  where_in = [list(points).index(name) for name in within]

  def in_strata(labels: Labels, *means: np.ndarray) -> np.ndarray:
    strata: dict[tuple[Any, ...], list[int]] = {}
    for i, label in enumerate(labels):
      strata.setdefault(tuple(label[j] for j in where_in), []).append(i)
    found = [
      statistic([labels[i] for i in rows], *(own[rows] for own in means))
      for rows in strata.values()
    ]
    return over(np.array(found), axis=0)

  def estimate(table: Table, level: float) -> Estimate:
    labels, cube = _cube(table, values, points)
    if cube.shape[2] < 2:
      raise CannotTellError("an interval needs at least 2 seeds")
    if not np.isfinite(cube).all():
      raise CannotTellError("a point lacks some seeds, or is not finite")
    found = np.asarray(in_strata(labels, *(cube @ _weights(cube.shape[2]))), np.float64)
    if not np.isfinite(found).all():
      raise CannotTellError("the statistic is undefined on these rows")
    low, high = np.quantile(found[1:], ((1 - level) / 2, (1 + level) / 2))
    return Estimate(told, float(found[0]), float(low), float(high))

  return Statistic(estimate)


def correlation(
  x: str,
  y: str,
  *,
  points: Sequence[str],
  within: Sequence[str] = (),
  over: Callable[..., np.ndarray] = np.mean,
) -> Statistic:
  """Spearman's correlation of two columns over points, averaged over strata.

  With two groups in a stratum it is 1 where they are in the same order by both
  columns and -1 where they are not. A stratum where one column is constant
  counts as 0.

  Args:
    x: one column.
    y: the other.
    points: columns that name a point, those of `within` included.
    within: columns that name a stratum.
    over: combines the strata, such as `np.min` for "in every data set".
  """
  told = f" within {', '.join(within)}" if within else ""
  least = {"min": ", least", "max": ", largest"}.get(getattr(over, "__name__", ""), "")
  return of_points(
    f"rank correlation of {x} and {y}{told}{least}",
    lambda labels, a, b: np.nan_to_num(rank_correlation(a, b)),
    values=(x, y),
    points=points,
    within=within,
    over=over,
  )


def rank_correlation(first: ArrayLike, second: ArrayLike) -> Any:
  """Spearman's rank correlations along the first axis.

  NaN where one of both is constant: then neither rises nor falls.
  """
  a, b = (stats.rankdata(np.asarray(values, float), axis=0) for values in (first, second))
  a, b = a - a.mean(axis=0), b - b.mean(axis=0)
  spread = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
  known = spread > 0
  together = (a * b).sum(axis=0)
  return np.where(known, together / np.where(known, spread, 1.0), np.nan)[()]


def _cube(rows: Table, values: Sequence[str], points: Sequence[str]) -> tuple[Labels, np.ndarray]:
  """The points' names, and [values, points, seeds] means."""
  seeds = {seed: i for i, seed in enumerate(rows.unique("seed"))}
  labels = list(zip(*(rows[name].tolist() for name in points), strict=True))
  order = {label: i for i, label in enumerate(dict.fromkeys(labels))}
  shape = (len(values), len(order), len(seeds))
  total, count = np.zeros(shape), np.zeros(shape[1:])
  p = np.array([order[label] for label in labels], int)
  s = np.array([seeds[seed] for seed in rows["seed"].tolist()], int)
  for v, name in enumerate(values):
    np.add.at(total[v], (p, s), rows[name])
  np.add.at(count, (p, s), 1.0)
  with np.errstate(invalid="ignore"):
    return list(order), total / count


def _weights(seeds: int) -> np.ndarray:
  """[seeds, 1 + draws] weights of means: of all seeds, then of resamples."""
  chance = np.full(seeds, 1 / seeds)
  drawn = np.random.default_rng(0).multinomial(seeds, chance, DRAWS)
  weights: np.ndarray = np.concatenate([chance[None], drawn / seeds]).T
  return weights
