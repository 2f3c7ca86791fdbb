"""Sequences of answers under the counter rule, by every notion of fairness.

Demographic parity has one table of counters. The other notions read the true label of the person
who is answered: it says which table the answer is judged by (people of one true class are compared
with each other) and which column it is counted in (the class, or wrong and right). Each table is
judged by the same rule, so the margin holds in each.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness._counter import (
  MOST_ANSWERS,
  REFUSED,
  CounterRule,
  allowed_classes,
  count,
  is_class,
)
from jaxfair.fairness._known_labels import PARITY, NotionName, cells, known_labels
from jaxfair.types import ArrayLike, GroupsLike, LabelsLike, PyTree


class Counted(NamedTuple):
  """The outcome of a sequence of labels.

  Attributes:
    labels: [n] the labels that were given, `REFUSED` elsewhere.
    counters: [G, C] answers by group and class afterwards, m(z, k); of another notion than
      demographic parity [S, G, K], by true class (or one for all), group and category: the class
      that was given, or whether it was wrong (0) or right (1).
  """

  labels: jax.Array
  counters: jax.Array


def admit_in_order(
  labels: LabelsLike,
  groups: GroupsLike,
  rule: CounterRule,
  *,
  num_groups: int,
  num_classes: int,
  counters: ArrayLike | None = None,
  truth: LabelsLike | None = None,
) -> Counted:
  """Answers people in order, each as far as that is fair.

  Args:
    labels: [n] class ids, `REFUSED` where there is nothing to answer.
    groups: [n] group ids.
    rule: the margin and how it is guarded.
    num_groups: G.
    num_classes: C.
    counters: answers so far, as in `Counted`; none by default.
    truth: [n] true class ids, which a rule with another notion than demographic parity reads.

  Returns:
    The labels given, and the counters after the last. Its numbers may be
    traced: it maps over seeds, orders and margins.
  """
  rule.check()
  check_people(labels, groups, num_groups, num_classes)
  truth = known_labels(truth, rule.notion, size=len(labels), num_classes=num_classes)
  if counters is None:
    counters = empty_counters(num_groups, num_classes, rule.notion)
  else:
    shape = empty_counters(num_groups, num_classes, rule.notion).shape
    check_counters(counters, shape, more=len(labels))
  return _in_order(
    jnp.asarray(labels, jnp.int32),
    jnp.asarray(groups, jnp.int32),
    None if truth is None else jnp.asarray(truth, jnp.int32),
    jnp.asarray(counters, jnp.int32),
    rule,
    num_classes,
  )


def empty_counters(
  num_groups: int, num_classes: int, notion: NotionName, lanes: tuple[int, ...] = ()
) -> jax.Array:
  """[G, C, ...] int32 zeros for demographic parity, else [S, G, K, ...]."""
  shape: tuple[int, ...] = (num_groups, num_classes)
  if notion != PARITY:
    own = cells(notion, num_classes)
    shape = (own.num_strata, num_groups, own.num_categories)
  return jnp.zeros((*shape, *lanes), jnp.int32)


def allowed_answers(
  counters: jax.Array,
  group: jax.Array,
  truth: ArrayLike | None,
  rule: CounterRule,
  num_classes: int,
) -> jax.Array:
  """[C, ...] which classes this person may be answered with next.

  Args:
    counters: as `empty_counters` makes them.
    group: [...] of the person.
    truth: the person's true class, the same in all lanes; None for demographic parity.
    rule: the margin and how it is guarded.
    num_classes: C.

  Returns:
    Bools that depend on the counters, the group and the true label alone. All classes are allowed
    where the notion does not compare people of that true class.
  """
  if truth is None:
    return allowed_classes(counters, group, rule)
  own = cells(rule.notion, num_classes)
  stratum = jnp.asarray(own.stratum)[truth]
  parity = dataclasses.replace(rule, notion=PARITY)  # between the groups of one table
  allowed = allowed_classes(counters[stratum], group, parity)
  return allowed[jnp.asarray(own.category)[truth]] | (stratum < 0)


def count_answer(
  counters: jax.Array,
  group: jax.Array,
  truth: ArrayLike | None,
  label: jax.Array,
  given: jax.Array,
  rule: CounterRule,
  num_classes: int,
) -> jax.Array:
  """The counters after an answer to that person, if it was given."""
  if truth is None:
    return count(counters, group, label, given)
  own = cells(rule.notion, num_classes)
  stratum = jnp.asarray(own.stratum)[truth]
  category = jnp.asarray(own.category)[truth][label]
  return counters.at[stratum].set(count(counters[stratum], group, category, given & (stratum >= 0)))


def check_counters(counters: ArrayLike, shape: tuple[int, ...], *, more: int = 0) -> None:
  """Raises if the counters cannot be continued by `more` answers."""
  checks.require(
    np.shape(counters) == shape,
    f"counters has shape {np.shape(counters)}; pass {shape}, one row per group",
  )
  checks.non_negative("counters", counters)
  if checks.concrete(counters):
    many = int(np.asarray(counters, np.int64).sum()) + more
    checks.require(
      many <= MOST_ANSWERS,
      f"that would be {many} answers; at most {MOST_ANSWERS} can be counted "
      "exactly, so begin with new counters",
    )


def check_people(labels: ArrayLike, groups: ArrayLike, num_groups: int, num_classes: int) -> None:
  """Raises for labels and groups that cannot be counted."""
  checks.integer("num_groups", num_groups, low=1)
  checks.integer("num_classes", num_classes, low=1)
  checks.one_per_person(labels=labels, groups=groups)
  checks.ids("groups", groups, num_groups)
  if checks.concrete(labels):
    known = np.asarray(labels)
    checks.ids("labels", known[known != REFUSED], num_classes)


@functools.partial(jax.jit, static_argnames=("num_classes",))
def _in_order(
  labels: jax.Array,
  groups: jax.Array,
  truth: jax.Array | None,
  counters: jax.Array,
  rule: CounterRule,
  num_classes: int,
) -> Counted:
  def step(table: jax.Array, one: PyTree) -> tuple[jax.Array, jax.Array]:
    label, group, true = one
    allowed = allowed_answers(table, group, true, rule, num_classes)
    given = jnp.any(allowed & is_class(label, num_classes), axis=0)
    table = count_answer(table, group, true, label, given, rule, num_classes)
    return table, jnp.where(given, label, REFUSED)

  counters, given = jax.lax.scan(step, counters, (labels, groups, truth))
  return Counted(given, counters)
