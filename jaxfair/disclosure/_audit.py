"""Leakage and accuracy of a disclosure, overall and by group."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness._groups import group_counts, group_means
from jaxfair.types import Groups, Labels


class Audit(NamedTuple):
  """The effect of asking less, per group [G] or for everyone [].

  Attributes:
    leakage: mean number of columns revealed.
    share: the same over the number of columns that could be asked.
    nothing: share of people who revealed nothing.
    accuracy: of the representative label.
    accuracy_lost: accuracy of the full model minus that.
    agreement: how often the label is the full model's.
    count: number of people.
  """

  leakage: jax.Array
  share: jax.Array
  nothing: jax.Array
  accuracy: jax.Array
  accuracy_lost: jax.Array
  agreement: jax.Array
  count: Any


def audit(
  count: Labels,
  label: Labels,
  full_label: Labels,
  y: Labels,
  group: Groups,
  *,
  num_questions: int,
  num_groups: int,
) -> tuple[Audit, Audit]:
  """Measures a disclosure, group by group; works under jit.

  Args:
    count: [n] columns revealed, as `Disclosed.count`.
    label: [n] as `Disclosed.label`.
    full_label: [n] what the model says with everything known.
    y: [n] the truth.
    group: [n] group ids.
    num_questions: how many columns could be asked.
    num_groups: G.

  Returns:
    For each group (NaN where it is empty), and for everyone.
  """
  checks.one_per_person(count=count, label=label, full_label=full_label, y=y, group=group)
  count, label = jnp.asarray(count), jnp.asarray(label)
  right = (label == y).astype(jnp.float32)
  before = (jnp.asarray(full_label) == y).astype(jnp.float32)
  columns = jnp.stack(
    [
      count.astype(jnp.float32),
      count / num_questions,
      (count == 0).astype(jnp.float32),
      right,
      before - right,
      (label == full_label).astype(jnp.float32),
    ],
    axis=1,
  )
  everyone = jnp.zeros_like(jnp.asarray(group))

  def of(ids: jax.Array, groups: int) -> Audit:
    means = group_means(columns, ids, groups)
    return Audit(*[*means.T, group_counts(ids, groups)])

  groups = of(jnp.asarray(group), num_groups)
  total = jax.tree.map(lambda leaf: leaf[0], of(everyone, 1))
  return groups, total
