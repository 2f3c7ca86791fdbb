"""Group-fairness gaps of predicted labels, with fairlearn's names and values.

Each compares a rate of `metrics` between groups, or of each group with
everybody (`gaps`). Differences are 0 when groups are treated alike, ratios 1.
Of more than two classes, with no `pos_label`, each is taken in turn against
the rest and the worst one counts. Common arguments:

  y_true, y_pred: [n] class ids.
  sensitive_features: [n] group ids.
  method: "between_groups" or "to_overall".
  pos_label: the positive class. None: class 1 of two; of more, the worst.
  skip_empty: leave out groups in which the rate is not defined. Otherwise one
    such group makes the result NaN.
  **options: sample_weight, num_classes, num_groups (`confusion_counts`).
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, Unpack

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness import _gaps, rates
from jaxfair.fairness._confusion import CountOptions, confusion_counts, with_everybody
from jaxfair.fairness._gaps import Method


def demographic_parity_difference(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Largest difference of the selection rate P(y_pred = k | group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _difference(counts, rates.selection_rate, pos_label, method, skip_empty)


def demographic_parity_ratio(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Smallest ratio of the selection rate P(y_pred = k | group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _ratio(counts, rates.selection_rate, pos_label, method, skip_empty)


def equal_opportunity_difference(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Largest difference of P(y_pred = k | y_true = k, group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _difference(counts, rates.true_positive_rate, pos_label, method, skip_empty)


def equal_opportunity_ratio(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Smallest ratio of P(y_pred = k | y_true = k, group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _ratio(counts, rates.true_positive_rate, pos_label, method, skip_empty)


def equalized_odds_difference(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  agg: Literal["worst_case", "mean"] = "worst_case",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Worse (or mean, by `agg`) of the true and false positive differences."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _aggregate(agg, jnp.maximum)(
    _difference(counts, rates.true_positive_rate, pos_label, method, skip_empty),
    _difference(counts, rates.false_positive_rate, pos_label, method, skip_empty),
  )


def equalized_odds_ratio(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  agg: Literal["worst_case", "mean"] = "worst_case",
  pos_label: int | None = None,
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Worse (or mean, by `agg`) of the true and false positive ratios."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _aggregate(agg, jnp.minimum)(
    _ratio(counts, rates.true_positive_rate, pos_label, method, skip_empty),
    _ratio(counts, rates.false_positive_rate, pos_label, method, skip_empty),
  )


def accuracy_parity_difference(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Largest difference of the accuracy P(y_pred = y_true | group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _difference(counts, _accuracy, None, method, skip_empty)


def accuracy_parity_ratio(
  y_true: Any,
  y_pred: Any,
  *,
  sensitive_features: Any,
  method: Method = "between_groups",
  skip_empty: bool = False,
  **options: Unpack[CountOptions],
) -> jax.Array:
  """Smallest ratio of the accuracy P(y_pred = y_true | group)."""
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  return _ratio(counts, _accuracy, None, method, skip_empty)


# ([..., C, C] counts, pos_label) -> [...] or, class by class, [..., C].
_Rate = Callable[[jax.Array, int | None], jax.Array]
_compiled = functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))


@_compiled
def _difference(
  counts: jax.Array, rate: _Rate, pos_label: int | None, method: Method, skip_empty: bool
) -> jax.Array:
  by_group, overall = _rates(counts, rate, pos_label)
  gap = _gaps.difference(by_group, overall, method=method, skip_empty=skip_empty)
  return (jnp.nanmax if skip_empty else jnp.max)(gap)  # over classes, if any


@_compiled
def _ratio(
  counts: jax.Array, rate: _Rate, pos_label: int | None, method: Method, skip_empty: bool
) -> jax.Array:
  by_group, overall = _rates(counts, rate, pos_label)
  gap = _gaps.ratio(by_group, overall, method=method, skip_empty=skip_empty)
  return (jnp.nanmin if skip_empty else jnp.min)(gap)


def _rates(counts: jax.Array, rate: _Rate, pos_label: int | None) -> tuple[jax.Array, jax.Array]:
  both = rate(with_everybody(counts), pos_label)
  return both[:-1], both[-1]


def _accuracy(counts: jax.Array, pos_label: int | None) -> jax.Array:
  del pos_label  # every class counts alike
  return rates.accuracy(counts)


def _aggregate(
  agg: str, worse: Callable[[jax.Array, jax.Array], jax.Array]
) -> Callable[[jax.Array, jax.Array], jax.Array]:
  checks.one_of("agg", agg, ("worst_case", "mean"))
  return worse if agg == "worst_case" else lambda a, b: (a + b) / 2
