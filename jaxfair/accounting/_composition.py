"""Many releases about the same people: what they cost together."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bounds import Accountant, best_bound
from jaxfair.accounting._guarantee import PrivacyGuarantee, Relation, delta_in_range
from jaxfair.accounting._units import units


def composed_epsilon(
  events: Iterable[ev.Event],
  *,
  delta: float,
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  accountant: Accountant = "pld",
) -> float:
  """The epsilon of all these events on the same people, at this delta.

  Args:
    events: in any order; each may have been chosen after seeing the earlier.
    delta: in [0, 1); 0 where every event is pure.
    relation: which data sets count as neighbors.
    accountant: "pld" composes loss distributions, which is nearly exact, and
      falls back to "rdp" for events or deltas it cannot resolve. "rdp" sums
      Renyi divergences: fast, some ten percent above. Where a closed form is
      known and lower, both give that.

  Raises:
    ArgumentError: where no analysis covers an event under this relation.
  """
  return best_bound(
    units(events, relation), delta=delta, relation=relation, accountant=accountant
  ).epsilon


def composed_guarantee(
  events: Iterable[ev.Event],
  *,
  delta: float,
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  unit: str = "one person",
  accountant: Accountant = "pld",
) -> PrivacyGuarantee:
  """`composed_epsilon` as a `PrivacyGuarantee`, which names relation, unit and accountant."""
  bound = best_bound(units(events, relation), delta=delta, relation=relation, accountant=accountant)
  return PrivacyGuarantee(bound.epsilon, delta, relation, unit, bound.accountant)


def group_privacy(*, epsilon: float, delta: float, size: int) -> tuple[float, float]:
  """What (epsilon, delta) for one person means for several at once.

  (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1))

  Args:
    epsilon: epsilon for one person, 0 or above.
    delta: delta for one person, in [0, 1).
    size: k, the number of people who change together.

  Returns:
    epsilon and delta (at most 1) for the group.

  Reference:
    k steps of the definition: delta + e^epsilon delta + ... (k terms).
  """
  checks.non_negative("epsilon", epsilon)
  delta_in_range(delta, zero=True)
  checks.integer("size", size, low=1)
  if delta == 0 or size == 1:
    return size * epsilon, delta
  log_terms = epsilon * np.arange(size)
  log_sum = float(np.logaddexp.reduce(log_terms))
  return size * epsilon, math.exp(min(0.0, math.log(delta) + log_sum))


def preprocessing_factor(max_gap: float, *, relation: Relation = Relation.ADD_OR_REMOVE_ONE) -> int:
  """How many kept records one person can change with the ordered pre-processor.

  K = 2 + ceil(2 gamma / (1 - gamma)) if one record is added or removed, itself included;
  2 K - 1 if one record is replaced or changed in an attribute: it is taken out, which
  moves K - 1 others, and put in again, which moves K - 1 others.

  Assumptions:
    Two groups, and the pre-processor that drops the *last* points of the
    larger subclass of each label. K is not a stability constant of a sequential
    counter filter: one record can change over a hundred kept ones there, and
    such a pipeline on private data has no epsilon.

  Args:
    max_gap: gamma, in [0, 1).
    relation: which data sets count as neighbors. `ZERO_OUT` is refused: an
      empty record still has a class and a group, which the filter counts.

  Reference:
    Theorem 1 of the FairPATE paper, which is about one more or less.
  """
  checks.number("max_gap", max_gap, low=0.0, high=1.0, open_high=True)
  checks.require(
    relation is not Relation.ZERO_OUT,
    "relation=ZERO_OUT is not supported: a filter still counts the class and group of an empty "
    "record; use ADD_OR_REMOVE_ONE or REPLACE_ONE",
  )
  gamma = Fraction(repr(float(max_gap)))  # 0.8 means 4/5, not a float above it
  moved = 2 + math.ceil(2 * gamma / (1 - gamma))
  return 2 * moved - 1 if relation.substitutes else moved


def preprocessed_guarantee(
  *, epsilon: float, delta: float, max_gap: float, relation: Relation = Relation.ADD_OR_REMOVE_ONE
) -> tuple[float, float]:
  """(K epsilon, K e^(K epsilon) delta) for training after preprocessing.

  Args:
    epsilon: epsilon of the trainer, for one of the people it is given.
    delta: delta of the trainer.
    max_gap: gamma of the filter.
    relation: neighboring relation of the trainer's epsilon and of the result.
      K is that of `preprocessing_factor`, with its assumptions.

  Returns:
    epsilon and delta for one of all people. Delta is at most 1, which means
    no guarantee.

  Privacy:
    The trainer must know the number of all people, not of those kept, which
    is private: `fairness.leave_out`. The filter keeps or leaves out the others, and each such
    change is one step between neighbors for the trainer: a contribution is added or removed, or
    replaced by that of an empty record.
  """
  checks.non_negative("epsilon", epsilon)
  delta_in_range(delta, zero=True)
  factor = preprocessing_factor(max_gap, relation=relation)
  if delta == 0:
    return factor * epsilon, 0.0
  log_delta = math.log(factor) + factor * epsilon + math.log(delta)
  return factor * epsilon, math.exp(min(0.0, log_delta))


def repeat_and_select_epsilon(
  event: ev.Event,
  *,
  mean_runs: float,
  delta: float,
  shape: float | None = 1.0,
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
) -> float:
  """The cost of tuning with a random number of runs when only the best one is released.

  Args:
    event: one run, including the private score it is judged by.
    mean_runs: expected number of runs.
    delta: in (0, 1).
    shape: 1 draws the number of runs from a geometric, 0 from a logarithmic,
      another number from a truncated negative binomial, None from a Poisson
      distribution.
    relation: which data sets count as neighbors.

  Privacy:
    The number of runs must be drawn that way, and kept secret or independent
    of the data; looking at a fixed list of runs and taking the best is not
    covered (compose all of them instead).

  Reference:
    Papernot & Steinke (2022), Theorems 2 and 6.
  """
  selected = ev.RepeatAndSelect(event, mean_runs, shape)
  return composed_epsilon([selected], delta=delta, relation=relation, accountant="rdp")
