"""Post-processing of released numbers: it costs no privacy, but is not always harmless.

Clipping at 0 overpays small entities; `temper` takes some of it back. Rounding
at random and the sum-preserving projection add no unfairness.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.decisions import _theory
from jaxfair.types import Array, ArrayLike, Number

GRID = 400


def non_negative(values: Array, *, lower: Number = 0.0) -> jax.Array:
  """max(lower, value): clips counts from below."""
  return jnp.maximum(values, lower)


def temper(values: Array, *, temperature: Number, lower: Number = 0.0) -> jax.Array:
  """Clips counts from below and removes part of the bias that clipping adds to small counts.

  u = max(lower, value);  max(lower, u - T / (u + 1 - lower))

  At T = 0 it is `non_negative`.

  Reference:
    Thesis, section 2.7.3.
  """
  raised = jnp.maximum(values, lower)
  return jnp.maximum(raised - temperature / (raised + 1 - lower), lower)


def tempered_laplace_mean(
  value: ArrayLike, *, scale: Number, temperature: Number, lower: Number = 0.0
) -> np.ndarray:
  """E[temper(value + Lap(scale))], in closed form.

  With u0 (u0 + 1) = T nothing below lower + u0 survives, so the mean is that of
  max(lower + u0, .), less u0 where that binds and T / (u + 1) where not.
  """
  checks.non_negative("temperature", temperature)
  x = np.asarray(value, np.float64) - lower
  # The smaller root without cancellation: 2 T / (1 + sqrt(1 + 4 T)).
  heat = np.asarray(temperature, np.float64)
  edge = 2 * heat / (1 + np.sqrt(1 + 4 * heat))
  away = 0.5 * np.exp(-np.abs(x - edge) / scale)
  cut = np.where(x > edge, away, 1 - away)
  mean = _theory.clipped_laplace_mean(x, scale=scale, lower=edge)
  taken = _theory.inverse_tail(x + 1, scale=scale, start=edge + 1)
  return np.asarray(lower + mean - edge * cut - heat * taken)


def best_temperature(*, scale: float, lower: float = 0.0, values: ArrayLike | None = None) -> float:
  """The temperature that treats counts of all sizes most alike.

  argmin_T max_x |E[temper(x~)] - x| - min_x |E[temper(x~)] - x|

  Args:
    scale: scale of the Laplace noise.
    lower: the bound of the counts.
    values: public counts x to be fair to; by default all that are at least `lower`. The
      least error over all of them is 0, in the limit of large x, and the largest is at most
      50 scales above `lower`, where a grid looks for it. True counts make an answer that is
      not private: it reveals something about them.

  Returns:
    T*, to a relative 1e-3 of the largest that was tried.

  Privacy:
    Depends on nothing private unless `values` does.

  Reference:
    Thesis, equation 2.3, which leaves the private choice open.
  """
  checks.positive("scale", scale)
  everything = lower + 50 * scale * np.linspace(0, 1, GRID) ** 3
  grid = np.asarray(everything if values is None else values, np.float64)
  checks.number("values", grid, low=lower)

  def spread(heats: np.ndarray) -> np.ndarray:
    means = tempered_laplace_mean(grid, scale=scale, temperature=heats[:, None], lower=lower)
    away = np.abs(means - grid)
    return np.asarray(away.max(axis=1) - (0.0 if values is None else away.min(axis=1)))

  # At T = (2 scale)^2 a count of scale loses more than it ever gained.
  low, high = 0.0, 4 * scale * (scale + 1)
  for _ in range(4):
    heats = np.linspace(low, high, 101)
    best = int(np.argmin(spread(heats)))
    low, high = heats[max(best - 1, 0)], heats[min(best + 1, 100)]
  return float(heats[best])
