"""The disparity of soft predictions: smooth, so that it can be trained on."""

import chex
import jax
import jax.numpy as jnp

from jaxfair.fairness._disparity import DisparityKind, demographic_disparity
from jaxfair.fairness._groups import group_sums
from jaxfair.fairness._known_labels import PARITY, NotionName, cells, known_labels
from jaxfair.types import Groups, LabelsLike, Scores


def soft_disparity(
  probabilities: Scores,
  groups: Groups,
  *,
  num_groups: int,
  disparity: DisparityKind = "rest",
  temperature: float = 0.01,
  notion: NotionName = PARITY,
  truth: LabelsLike | None = None,
) -> jax.Array:
  """The largest disparity of soft predictions, with gradients (DPFR).

  sum_zk w(z, k) Gamma(z, k),  w = softmax(Gamma / temperature)

  with the probability of a class in place of the indicator that it was
  predicted. Notions other than demographic parity take the maximum over the true classes whose
  people they compare, too.

  Args:
    probabilities: [n, C] of each person, summing to one.
    groups: [n] group ids; groups without people are left out.
    num_groups: G.
    disparity: which Gamma.
    temperature: T; the maximum as it falls to 0.
    notion: "demographic_parity"; "equalized_odds", parity among the people of each true class;
      "equal_opportunity", that they are given their own class (of two classes, class 1 alone); or
      "accuracy_parity", that everybody is.
    truth: [n] true class ids, for all notions but the first.

  Returns:
    A scalar between the mean and the maximum of the disparities; 0 if no two
    groups can be compared.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, equation (1) and the tempered softmax below it.
  """
  probabilities = jnp.asarray(probabilities)
  chex.assert_rank(probabilities, 2)
  size, num_classes = probabilities.shape
  truth = known_labels(truth, notion, size=size, num_classes=num_classes)
  if truth is None:
    counts = group_sums(probabilities, groups, num_groups)
    gamma = demographic_disparity(counts, notion=disparity, skip_empty=True)
  else:
    counts = _conditioned(
      probabilities, jnp.asarray(groups), jnp.asarray(truth), num_groups, notion
    )
    gamma = jax.vmap(lambda table: demographic_disparity(table, notion=disparity, skip_empty=True))(
      counts
    )
  known = ~jnp.isnan(gamma)
  safe = jnp.where(known, gamma, 0.0)
  scaled = jnp.where(known, safe / temperature, -jnp.inf)
  weights = jnp.exp(scaled - jax.lax.stop_gradient(jnp.max(scaled)))
  weights = jnp.where(known, weights, 0.0)
  total = jnp.sum(weights)
  return jnp.sum(weights * safe) / jnp.where(total > 0, total, 1.0)


def _conditioned(
  probabilities: jax.Array, groups: jax.Array, truth: jax.Array, num_groups: int, notion: NotionName
) -> jax.Array:
  """[S, G, K] sums of soft categories, by stratum of the true label and group."""
  own = cells(notion, probabilities.shape[1])
  indicator = jax.nn.one_hot(own.category, own.num_categories)[truth]  # [n, C, K]
  soft = jnp.einsum("nc,nck->nk", probabilities, indicator, precision="highest")
  stratum, total = jnp.asarray(own.stratum)[truth], own.num_strata * num_groups
  cell = jnp.where(stratum >= 0, stratum * num_groups + groups, total)
  return group_sums(soft, cell, total).reshape(own.num_strata, num_groups, -1)
