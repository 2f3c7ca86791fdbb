"""Accuracy, loss, selection and error rates of every group.

The label metrics keep fairlearn's names and arguments, return one value per
group, and give NaN for a group in which the rate is not defined. `parity`
turns them into gaps.
"""

from typing import Any, Unpack

import jax

from jaxfair.fairness import _groups, _inputs, rates
from jaxfair.fairness._confusion import CountOptions, confusion_counts


def accuracy(
  y_true: Any, y_pred: Any, *, sensitive_features: Any, **options: Unpack[CountOptions]
) -> jax.Array:
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
  losses: Any, *, sensitive_features: Any, sample_weight: Any = None, num_groups: int | None = None
) -> jax.Array:
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


def selection_rate(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """P(y_pred = k | group), for the positive class k.

  Args:
    y_true: [n] class ids; they play no part.
    y_pred: [n] predicted class ids.
    sensitive_features: [n] group ids.
    pos_label: the positive class. None: class 1 of two; of more classes, each
      in turn against the rest.
    **options: sample_weight, num_classes, num_groups (`confusion_counts`).

  Returns:
    [G] rates, or [G, C] when each class is taken in turn.
  """
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.selection_rate(counts, pos_label)


def true_positive_rate(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """P(y_pred = k | y_true = k, group); arguments as in `selection_rate`."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.true_positive_rate(counts, pos_label)


def false_positive_rate(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """P(y_pred = k | y_true != k, group); arguments as in `selection_rate`."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.false_positive_rate(counts, pos_label)


def true_negative_rate(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """P(y_pred != k | y_true != k, group); arguments as in `selection_rate`."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.true_negative_rate(counts, pos_label)


def false_negative_rate(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """P(y_pred != k | y_true = k, group); arguments as in `selection_rate`."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return rates.false_negative_rate(counts, pos_label)


_group_means = jax.jit(_groups.group_means, static_argnums=2)
