"""Fairness notions of people whose true label is known: what is counted and compared.

Demographic parity compares how often groups are given each class. The other notions compare
people of one true class with each other (a stratum), or count right and wrong answers (two
categories) in place of classes. Tables of both are read off `fairness.constraints`.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np

from jaxfair import checks
from jaxfair.fairness import constraints
from jaxfair.fairness._notion import Notion

NotionName: TypeAlias = Literal[
  "demographic_parity", "equalized_odds", "equal_opportunity", "accuracy_parity"
]
PARITY: NotionName = "demographic_parity"
NOTIONS: dict[str, Callable[..., Notion]] = {
  "demographic_parity": constraints.demographic_parity,
  "equalized_odds": constraints.equalized_odds,
  "equal_opportunity": constraints.equal_opportunity,
  "accuracy_parity": constraints.accuracy_parity,
}


class Cells(NamedTuple):
  """Where an answer to a person is counted, given the person's label.

  Attributes:
    stratum: [C] of each label; -1 if people with that label are not compared.
    category: [C, C] of each label (row) and answer (column).
    num_strata: S.
    num_categories: K; C for rates of every class, 2 for wrong and right.
  """

  stratum: np.ndarray
  category: np.ndarray
  num_strata: int
  num_categories: int


@functools.cache
def cells(notion: NotionName, num_classes: int) -> Cells:
  """The cells that a notion compares between groups."""
  made = NOTIONS[notion](1, num_classes)
  labels, answers = np.arange(num_classes), np.eye(num_classes)
  with jax.ensure_compile_time_eval():
    stratum = np.asarray(made.stratum(labels))
    told = [made.decision(answers, np.full(num_classes, label)) for label in labels]
    decided = np.asarray(told)  # [label, answer, d]
  single = decided.shape[-1] == 1
  category = decided[..., 0] if single else np.argmax(decided, axis=-1)
  compared = (stratum >= 0) & (stratum < made.num_strata)
  return Cells(
    np.where(compared, stratum, -1).astype(np.int32),
    category.astype(np.int32),
    made.num_strata,
    2 if single else num_classes,
  )


def known_labels(truth: Any, notion: NotionName, *, size: int, num_classes: int) -> Any:
  """The labels that a notion reads; None for demographic parity, which reads none.

  Raises:
    ArgumentError: if the notion reads labels and they are not known.
  """
  checks.one_of("notion", notion, tuple(NOTIONS))
  if notion == PARITY:
    return None
  remedy = f"give them, or use notion={PARITY!r}"
  checks.require(
    truth is not None,
    f"notion={notion!r} reads the true labels of public people, and there are none; {remedy}",
  )
  checks.require(
    np.shape(truth) == (size,),
    f"true labels have shape {np.shape(truth)}; pass ({size},), one for each person",
  )
  if checks.concrete(truth):
    missing = int(np.sum(np.asarray(truth) < 0))
    checks.require(
      not missing,
      f"notion={notion!r} reads the true labels of public people, and {missing} of {size} are "
      f"missing; {remedy}",
    )
  checks.ids("true labels", truth, num_classes)
  return truth
