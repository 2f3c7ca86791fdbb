"""Remedies: ways to decide that noise does not bias, and what they cost.

Each remedy is a `Mechanism`, with the event that it costs.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from jaxfair import checks
from jaxfair.decisions import _theory
from jaxfair.decisions._function_values import Problem, as_tree, identity
from jaxfair.decisions._mechanisms import JointRelease, LaplaceRelease, Mechanism, on_counts
from jaxfair.decisions._problems import title_one
from jaxfair.types import Array, ArrayLike, Number


def output_perturbation(
  *, weights: ArrayLike, max_weight: float, lower_total: float, epsilon: float
) -> Mechanism:
  """Adds noise to the shares themselves: unbiased, but usually far too noisy.

  a_i x_i / max(Z, L) + Lap(2 a_max / (L epsilon)),  Z = sum_j a_j x_j

  Args:
    weights: [n] a, 0 or above.
    max_weight: public bound on the weights.
    lower_total: L, public lower bound of the weighted total.
    epsilon: epsilon of the release.

  Privacy:
    If the total is below L, shares are of L: the bound is enforced, not
    assumed. For counts of 0 and above, one more child in place j moves all
    shares together by at most a_j / L where Z < L, and by
    2 a_j / Z <= 2 a_j / L otherwise; along the path from one data set to its
    neighbor that adds up to `theory.allotment_sensitivity`.

  Reference:
    Thesis, section 2.7.1.
  """
  own = _bounded(weights, max_weight)
  sensitivity = _theory.allotment_sensitivity(max_weight=max_weight, lower_total=lower_total)
  release = LaplaceRelease.for_epsilon(epsilon, sensitivity=sensitivity)
  query = Partial(_floored_share, own, float(lower_total))
  return Mechanism(query, release, as_tree(identity))


def linear_proxy(*, weights: ArrayLike, total: float, epsilon: float) -> Mechanism:
  """Shares of a total that is already public: linear in the counts, so exactly fair.

  a_i x~_i / Z

  Args:
    weights: [n] a.
    total: Z, public: a published figure, never computed from private counts.
    epsilon: epsilon of the counts.

  Reference:
    Thesis, section 2.7.2.
  """
  checks.positive("total", total)
  release = LaplaceRelease.for_epsilon(epsilon)
  return on_counts(Partial(_share_of, _array(weights), float(total)), release)


def linear_proxy_private(
  *,
  weights: ArrayLike,
  max_weight: float,
  lower_total: float,
  epsilon: float,
  total_share: float = 0.5,
) -> Mechanism:
  """Shares of a total that is released, too: nearly fair.

  a_i x~_i / max(Z~, L), Z~ = Z + Lap(a_max / (share epsilon))

  Counts and total carry independent noise, so every entity's bias is the same
  fraction of its share: Z E[1 / max(Z~, L)] - 1, about 2 scale^2 / Z^2. The
  thesis calls the proxy exactly fair, which is so for a public total.

  Args:
    weights: [n] a, 0 or above.
    max_weight: public bound on the weights, the sensitivity of the total.
    lower_total: L, public lower bound of the total.
    epsilon: epsilon of both releases together.
    total_share: of epsilon that goes to the total.
  """
  checks.positive("epsilon", epsilon)
  checks.number("total_share", total_share, low=0, high=1, open_low=True, open_high=True)
  checks.positive("lower_total", lower_total)
  own = _bounded(weights, max_weight)
  release = JointRelease(
    (
      LaplaceRelease.for_epsilon((1 - total_share) * epsilon),
      LaplaceRelease.for_epsilon(total_share * epsilon, sensitivity=max_weight),
    )
  )
  return Mechanism(
    Partial(_with_total, own), release, Partial(_share_of_released, own, float(lower_total))
  )


def cost_of_privacy(bias: ArrayLike, *, budget: float) -> float:
  """What must be added to the budget so that nobody loses on average.

  budget * sum of |B_i| over B_i < 0

  Args:
    bias: [n] as shares of the budget. Errors of a simulation count as losses:
      pass biases whose standard error is small against them.
    budget: in dollars.

  Reference:
    Thesis, Definition 2.4.
  """
  checks.positive("budget", budget)
  return float(budget * -np.minimum(np.asarray(bias, np.float64), 0).sum())


def allotment(weights: ArrayLike) -> Problem:
  """`title_one` with these (checked) weights, as a function of the counts."""
  checks.non_negative("weights", weights, "a weight is an expenditure")
  return Partial(_title_one, _array(weights))


def _title_one(weights: Array, counts: Array) -> jax.Array:
  return title_one(counts, weights=weights)


def _with_total(weights: Array, counts: Array) -> tuple[Array, jax.Array]:
  return counts, jnp.sum(weights * counts)


def _share_of(weights: Array, total: Number, counts: Array) -> Array:
  return weights * counts / total


def _floored_share(weights: Array, lower: Number, counts: Array) -> Array:
  weighted = weights * counts
  return weighted / jnp.maximum(jnp.sum(weighted), lower)


def _share_of_released(weights: Array, lower: Number, released: tuple[Array, Array]) -> Array:
  counts, total = released
  return weights * counts / jnp.maximum(total, lower)


def _bounded(weights: ArrayLike, max_weight: float) -> np.ndarray:
  """The weights; raises unless all lie between 0 and their public bound."""
  own = _array(weights)
  checks.non_negative("weights", own, "a weight is an expenditure")
  checks.require(
    bool(np.all(own <= max_weight)),
    f"max_weight={max_weight} is below a weight ({own.max()}); pass a bound",
  )
  return own


def _array(weights: ArrayLike) -> np.ndarray:
  return np.asarray(weights, np.float64)
