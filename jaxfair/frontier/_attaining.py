"""How sure is it that a setting is on the frontier: a bootstrap over seeds."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness import _resampling
from jaxfair.frontier._dominance import dominated, non_dominated
from jaxfair.frontier._objectives import Points, centered, costs


class Attainment(NamedTuple):
  """Settings, and how often each is Pareto-optimal.

  Attributes:
    on: [n] whether the means over all seeds are on the frontier.
    probability: [n] share of the draws of seeds in which they are.
    draws: how many there were.
  """

  on: np.ndarray
  probability: np.ndarray
  draws: int


def attainment(points: Points, *, key: jax.Array, draws: int = 1000) -> Attainment:
  """Probability that a setting is on the frontier of means over seeds.

  Seeds are drawn with replacement, the same for all settings, since seeds
  stand for splits that settings share; means are then compared again. All
  draws are one compiled program.

  Args:
    points: settings and seeds.
    key: used once.
    draws: number of draws of seeds; n^2 comparisons each.

  Assumptions:
    Seeds are independent. With few of them draws vary less than seeds do, by
    (s - 1) / s in variance: with 5 seeds probabilities are a little too near
    0 and 1. One seed says nothing: every probability is 0 or 1.
  """
  checks.one_key("key", key)
  checks.integer("draws", draws, low=1)
  first, moved = centered(costs(points.values, points.better))
  on = non_dominated(points.means, points.better).on
  weights = seed_weights(points, draws, key=key)
  with jax.enable_x64(True):
    undominated = _counted(*map(jnp.asarray, (weights, first, moved)))
  return Attainment(on, np.asarray(undominated) / draws, draws)


def seed_weights(points: Points, draws: int, *, key: jax.Array) -> np.ndarray:
  """[draws, s] weights of the seeds: how often each is drawn, over s."""
  seeds = points.values.shape[1]
  drawn = _resampling.row_weights(_resampling.generator_of(key), seeds, draws)
  return np.concatenate(list(drawn))[:draws].astype(np.float64) / seeds


@jax.jit
def _counted(weights: jax.Array, first: jax.Array, moved: jax.Array) -> jax.Array:
  """[n] in how many draws nobody dominates a setting."""

  def draw(total: jax.Array, own: jax.Array) -> tuple[jax.Array, None]:
    means = first + jnp.einsum("s,nsd->nd", own, moved)
    return total + ~dominated(means), None

  start = jnp.zeros(first.shape[0], jnp.int32)
  return jax.lax.scan(draw, start, weights)[0]
