"""Group-fairness gaps of predicted labels, with fairlearn's names and values.

Each compares a rate of `metrics` between groups, or of each group with
everybody (`gaps`). Differences are 0 when groups are treated alike, ratios 1.
Of more than two classes, with no `pos_label`, each is taken in turn against
the rest and the worst one counts. Common arguments:

  y_true, y_pred: [n] class ids.
  sensitive_features: [n] group ids.
  method: "between_groups" or "to_overall".
  pos_label: the positive class. None: class 1 of two; of more, the worst. Not
    for accuracies.
  agg: of the two rates of equalized odds, the "worst_case" (default) or "mean".
  skip_empty: leave out groups in which the rate is not defined. Otherwise one
    such group makes the result NaN.
  **options: sample_weight, num_classes, num_groups (`confusion_counts`).
"""

import functools
from collections.abc import Callable
from typing import Protocol, Unpack

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness import _gaps, rates
from jaxfair.fairness._confusion import CountOptions, confusion_counts, with_everybody
from jaxfair.fairness._gaps import Method
from jaxfair.types import GroupsLike, LabelsLike

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


class Gap(Protocol):
  """A gap between groups; see the module for its arguments."""

  def __call__(
    self,
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    sensitive_features: GroupsLike,
    method: Method = "between_groups",
    agg: str | None = None,
    pos_label: int | None = None,
    skip_empty: bool = False,
    **options: Unpack[CountOptions],
  ) -> jax.Array:
    """The gap."""
    ...


def _gap(name: str, told: str, *used: _Rate) -> Gap:
  """The gap of one rate, or of several at once: their worst, or their mean."""
  is_ratio = name.endswith("_ratio")
  compare, worse = (_ratio, jnp.minimum) if is_ratio else (_difference, jnp.maximum)

  def gap(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    sensitive_features: GroupsLike,
    method: Method = "between_groups",
    agg: str | None = None,
    pos_label: int | None = None,
    skip_empty: bool = False,
    **options: Unpack[CountOptions],
  ) -> jax.Array:
    wrong = {
      "agg": agg is not None and len(used) == 1,
      "pos_label": pos_label is not None and used == (_accuracy,),
    }
    for option, refused in wrong.items():
      if refused:
        raise TypeError(f"{name}() got an unexpected keyword argument {option!r}")
    checks.one_of("agg", agg or "worst_case", ("worst_case", "mean"))
    counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
    found = [compare(counts, rate, pos_label, method, skip_empty) for rate in used]
    if len(found) == 1:
      return found[0]
    return (found[0] + found[1]) / 2 if agg == "mean" else worse(*found)

  gap.__name__ = gap.__qualname__ = name
  gap.__doc__ = told
  return gap


_ODDS = (rates.true_positive_rate, rates.false_positive_rate)

demographic_parity_difference = _gap(
  "demographic_parity_difference",
  "Largest difference of the selection rate P(y_pred = k | group).",
  rates.selection_rate,
)
demographic_parity_ratio = _gap(
  "demographic_parity_ratio",
  "Smallest ratio of the selection rate P(y_pred = k | group).",
  rates.selection_rate,
)
equal_opportunity_difference = _gap(
  "equal_opportunity_difference",
  "Largest difference of P(y_pred = k | y_true = k, group).",
  rates.true_positive_rate,
)
equal_opportunity_ratio = _gap(
  "equal_opportunity_ratio",
  "Smallest ratio of P(y_pred = k | y_true = k, group).",
  rates.true_positive_rate,
)
equalized_odds_difference = _gap(
  "equalized_odds_difference",
  "Worse (or mean, by `agg`) of the true and false positive differences.",
  *_ODDS,
)
equalized_odds_ratio = _gap(
  "equalized_odds_ratio", "Worse (or mean, by `agg`) of the true and false positive ratios.", *_ODDS
)
accuracy_parity_difference = _gap(
  "accuracy_parity_difference",
  "Largest difference of the accuracy P(y_pred = y_true | group).",
  _accuracy,
)
accuracy_parity_ratio = _gap(
  "accuracy_parity_ratio", "Smallest ratio of the accuracy P(y_pred = y_true | group).", _accuracy
)
