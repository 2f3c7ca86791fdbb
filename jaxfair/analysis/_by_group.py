"""A number for every group and for everybody, side by side."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _notebook, checks
from jaxfair.fairness._groups import group_means
from jaxfair.types import Groups, PerPerson


class ByGroup(NamedTuple):
  """One statistic, for every group and for the population.

  Attributes:
    group: [..., G] the statistic of each group; NaN for an empty one.
    population: [...] the statistic of everybody.
  """

  group: Any
  population: Any

  @property
  def gap(self) -> jax.Array:
    """[..., G] |group - population|; xi_a when the statistic is a risk."""
    return abs(self.group - self.population[..., None])

  def to_pandas(self, name: str = "value") -> Any:
    """A `pandas.DataFrame` with a row for each group and one for everyone."""
    checks.require(
      np.ndim(self.group) == 1, f"group has shape {np.shape(self.group)}; select one member first"
    )
    values = np.append(np.asarray(self.group), np.asarray(self.population))
    labels = [*map(str, range(np.shape(self.group)[0])), "everyone"]
    return _notebook.frame({"group": labels, name: values})


def mean_by_group(values: PerPerson, group: Groups, num_groups: int) -> ByGroup:
  """Means of the groups and of everybody."""
  values = jnp.asarray(values)
  chex.assert_rank(values, 1)
  return ByGroup(group_means(values, group, num_groups), jnp.mean(values))


def weights_by_group(group: Groups, num_groups: int) -> jax.Array:
  """[G + 1, n] weights whose sums with [n] values are those means.

  The last row is the population's. An empty group's row is NaN.
  """
  group = jnp.asarray(group)
  chex.assert_rank(group, 1)
  member = group == jnp.arange(num_groups)[:, None]
  rows = jnp.concatenate([member, jnp.ones((1, group.shape[0]), bool)])
  count = jnp.sum(rows, axis=1, keepdims=True)
  return jnp.where(count > 0, rows / jnp.maximum(count, 1), jnp.nan)
