"""Whether two frontiers have the same shape, and whether choices carry over from one to the other.

A frontier is treated as a surface: the best accuracy that limits on the
other objectives allow.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness import _intervals
from jaxfair.frontier._attaining import seed_weights
from jaxfair.frontier._objectives import Points, centered, costs
from jaxfair.types import PyTree

Grid: TypeAlias = Mapping[str, Sequence[float]]
HEIGHT = "accuracy"  # the objective that is made best


class Shapes(NamedTuple):
  """How alike two surfaces are where both have a setting within the limits.

  Attributes:
    correlation: Pearson's, over the grid. Every surface rises as limits are
      loosened, so it is high for most pairs; look at `apart`, too.
    shift: mean of the first minus the second: a difference of level.
    apart: root mean square of what differs once the level is taken out, in
      units of the height. 0 for equal shapes.
  """

  correlation: _intervals.Interval
  shift: _intervals.Interval
  apart: _intervals.Interval


class Transfer(NamedTuple):
  """How settings that are chosen on one set perform on another.

  Attributes:
    violated: share of the limits for which the chosen setting breaks some
      limit on the second set.
    regret: how much better than the chosen one the best setting within the
      limits is on the second set; mean over limits that are kept.
  """

  violated: _intervals.Interval
  regret: _intervals.Interval


def surface(points: Points, grid: Grid, *, height: str = HEIGHT) -> np.ndarray:
  """The best height within limits: [len of each grid axis], NaN for none."""
  found = _surfaces((points,), grid, height, draws=0, key=None)
  shape = [len(limits) for limits in grid.values()]
  return _sign(points, height) * found["best"][0, 0].reshape(shape)


def limit_grid(
  first: Points, second: Points, *, names: Sequence[str] = ("epsilon", "gap"), steps: int = 6
) -> dict[str, np.ndarray]:
  """Limits that both frontiers are asked about: quantiles of all means."""
  checks.integer("steps", steps, low=1)
  grid = {}
  for name in names:
    column = first.column(name)
    found = np.concatenate([first.means[:, column], second.means[:, column]])
    shares = np.arange(1, steps + 1) / steps
    if first.better[column] == "high":
      shares = 1 - shares
    kept = np.quantile(found[np.isfinite(found)], shares, method="nearest")
    grid[name] = np.unique(kept)
  return grid


def compare_shapes(
  first: Points, second: Points, grid: Grid, *, key: jax.Array, draws: int = 1000
) -> Shapes:
  """Statistics of two surfaces, with bootstrap intervals over seeds.

  Assumptions:
    Maxima of noisy means are a little too high, on both sides alike; noise
    lowers the correlation and raises `apart`.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier, RQ3, where surfaces
    are compared by eye.
  """
  found = _surfaces((first, second), grid, HEIGHT, draws=draws, key=key)
  top = _sign(first, HEIGHT) * found["best"]  # [1 + draws, 2, cells]
  gap = top[:, 0] - top[:, 1]
  with np.errstate(invalid="ignore", divide="ignore"):
    known = ~np.isnan(gap)
    shift = _mean(gap, known)
    apart = np.sqrt(_mean((gap - shift[:, None]) ** 2, known))
    a, b = (
      np.where(known, side - _mean(side, known)[:, None], 0.0) for side in (top[:, 0], top[:, 1])
    )
    spread = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    correlation = (a * b).sum(1) / spread
  return Shapes(*(_interval(values) for values in (correlation, shift, apart)))


def transfer(
  first: Points, second: Points, grid: Grid, *, key: jax.Array, draws: int = 1000
) -> Transfer:
  """Specifies on one set and looks what that does on another.

  For all limits of the grid the best setting is chosen on the first set.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier, RQ3: specification
    without access to the data.
  """
  checks.require(
    len(first.values) == len(second.values),
    f"first has {len(first.values)} settings and second "
    f"{len(second.values)}; pass the same settings in the same order",
  )
  found = _surfaces((first, second), grid, HEIGHT, draws=draws, key=key)
  asked = ~np.isnan(found["best"][:, 0])
  kept = asked & found["kept"]
  with np.errstate(invalid="ignore"):
    # Costs: what the chosen setting has above the best that was to be had.
    regret = _mean(found["used"] - found["best"][:, 1], kept)
    violated = _mean(~found["kept"], asked)
  return Transfer(_interval(violated), _interval(regret))


def _surfaces(
  both: tuple[Points, ...], grid: Grid, height: str, *, draws: int, key: jax.Array | None
) -> dict[str, np.ndarray]:
  """Best costs within limits and whom they belong to, of means and draws.

  Returns:
    best [1 + draws, sides, cells]; of what the first side's best settings are
    on the last side: used [1 + draws, cells] and kept, whether within limits.
  """
  points = both[0]
  checks.require(bool(grid), "grid is empty; name limits of an objective")
  for other in both[1:]:
    checks.require(
      other.objectives == points.objectives,
      f"the objectives differ: {points.names} and {other.names}",
    )
  columns = [points.column(name) for name in grid]
  checks.require(
    points.column(height) not in columns,
    f"grid has limits on {height!r}, which is the height; leave them out",
  )
  corners = np.meshgrid(*grid.values(), indexing="ij")
  limits = np.stack([np.asarray(c, np.float64).ravel() for c in corners], 1)
  checks.finite("grid", limits)
  limits = costs(limits, [points.better[c] for c in columns])
  weights, parts = [], []
  if key is not None:
    checks.one_key("key", key)
    checks.integer("draws", draws, low=2)
  for i, one in enumerate(both):
    seeds = one.values.shape[1]
    own = np.full((1, seeds), 1 / seeds)  # the means themselves come first
    if key is not None:
      side = jax.random.fold_in(key, i)
      own = np.concatenate([own, seed_weights(one, draws, key=side)])
    weights.append(own)
    first, moved = centered(costs(one.values, one.better))
    order = [*columns, one.column(height)]
    parts.append((first[:, order], moved[:, :, order]))
  with jax.enable_x64(True):
    found = _looked_up(*jax.tree.map(jnp.asarray, (weights, parts, limits)))
    return jax.tree.map(np.asarray, found)


@jax.jit
def _looked_up(weights: PyTree, parts: PyTree, limits: jax.Array) -> PyTree:
  def draw(own: PyTree) -> dict[str, jax.Array]:
    means = [
      first + jnp.einsum("s,nsd->nd", weight, moved)
      for weight, (first, moved) in zip(own, parts, strict=True)
    ]

    def cell(limit: jax.Array) -> dict[str, jax.Array]:
      within = [jnp.all(m[:, :-1] <= limit, axis=1) for m in means]
      tall = [jnp.where(w, m[:, -1], jnp.inf) for w, m in zip(within, means, strict=True)]
      chosen = jnp.argmin(tall[0])
      best = jnp.stack([jnp.min(t) for t in tall])
      return {
        "best": jnp.where(jnp.isinf(best), jnp.nan, best),
        "used": means[-1][chosen, -1],
        "kept": within[-1][chosen],
      }

    found = jax.vmap(cell)(limits)
    return found | {"best": found["best"].T}

  return jax.lax.map(draw, tuple(weights))


def _sign(points: Points, height: str) -> float:
  return -1.0 if points.better[points.column(height)] == "high" else 1.0


def _mean(values: np.ndarray, known: np.ndarray) -> np.ndarray:
  """[draws] means over the known cells; NaN without any."""
  return np.where(known, values, 0.0).sum(1) / known.sum(1)


def _interval(values: np.ndarray) -> _intervals.Interval:
  """The interval of a statistic; the first value is the estimate, the others are draws."""
  return _intervals.interval_of_draws(values[0], values[1:])
