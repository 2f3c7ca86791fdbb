"""FairPATE that judges before it pays: queries are chosen by the answers released so far."""

import functools
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, pate, tree
from jaxfair.fairness import CounterRule
from jaxfair.fairness._counter_sequence import admit_in_order
from jaxfair.methods._chosen_queries import CHOSEN, chosen_now, chosen_once, with_rounds
from jaxfair.methods._fair_teachers import FairPate
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import Plan, Population, Sizes
from jaxfair.methods._teachers import NonPrivateVotes, named_keys
from jaxfair.methods._vote_rules import fair_answers
from jaxfair.pate._fair import FairAnswers
from jaxfair.types import ArrayLike, Examples, Fit, Key, LabelsLike


class ChoosingFairPate(FairPate):
  """FairPATE on the first public people, or on those who will be answered and teach most.

  With choose="admissible", queries are asked in rounds. A student of the answers so far predicts a
  label for every public person. In order of the student's doubt, the counter rule is applied to the
  predictions, continued from the counters of the answers given; a round asks about the first
  people whose prediction it admits. Rounds go on until the budget is spent or nobody is left:
  queries that fail their test leave a part of it.

  Privacy:
    Who is asked in a round is a function of labels that were released, of which the counters are a
    function, too, of features, groups and (for a notion that reads them) labels of public people,
    and of a key that does not depend on private people. Given the choice, a query is one test and
    at most one argmax, with fresh noise: 1 / (2 sigma_threshold^2) + 1 / sigma_answer^2 in zCDP
    for any query. Answering stops, by what was released, before the sum of these could exceed the
    budget: a privacy filter, which holds for queries that are chosen by earlier answers (Feldman
    and Zrnic 2021, Theorem 3.1). The whole budget is charged, so the price is that of fixed
    queries. Votes on people who are not asked about are neither noised nor released, and no choice
    reads them.
  """

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """As `FairPate`; the price does not depend on how queries are chosen."""
    plan = super().plan(settings, sizes, budget)
    if plan.settings.choose == "first":
      return plan
    return with_rounds(
      plan,
      f"They are chosen among {sizes.public} in rounds of {_round_size(plan)}, by the answers "
      "released; what the budget has left is spent in further rounds.",
    )

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """As `FairPate`; the trace has the votes on those who were asked about, in that order."""
    if plan.settings.choose == "first":
      return super().fit(plan, data, key=key)
    votes = self.votes(plan, data, key=key)
    order, labels = self._in_rounds(plan, data, votes, key, chosen_now)
    student = tree.take(self.students([plan], data, labels, key=key), 0)
    return Fit(student, NonPrivateVotes(votes[order], labels[order]))

  def labels(self, plan: Plan, data: Population, votes: np.ndarray, *, key: Key) -> np.ndarray:
    """As `FairPate`; where queries are chosen, [public] labels with NO_ANSWER for the others."""
    if plan.settings.choose == "first":
      return super().labels(plan, data, votes, key=key)
    return self._in_rounds(plan, data, votes, key, chosen_now)[1]

  def _answers(
    self, plan: Plan, data: Population, votes: np.ndarray, folder: pathlib.Path, key: jax.Array
  ) -> np.ndarray:
    if plan.settings.choose == "first":
      return super()._answers(plan, data, votes, folder, key)
    # Noise is from the release's key, so the same people get the same answers after a stop. Who is
    # asked is written down before it is answered, so that a release that goes on elsewhere does not
    # depend on the last bits of a student.
    folder.mkdir(parents=True, exist_ok=True)
    kept = functools.partial(chosen_once, folder / CHOSEN)
    return self._in_rounds(plan, data, votes, key, kept)[1]

  def _in_rounds(
    self,
    plan: Plan,
    data: Population,
    votes: np.ndarray,
    key: jax.Array,
    chosen: Callable[[int, Callable[[], np.ndarray]], np.ndarray],
  ) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which they were asked, and [public] labels.

    Args:
      plan: for these people.
      data: the people.
      votes: [public, C] votes on everybody who could be asked about.
      key: of the noise and of the students.
      chosen: `(round, choice) -> rows`, which may know an earlier choice.
    """
    people, truth, rule = self._asked(plan, data), self._known(plan, data), margin(plan.settings)
    assert rule is not None
    groups, order = np.asarray(people.group), np.zeros(0, np.int64)
    found: FairAnswers | None = None

    def choice(count: int) -> np.ndarray:
      left = np.setdiff1d(np.arange(people.size), order)
      labels = np.asarray([] if found is None else found.labels)
      if found is None or (labels == pate.NO_ANSWER).all():
        return left[:count]
      student = tree.take(self.students([plan], data, labels, key=key), 0)
      logits = plan.model.apply(student, jnp.asarray(people.x))
      return admissible_first(logits, groups, left, rule, found.counters, truth=truth)[:count]

    for number in itertools.count():
      rows = chosen(number, functools.partial(choice, _round_size(plan)))
      order = np.concatenate([order, rows])
      settings, noise = plan.settings, named_keys(key)["noise"]
      found = fair_answers(
        plan, votes, groups, plan.sizes.groups, rule, settings.choice, noise, truth, order
      )
      spent = np.asarray(found.outcome)[order] == pate.Outcome.NOT_ASKED
      if spent.any() or len(order) == people.size:
        break
    assert found is not None
    return order, np.asarray(found.labels)

  def _asked(self, plan: Plan, data: Population) -> Examples:
    if plan.settings.choose == "first":
      return super()._asked(plan, data)
    public = plan.bounded(data).public
    assert public is not None
    return public

  def _counted(self, votes: np.ndarray, labels: np.ndarray, folder: pathlib.Path) -> np.ndarray:
    path = folder / CHOSEN
    if not path.exists():
      return votes
    return votes[np.concatenate(json.loads(path.read_text(encoding="utf-8")))]


def _round_size(plan: Plan) -> int:
  return -(-int(plan.config.queries) // int(plan.settings.rounds))


def admissible_first(
  logits: ArrayLike,
  groups: np.ndarray,
  rows: np.ndarray,
  rule: CounterRule,
  counters: ArrayLike,
  *,
  truth: LabelsLike | None = None,
) -> np.ndarray:
  """The rows, first those whose predicted answer the rule would admit, in order of doubt.

  A prediction is admitted if the rule admits it after all earlier admitted ones. Doubt is how near
  the two most likely classes are in probability.

  Args:
    logits: [n, C] of a student.
    groups: [n] group ids.
    rows: [m] rows to bring into an order.
    rule: the margin and how it is guarded.
    counters: of the answers given so far; see `pate.FairAnswers`.
    truth: [n] public true class ids, for all notions but demographic parity.

  Returns:
    [m] the same rows: the admitted ones and then the others, each in order of doubt.
  """
  chances = np.asarray(jax.nn.softmax(jnp.asarray(logits), axis=-1))[rows]
  two = np.sort(chances, axis=1)[:, -2:]
  doubt = np.argsort(two[:, 1] - two[:, 0], kind="stable")
  rows = rows[doubt]
  num_groups = np.shape(counters)[0 if truth is None else 1]
  found = admit_in_order(
    chances[doubt].argmax(axis=1).astype(np.int32),
    groups[rows],
    rule,
    num_groups=num_groups,
    num_classes=chances.shape[1],
    counters=counters,
    truth=None if truth is None else np.asarray(truth)[rows],
  )
  kept = np.asarray(found.labels) != pate.NO_ANSWER
  return np.concatenate([rows[kept], rows[~kept]])
