"""How a model treats each group: what most studies measure, as one table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import fairness, models
from jaxfair.data import Dataset
from jaxfair.experiments._table import Table
from jaxfair.fairness import _confusion, _intervals, _summary
from jaxfair.types import ArrayLike, Examples

EVERYONE = "everyone"
GAPS = ("accuracy_parity_difference", "demographic_parity_difference", "equalized_odds_difference")

# What a column may hold, by how its name ends: shares of people or of draws, and correlations.
RANGES = {
  ("accuracy", "coverage", "_rate", "_error", "_share", "probability", "agreement", *GAPS): (
    0.0,
    1.0,
  ),
  ("correlation",): (-1.0, 1.0),
}


def column_range(column: str, values: ArrayLike) -> tuple[float, float]:
  """The range of a column's mean; infinite ends if nothing is known.

  A column that only happens to be named like a share, and has values elsewhere, has no range.
  """
  known = np.asarray(values, np.float64)
  known = known[~np.isnan(known)]
  for ends, (low, high) in RANGES.items():
    if column.endswith(ends) and ((known >= low) & (known <= high)).all():
      return low, high
  return -math.inf, math.inf


def seed_interval(column: str, values: ArrayLike) -> _intervals.Interval:
  """Student's interval over seeds, within the range of the column."""
  found, ends = fairness.seed_interval(values), column_range(column, values)
  return found._replace(low=np.clip(found.low, *ends), high=np.clip(found.high, *ends))


class GroupMeasures(NamedTuple):
  """Measures of each group and of everyone, and the gaps between groups.

  Attributes:
    groups: measures with an axis of groups.
    overall: the same for everybody.
    gaps: name -> largest difference between groups.
    constant: what tells a model from a constant; see `beside_constant`.
  """

  groups: _summary.Measures
  overall: _summary.Measures
  gaps: dict[str, jax.Array]
  constant: dict[str, jax.Array]


def beside_constant(y: jax.Array, predicted: jax.Array, num_classes: int) -> dict[str, jax.Array]:
  """The scores of the majority class, and how close a model is to a constant.

  Returns:
    balanced_accuracy: mean over the classes that occur of the share that is found.
    majority_accuracy: share of the most frequent class among these people.
    majority_balanced_accuracy: one over the number of classes that occur.
    one_class_share: largest share of people who are given the same class.
    balanced_accuracy_se: standard error of the balanced accuracy over people.
  """
  nobody = jnp.zeros_like(y)
  counts = _confusion.confusion_counts(
    y, predicted, sensitive_features=nobody, num_groups=1, num_classes=num_classes
  )[0]
  people, size = counts.sum(-1), counts.sum()
  occur, safe = people > 0, jnp.maximum(people, 1)
  recall = jnp.diagonal(counts) / safe
  classes = occur.sum()
  return {
    "balanced_accuracy": recall.sum() / classes,
    "majority_accuracy": people.max() / size,
    "majority_balanced_accuracy": 1 / classes,
    "one_class_share": counts.sum(-2).max() / size,
    "balanced_accuracy_se": jnp.sqrt(jnp.sum(recall * (1 - recall) / safe)) / classes,
  }


def measure_groups(logits: jax.Array, test: Examples, dataset: Dataset) -> GroupMeasures:
  """Measures predictions on held-out people; pure, for use inside a program.

  Args:
    logits: [n, C] of the test part.
    test: the people.
    dataset: whose numbers of classes and groups hold.
  """
  predicted = jnp.argmax(logits, -1)
  losses = models.cross_entropy(logits, test.y)
  options: Any = {
    "sensitive_features": test.group,
    "num_groups": dataset.num_groups,
    "num_classes": dataset.num_classes,
  }
  report = fairness.by_group(test.y, predicted, losses, pos_label=1, **options)
  gaps = {name: getattr(fairness, name)(test.y, predicted, **options) for name in GAPS}
  constant = beside_constant(test.y, predicted, dataset.num_classes)
  return GroupMeasures(report.groups, report.overall, gaps, constant)


def group_table(
  settings: Mapping[str, Any], measured: GroupMeasures, names: Sequence[str]
) -> Table:
  """One row per seed and group, and one per seed for everyone with the gaps."""
  seeds = range(measured.overall.count.shape[0])
  everyone = measured.overall._asdict() | measured.gaps | measured.constant
  return Table.concat(
    [
      Table.from_arrays(settings, {"seed": seeds, "group": names}, measured.groups._asdict()),
      Table.from_arrays(settings, {"seed": seeds, "group": [EVERYONE]}, everyone),
    ]
  )


def paired_costs(
  table: Table,
  column: str,
  baseline: str,
  *,
  pair: Sequence[str] = ("seed", "group"),
  without: Sequence[str] = (),
) -> Table:
  """Adds what each row loses against the row of the baseline it belongs to.

  Args:
    table: with columns accuracy and loss; returned as it is without them.
    column: tells the baseline from the others.
    baseline: its value there.
    pair: rows that agree in these columns belong together.
    without: values of the column that have no pair.
  """
  if "accuracy" not in table:
    return table

  before = table.where(**{column: baseline})
  unpaired = np.isin(table[column], (baseline, *without))
  costs = {}
  for value, sign in (("accuracy", -1.0), ("loss", 1.0)):
    was = table.join(before, pair, was=value)["was"]
    costs[f"{value}_cost"] = np.where(unpaired, np.nan, sign * (table[value] - was))
  return table.plus(**costs)
