"""The confusion tensor: people counted by (group, class, predicted class)."""

import functools
from typing import TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Num

from jaxfair import checks
from jaxfair.fairness import _groups, _inputs
from jaxfair.types import Groups, GroupsLike, Labels, LabelsLike, PerPerson, PerPersonLike

_MAX_CELLS = 2**26


class CountOptions(TypedDict, total=False):
  """Arguments that every label metric passes on to `confusion_counts`.

  sample_weight: [n] weights, or None for one each.
  num_classes: static number of classes; needed inside jit.
  num_groups: static number of groups; needed inside jit.
  """

  sample_weight: PerPersonLike | None
  num_classes: int | None
  num_groups: int | None


def confusion_counts(
  y_true: LabelsLike,
  y_pred: LabelsLike,
  *,
  sensitive_features: GroupsLike,
  num_classes: int | None = None,
  num_groups: int | None = None,
  sample_weight: PerPersonLike | None = None,
) -> Num[jax.Array, "groups classes classes"]:
  """Counts people by group, class and predicted class.

  counts[g, i, j] = |{group = g, y_true = i, y_pred = j}|

  Every label metric is a function of this tensor (see `rates`).

  Args:
    y_true: [n] class ids.
    y_pred: [n] predicted class ids.
    sensitive_features: [n] group ids.
    num_classes: static number of classes C; by default the largest id plus
      one, and at least 2.
    num_groups: static number of groups G; by default the largest id plus one.
    sample_weight: [n] weights, or None for one each.

  Returns:
    [G, C, C] int32 counts, or floating totals when weights are given. Ids out
    of range are refused; inside jit, where they cannot be seen, their rows are
    left out.
  """
  y_true, y_pred = _inputs.ids("y_true", y_true), _inputs.ids("y_pred", y_pred)
  group, num_groups, weights = _inputs.groups(
    sensitive_features, num_groups, sample_weight, y_true=y_true, y_pred=y_pred
  )
  num_classes = _inputs.count("num_classes", num_classes, minimum=2, y_true=y_true, y_pred=y_pred)
  cells = num_groups * num_classes**2
  checks.require(
    cells <= _MAX_CELLS,
    f"{num_groups} groups and {num_classes} classes make {cells} cells; encode "
    "the ids as 0..count-1 without gaps",
  )
  return _count(y_true, y_pred, group, weights, num_classes, num_groups)


def prediction_counts(
  y_pred: LabelsLike, *, sensitive_features: GroupsLike, **options: Unpack[CountOptions]
) -> Num[jax.Array, "groups classes"]:
  """Counts people by group and predicted class, m(z, k) in the papers.

  Returns:
    [G, C] counts.
  """
  y_pred = _inputs.ids("y_pred", y_pred)
  nobody = np.zeros(y_pred.shape, np.int32)  # the true class plays no part
  counts = confusion_counts(nobody, y_pred, sensitive_features=sensitive_features, **options)
  return counts[:, 0]


def with_everybody(counts: jax.Array) -> jax.Array:
  """[G, ...] counts by group and, as row G, their sum."""
  return jnp.concatenate([counts, jnp.sum(counts, axis=0, keepdims=True)])


@functools.partial(jax.jit, static_argnums=(4, 5))
def _count(
  y_true: Labels,
  y_pred: Labels,
  group: Groups,
  weights: PerPerson | None,
  num_classes: int,
  num_groups: int,
) -> jax.Array:
  shape = (num_groups, num_classes, num_classes)
  ids = [jnp.asarray(i).astype(jnp.int32) for i in (group, y_true, y_pred)]
  # An id out of range would land in a neighbor's cell.
  known = jnp.ones(ids[0].shape, bool)
  for i, size in zip(ids, shape, strict=True):
    known &= (i >= 0) & (i < size)
  cell = (ids[0] * num_classes + ids[1]) * num_classes + ids[2]
  cell = jnp.where(known, cell, -1)
  size = num_groups * num_classes**2
  return _groups.group_counts(cell, size, weights).reshape(shape)
