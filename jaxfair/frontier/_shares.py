"""How much of a frontier's volume each method reaches alone."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from jaxfair import checks
from jaxfair.fairness import _intervals
from jaxfair.frontier._attaining import seed_weights
from jaxfair.frontier._objectives import Points, centered
from jaxfair.frontier._volume import hypervolume

MARGIN = 0.05  # of the range, beyond the worst value: an edge has volume, too


class Share(NamedTuple):
  """One method's part.

  Attributes:
    settings: how many it has.
    volume: hypervolume of its settings alone over that of all settings. The
      shares of several methods sum to more than 1, since they overlap.
  """

  settings: int
  volume: _intervals.Interval


def volume_shares(
  points: Points, labels: Sequence[str], *, key: jax.Array, draws: int = 100
) -> dict[str, Share]:
  """How far each method reaches, with bootstrap intervals over seeds.

  share = hypervolume(settings of the method) / hypervolume(all settings)

  Volumes are taken in units of the ranges of the means, from just beyond the
  worst mean of each objective.

  Assumptions:
    A method with more settings has more chances to look good. Compare methods
    by grids of like size.
  """
  checks.one_key("key", key)
  checks.require(
    len(labels) == len(points.values),
    f"labels has {len(labels)} entries for {len(points.values)} settings; pass one for each",
  )
  first, moved = centered(points.values)
  seeds = points.values.shape[1]
  weights = np.concatenate([np.full((1, seeds), 1 / seeds), seed_weights(points, draws, key=key)])
  means = first + np.einsum("bs,nsd->bnd", weights, moved)
  own = np.array(labels)
  unit, reference = _units(points)
  volumes = np.array(
    [
      [
        hypervolume(rows / unit, points.better, reference=reference / unit)
        for rows in (draw, *(draw[own == name] for name in dict.fromkeys(labels)))
      ]
      for draw in means
    ]
  )
  with np.errstate(invalid="ignore"):
    shares = volumes[:, 1:] / volumes[:, :1]
  found = _intervals.interval_of_draws(shares[0], shares[1:])
  return {
    name: Share(
      int((own == name).sum()),
      _intervals.Interval(
        found.estimate[i], found.low[i], found.high[i], found.level, found.dropped[i]
      ),
    )
    for i, name in enumerate(dict.fromkeys(labels))
  }


def _units(points: Points) -> tuple[np.ndarray, np.ndarray]:
  """[d] ranges of the finite means, and limits just beyond the worst."""
  means = np.where(np.isfinite(points.means), points.means, np.nan)
  known = means[~np.isnan(means).any(axis=1)]
  checks.require(len(known) > 0, "no setting has finite means")
  low, high = known.min(axis=0), known.max(axis=0)
  unit = np.where(high > low, high - low, 1.0)
  wanted_low = np.array(points.better) == "low"
  worst = np.where(wanted_low, high + MARGIN * unit, low - MARGIN * unit)
  return unit, worst
