"""Checks on means over seeds, whose intervals come from resampled seeds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair.experiments.table import Table
from jaxfair.studies import claims
from jaxfair.studies.claims import Check
from jaxfair.studies.protocol import Finding

DRAWS = 1_000
# (names of the points, one [points, draws] array of means per value) -> [draws]
Statistic = Callable[..., np.ndarray]


def resampled(
  words: str,
  statistic: Statistic,
  *,
  values: Sequence[str],
  points: Sequence[str],
  where: Mapping[str, Any] | None = None,
  above: float | None = None,
  below: float | None = None,
  at_least: float | None = None,
) -> Check:
  """A check of any statistic of points, each the mean of its seeds.

  Args:
    words: what the statistic is.
    statistic: `(names, *values) -> [draws]`: names is the list of the points'
      columns, each value a [points, draws] array of means.
    values: columns that are averaged over seeds.
    points: columns that name a point.
    where: keeps only rows with these values.
    above: the claim holds if the whole interval is above this,
    below: or below this,
    at_least: or nowhere below this; one of the three.

  Returns:
    The check. Its 95% interval is the percentile bootstrap over seeds, the
    same seeds for all points: what repeating the experiment on the same people
    would move. It says nothing about other data sets.
  """

  def check(table: Table) -> Finding:
    names = [*points, *values, "seed", *(where or {})]
    missing = [name for name in names if name not in table]
    if missing:
      return Finding(words, why=f"the table has no column {missing[0]}")
    rows = table.where(**(where or {}))
    labels, cube = _cube(rows, values, points)
    if cube.shape[2] < 2:
      return Finding(words, why="an interval needs at least 2 seeds")
    if not np.isfinite(cube).all():
      return Finding(words, why="a point lacks some seeds, or is not finite")
    weights = _weights(cube.shape[2])
    found = np.asarray(statistic(labels, *(cube @ weights)), np.float64)
    if not np.isfinite(found).all():
      return Finding(words, why="the statistic is undefined on these rows")
    low, high = np.quantile(found[1:], (0.025, 0.975))
    if above is not None:
      holds = low > above
    elif below is not None:
      holds = high < below
    else:
      holds = low >= (at_least or 0.0)
    return Finding(words, found[0], float(low), float(high), bool(holds))

  return check


def rank_correlation(
  x: str,
  y: str,
  *,
  points: Sequence[str],
  within: Sequence[str] = (),
  where: Mapping[str, Any] | None = None,
  above: float | None = None,
  below: float | None = None,
) -> Check:
  """Spearman's correlation of two columns over points, averaged over strata.

  With two groups in a stratum it is 1 where they are in the same order by both
  columns and -1 where they are not, so the average is the share of agreement,
  from -1 to 1. A stratum where one column is constant counts as 0.

  Args:
    x: one column.
    y: the other.
    points: columns that name a point, those of `within` included.
    within: columns that name a stratum.
    where: keeps only rows with these values.
    above: see `resampled`.
    below: likewise.
  """
  where_in = [list(points).index(name) for name in within]
  told = f" within {', '.join(within)}" if within else ""

  def statistic(
    labels: list[tuple[Any, ...]], a: np.ndarray, b: np.ndarray
  ) -> np.ndarray:
    strata = [tuple(label[i] for i in where_in) for label in labels]
    found = []
    for stratum in dict.fromkeys(strata):
      rows = [i for i, own in enumerate(strata) if own == stratum]
      found.append(np.nan_to_num(claims.rank_correlation(a[rows], b[rows])))
    return np.mean(found, axis=0)

  return resampled(
    f"rank correlation of {x} and {y}{told}", statistic, values=(x, y),
    points=points, where=where, above=above, below=below,
  )  # fmt: skip


def _cube(
  rows: Table, values: Sequence[str], points: Sequence[str]
) -> tuple[list[tuple[Any, ...]], np.ndarray]:
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
