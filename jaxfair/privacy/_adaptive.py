"""A clip bound that follows a quantile of the gradient norms, privately."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.privacy import noise
from jaxfair.types import Key

# Of a bound: noise in proportion to it is a normal float32 number, with room for its digits. Below
# 2^-126 a scale counts as zero, and a sum would be released without noise.
SMALLEST = 2.0**-80


@dataclasses.dataclass(frozen=True)
class QuantileClip:
  """Moves the clip bound towards a quantile of the norms.

  share = (sum_i (1[norm_i <= clip] - 1/2) + N(0, count_noise^2)) / size + 1/2
  clip <- clip exp(-rate (share - quantile))

  with `size` the expected batch size, a public constant.

  Attributes:
    quantile: share of the gradients that should fit under the bound.
    rate: how fast the bound moves.
    count_noise: standard deviation of the noise on the count, in people.
    lowest: the bound never falls below this public number (nor below 2^-80 in any case); without
      it the bound can shrink with the gradients until steps are mostly noise.

  Privacy:
    One person moves the centered count by 1/2. Released together with a sum of
    noise multiplier z, the two are one Gaussian mechanism of multiplier
    (z^-2 + (2 count_noise)^-2)^(-1/2): `joint_multiplier`. `lowest` is a public constant, so
    keeping to it costs nothing.

  Reference:
    Andrew, Thakkar, McMahan and Ramaswamy 2021, Algorithm 1 and Theorem 1.
  """

  quantile: float = 0.5
  rate: float = 0.2
  count_noise: float = 10.0
  lowest: float = 0.0

  def __post_init__(self) -> None:
    checks.number("quantile", self.quantile, low=0.0, high=1.0)
    checks.positive("rate", self.rate)
    checks.positive("count_noise", self.count_noise)
    checks.non_negative("lowest", self.lowest)

  def update(
    self,
    clip: float | jax.Array,
    norms: jax.Array,
    mask: jax.Array,
    *,
    expected_size: float,
    key: Key,
  ) -> jax.Array:
    """The next bound, from this step's norms and one noisy count."""
    count = self.centered_count(clip, norms, mask)
    return self.update_from_count(clip, count, expected_size=expected_size, key=key)

  def centered_count(self, clip: float | jax.Array, norms: jax.Array, mask: jax.Array) -> jax.Array:
    """sum_i (1[norm_i <= clip] - 1/2), which is summed over the parts of a batch. Not private."""
    centered = jnp.where(norms <= clip, 0.5, -0.5)
    return jnp.sum(jnp.where(mask, centered, 0.0))

  def update_from_count(
    self, clip: float | jax.Array, count: jax.Array, *, expected_size: float, key: Key
  ) -> jax.Array:
    """The next bound, from the centered count of the whole batch; adds its noise."""
    noisy = noise.gaussian(count, sigma=self.count_noise, key=key)
    share = noisy / expected_size + 0.5
    moved = clip * jnp.exp(-self.rate * (share - self.quantile))
    return jnp.maximum(moved, max(self.lowest, SMALLEST))

  def joint_multiplier(self, noise_multiplier: float) -> float:
    """The event for the accountant: both releases as one."""
    checks.positive(
      "noise_multiplier",
      noise_multiplier,
      remedy="without noise on the sum no event covers the training",
    )
    return (noise_multiplier**-2 + (2 * self.count_noise) ** -2) ** -0.5

  def sum_multiplier(self, joint: float) -> float:
    """The multiplier of the sum for which the joint multiplier has the given value."""
    left = joint**-2 - (2 * self.count_noise) ** -2
    if left <= 0:
      raise checks.ArgumentError(
        f"count_noise={self.count_noise:g} alone costs more than a noise "
        f"multiplier of {joint:g} allows; use more than {joint / 2:.4g}"
      )
    return math.nextafter(left**-0.5, math.inf)
