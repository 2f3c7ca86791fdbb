"""The disparity of soft predictions: smooth, so that it can be trained on."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from jaxfair.fairness._disparity import DisparityKind, demographic_disparity
from jaxfair.fairness._groups import group_sums


def soft_disparity(
  probabilities: Any,
  groups: Any,
  *,
  num_groups: int,
  disparity: DisparityKind = "rest",
  temperature: float = 0.01,
) -> jax.Array:
  """The largest disparity of soft predictions, with gradients (DPFR).

  sum_zk w(z, k) Gamma(z, k),  w = softmax(Gamma / temperature)

  with the probability of a class in place of the indicator that it was
  predicted.

  Args:
    probabilities: [n, C] of each person, summing to one.
    groups: [n] group ids; groups without people are left out.
    num_groups: G.
    disparity: which Gamma.
    temperature: T; the maximum as it falls to 0.

  Returns:
    A scalar between the mean and the maximum of the disparities; 0 if no two
    groups can be compared.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, equation (1) and the tempered softmax below it.
  """
  probabilities = jnp.asarray(probabilities)
  chex.assert_rank(probabilities, 2)
  counts = group_sums(probabilities, groups, num_groups)
  gamma = demographic_disparity(counts, notion=disparity, skip_empty=True)
  known = ~jnp.isnan(gamma)
  safe = jnp.where(known, gamma, 0.0)
  scaled = jnp.where(known, safe / temperature, -jnp.inf)
  weights = jnp.exp(scaled - jax.lax.stop_gradient(jnp.max(scaled)))
  weights = jnp.where(known, weights, 0.0)
  total = jnp.sum(weights)
  return jnp.sum(weights * safe) / jnp.where(total > 0, total, 1.0)
