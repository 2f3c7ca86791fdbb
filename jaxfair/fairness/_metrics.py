"""Accuracy, loss, selection and error rates of every group.

The label metrics keep fairlearn's names and arguments, return one value per
group, and give NaN for a group in which the rate is not defined. `parity`
turns them into gaps.
"""

from collections.abc import Callable
from typing import Protocol, Unpack

import jax
from jaxtyping import Float

from jaxfair.fairness import _groups, _inputs, rates
from jaxfair.fairness._confusion import CountOptions, confusion_counts
from jaxfair.types import GroupsLike, LabelsLike, PerPersonLike


def accuracy(
  y_true: LabelsLike,
  y_pred: LabelsLike,
  *,
  sensitive_features: GroupsLike,
  **options: Unpack[CountOptions],
) -> Float[jax.Array, "groups"]:
  """P(y_pred = y_true | group).

  Args:
    y_true: [n] class ids.
    y_pred: [n] predicted class ids.
    sensitive_features: [n] group ids.
    **options: sample_weight, num_classes, num_groups (`confusion_counts`).

  Returns:
    [G] accuracies.
  """
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.accuracy(counts)


def mean_loss(
  losses: PerPersonLike,
  *,
  sensitive_features: GroupsLike,
  sample_weight: PerPersonLike | None = None,
  num_groups: int | None = None,
) -> Float[jax.Array, "groups ..."]:
  """E[loss | group].

  Args:
    losses: [n] one loss per person, or [n, k] several.
    sensitive_features: [n] group ids.
    sample_weight: [n] weights, or None for one each.
    num_groups: static number of groups G; needed inside jit.

  Returns:
    [G] or [G, k] mean losses.
  """
  losses = _inputs.scores("losses", losses)
  group, num_groups, weights = _inputs.groups(
    sensitive_features, num_groups, sample_weight, losses=losses
  )
  return _group_means(losses, group, num_groups, weights)


class Rate(Protocol):
  """A rate of every group.

  Args:
    y_true: [n] class ids.
    y_pred: [n] predicted class ids.
    sensitive_features: [n] group ids.
    pos_label: the positive class. None: class 1 of two; of more classes, each in turn against the
      rest.
    **options: sample_weight, num_classes, num_groups (`confusion_counts`).

  Returns:
    [G] rates, or [G, C] when each class is taken in turn.
  """

  def __call__(
    self,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    sensitive_features: GroupsLike,
    pos_label: int | None = None,
    **options: Unpack[CountOptions],
  ) -> Float[jax.Array, "groups ..."]:
    """The rate."""
    ...


def _rate(of_counts: Callable[[jax.Array, int | None], jax.Array], told: str) -> Rate:
  """The rate of counts, as a metric of labels."""

  def rate(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    sensitive_features: GroupsLike,
    pos_label: int | None = None,
    **options: Unpack[CountOptions],
  ) -> jax.Array:
    counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
    return of_counts(counts, pos_label)

  rate.__name__ = rate.__qualname__ = of_counts.__name__
  rate.__doc__ = f"{told}, for the positive class k; see `Rate` for the arguments."
  return rate


selection_rate = _rate(rates.selection_rate, "P(y_pred = k | group)")
true_positive_rate = _rate(rates.true_positive_rate, "P(y_pred = k | y_true = k, group)")
false_positive_rate = _rate(rates.false_positive_rate, "P(y_pred = k | y_true != k, group)")
true_negative_rate = _rate(rates.true_negative_rate, "P(y_pred != k | y_true != k, group)")
false_negative_rate = _rate(rates.false_negative_rate, "P(y_pred != k | y_true = k, group)")

_group_means = jax.jit(_groups.group_means, static_argnums=2)
