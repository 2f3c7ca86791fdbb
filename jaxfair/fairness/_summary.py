"""One call, one table: how a model treats every group."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _notebook, checks
from jaxfair.fairness import _groups as groups
from jaxfair.fairness import _inputs, rates
from jaxfair.fairness._confusion import CountOptions, confusion_counts, with_everybody
from jaxfair.types import Array, GroupsLike, LabelsLike, PerPersonLike


class Measures(NamedTuple):
  """What was measured, for every group or for everybody.

  Attributes:
    count: number of people, or their total weight.
    accuracy: P(y_pred = y_true).
    loss: mean loss, or None when no losses were given.
    selection_rate: P(y_pred = k).
    true_positive_rate: P(y_pred = k | y_true = k).
    false_positive_rate: P(y_pred = k | y_true != k).
    balanced_accuracy: mean over the classes that occur of P(y_pred = c | y_true = c); a constant
      prediction has one over their number.
  """

  count: Any
  accuracy: Array
  loss: Array | None
  selection_rate: Array
  true_positive_rate: Array
  false_positive_rate: Array
  balanced_accuracy: Array


class GroupReport(NamedTuple):
  """A pytree: it can leave jit, and be stacked by vmap over seeds.

  Attributes:
    groups: measures with a leading axis of groups; NaN where not defined.
    overall: the same for everybody.
  """

  groups: Measures
  overall: Measures

  def to_pandas(self, names: Sequence[str] | None = None) -> Any:
    """A `pandas.DataFrame` with a row for each group and one for everyone.

    Args:
      names: the groups' names, in the order of their ids; the ids by default.

    Returns:
      A column for each measure; `rate[k]` for rates of every class k.
    """
    labels, columns = self._columns(names)
    found = _notebook.frame(columns, index=labels)
    found.index.name = "group"
    return found

  def _repr_html_(self) -> str:
    labels, columns = self._columns(None)
    return _notebook.table({"group": labels, **columns}, len(labels))

  def _columns(self, names: Sequence[str] | None) -> tuple[list[str], dict[str, np.ndarray]]:
    """A label for every row, and the columns."""
    overall = self.overall.count
    checks.require(
      np.ndim(overall) == 0,
      f"the report has leading axes {np.shape(overall)}; take one of its members, such as "
      "jax.tree.map(lambda leaf: leaf[0], report)",
    )
    size = np.shape(self.groups.count)[0]
    labels = [str(i) for i in range(size)] if names is None else list(names)
    checks.require(len(labels) == size, f"names has {len(labels)} entries for {size} groups")
    columns: dict[str, np.ndarray] = {}
    for name, own, everyone in zip(Measures._fields, self.groups, self.overall, strict=True):
      if own is None:
        continue
      values = np.concatenate([np.asarray(own), np.asarray(everyone)[None]])
      if values.ndim == 1:
        columns[name] = values
      else:
        columns |= {f"{name}[{k}]": values[:, k] for k in range(values.shape[1])}
    return [*labels, "everyone"], columns


def by_group(
  y_true: LabelsLike,
  y_pred: LabelsLike,
  losses: PerPersonLike | None = None,
  *,
  sensitive_features: GroupsLike,
  pos_label: int | None = None,
  **options: Unpack[CountOptions],
) -> GroupReport:
  """Measures accuracy, loss, selection and error rates of every group.

  Args:
    y_true: [n] class ids.
    y_pred: [n] predicted class ids.
    losses: [n] one loss per person, or None.
    sensitive_features: [n] group ids.
    pos_label: the positive class. None: class 1 of two; of more classes, each
      in turn, which gives the rates a last axis of C.
    **options: sample_weight, num_classes, num_groups (`confusion_counts`).

  Returns:
    The measures by group and overall.
  """
  counts = confusion_counts(y_true, y_pred, sensitive_features=sensitive_features, **options)
  columns = None
  if losses is not None:
    losses = _inputs.scores("losses", losses)
    checks.require(
      losses.ndim == 1, f"losses has shape {losses.shape}; pass one per person, shape (n,)"
    )
    group, _, weights = _inputs.groups(
      sensitive_features, counts.shape[0], options.get("sample_weight"), losses=losses
    )
    columns = losses, group, weights
  return _report(counts, columns, pos_label)


@functools.partial(jax.jit, static_argnums=2)
def _report(counts: jax.Array, columns: Any, pos_label: int | None) -> GroupReport:
  # Everybody is one more row of the table: each rate is computed once.
  counts = with_everybody(counts)
  loss = None
  if columns is not None:
    losses, group, weights = columns
    num_groups = counts.shape[0] - 1
    sums = groups.group_sums(losses, group, num_groups, weights)
    sizes = groups.group_counts(group, num_groups, weights)
    loss = groups.divide(with_everybody(sums), with_everybody(sizes))
  measures = _measures(counts, loss, pos_label)
  return GroupReport(
    groups=jax.tree.map(lambda leaf: leaf[:-1], measures),
    overall=jax.tree.map(lambda leaf: leaf[-1], measures),
  )


def _measures(counts: jax.Array, loss: jax.Array | None, pos_label: int | None) -> Measures:
  return Measures(
    count=jnp.sum(counts, axis=(-2, -1)),
    accuracy=rates.accuracy(counts),
    loss=loss,
    selection_rate=rates.selection_rate(counts, pos_label),
    true_positive_rate=rates.true_positive_rate(counts, pos_label),
    false_positive_rate=rates.false_positive_rate(counts, pos_label),
    balanced_accuracy=rates.balanced_accuracy(counts),
  )
