"""Filters that drop people before training, so that groups have similar shares of the classes."""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Bool

from jaxfair import checks
from jaxfair.fairness._counter import REFUSED, CounterRule
from jaxfair.fairness._counter_sequence import admit_in_order
from jaxfair.types import ArrayLike, Examples, FeaturesLike, GroupsLike, LabelsLike


def sequential_filter(
  labels: LabelsLike,
  groups: GroupsLike,
  rule: CounterRule,
  *,
  num_groups: int,
  num_classes: int,
  truth: LabelsLike | None = None,
) -> Bool[np.ndarray, "n"]:
  """Goes through people in order and drops each one who would bring a disparity to the margin.

  Args:
    labels: [n] class ids; `REFUSED` (-1) where there is none, never kept.
    groups: [n] group ids.
    rule: margin, cold start, notion and guard.
    num_groups: G.
    num_classes: C.
    truth: [n] true class ids, which a rule with another notion than demographic parity reads; the
      labels are then what people were answered.

  Returns:
    [n] bools, who is kept.

  Privacy:
    Free on public people and released labels, such as a student's. On private
    people no epsilon covers a training after it: one record early in the
    order can change over a hundred of those kept, so group privacy gives no useful
    bound. `ordered_filter` has one.

  Reference:
    Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility, Algorithm 3.
  """
  sizes = {"num_groups": num_groups, "num_classes": num_classes}
  kept = admit_in_order(labels, groups, rule, **sizes, truth=truth)
  return np.asarray(kept.labels) != REFUSED


def ordered_filter(
  x: FeaturesLike, labels: LabelsLike, groups: GroupsLike, *, max_gap: float, num_classes: int
) -> Bool[np.ndarray, "n"]:
  """Within each class, drops the last people of the larger of two groups.

  (b - a) / (a + b) <= gamma  within each class, a and b being the groups'
  numbers; that is, b <= a + floor(2 a gamma / (1 - gamma))

  It balances the groups within each class. The paper calls that demographic
  parity; the disparity of definition 1, P(k | z) - P(k | not z), is another
  number and is not bounded by it.

  Args:
    x: [n, ...] features. Their lexicographic order decides who is last: an
      order of the whole input space, which no other person can change.
    labels: [n] class ids.
    groups: [n] group ids, 0 or 1.
    max_gap: gamma, in [0, 1).
    num_classes: C.

  Returns:
    [n] bools, who is kept.

  Privacy:
    The filter reads everybody, so the epsilon of a training after it does not protect
    one person. Adding or removing one person changes at most K = `accounting.
    preprocessing_factor(max_gap)` of those kept, the person included, and replacing
    one changes 2 K - 1. If a training is (epsilon, delta)-DP in the people kept,
    `accounting.preprocessed_guarantee` gives its guarantee as a function of all people.
    The number kept is private as well. DP-SGD on `examples.take(kept)` would derive its
    sampling rate and its cap from that number, which nothing covers; pass
    `leave_out(examples, kept)`, which keeps the number of examples.

  Assumptions:
    One row per person, and features that do not depend on other people: a scaler is
    fitted on public people.

  Reference:
    As above, Theorem 1 and appendix F; K is met with equality, see the tests.
  """
  checks.number("max_gap", max_gap, low=0.0, high=1.0, open_high=True)
  checks.integer("num_classes", num_classes, low=1)
  checks.same_length(x=x, labels=labels, groups=groups)
  checks.ids("labels", labels, num_classes)
  checks.ids("groups", groups, 2)
  labels, groups = np.asarray(labels), np.asarray(groups)
  flat = np.asarray(x).reshape(len(labels), -1)
  place = np.empty(len(labels), np.int64)
  place[np.lexsort(flat.T[::-1])] = np.arange(len(labels))
  kept = np.ones(len(labels), bool)
  for k in range(num_classes):
    parts = [np.flatnonzero((labels == k) & (groups == z)) for z in (0, 1)]
    small, large = sorted(parts, key=len)
    room = len(small) + _slack(len(small), max_gap)
    late = large[np.argsort(place[large])][room:]
    kept[late] = False
  return kept


def leave_out(examples: Examples, kept: ArrayLike) -> Examples:
  """Excludes people from DP-SGD training without changing the number of examples.

  Their features become NaN, which DP-SGD (`training.dp_sgd`, `fair_dp_sgd`,
  `train_to_budget`) leaves out of every sum and count. Use it for no other
  training; training without privacy can use `examples.take(kept)`.

  Args:
    examples: everybody.
    kept: [n] bools, from a filter.

  Privacy:
    n, and with it the sampling rate, the cap on batches and the divisor of
    DP-SGD, counts everybody and is public; the number kept is not. A row
    that is left out adds 0 to a sum, like one that does not exist. So a person who
    is kept on one side and left out on the other is one person added or
    removed for `config.event(n)`, and K such people are a group of K.
    Batches then have fewer people than `batch_size`, and steps are shorter.
  """
  checks.same_length(kept=kept, **examples._asdict())
  kept, x = np.asarray(kept), np.asarray(examples.x)
  checks.require(kept.dtype == bool, f"kept holds {kept.dtype}, not bools; pass a mask")
  checks.require(
    x.dtype.kind == "f",
    f"examples.x holds {x.dtype}, in which nothing means missing; make it float32",
  )
  mask = kept.reshape(kept.shape + (1,) * (x.ndim - 1))
  return examples._replace(x=np.where(mask, x, x.dtype.type(np.nan)))


def _slack(smaller: int, max_gap: float) -> int:
  """floor(2 a gamma / (1 - gamma)), exactly: 0.8 means 4/5."""
  gamma = Fraction(repr(float(max_gap)))
  return math.floor(2 * smaller * gamma / (1 - gamma))
