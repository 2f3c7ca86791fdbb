"""PATE whose later queries are chosen by the answers to earlier ones."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _whole_files, accounting, checks, pate, tree
from jaxfair._fields import Count
from jaxfair.methods._method import PERSON, Plan, Population, Sizes
from jaxfair.methods._pate_settings import TeacherSettings, refuse_chosen
from jaxfair.methods._teachers import NonPrivateVotes, Pate
from jaxfair.types import Examples, Fit, Key, Scores

CHOSEN = "queries.json"


class PateSettings(TeacherSettings):
  """Settings of PATE.

  Attributes:
    choose: which public people are asked about: the "first" ones, or in later rounds those about
      whom a student of the answers so far is least sure ("uncertain").
    rounds: number of rounds of "uncertain", of nearly equal sizes; the first asks about the first
      people.
  """

  choose: Literal["first", "uncertain"] = "first"
  rounds: Count = 4

  def check(self) -> None:
    """Raises for a figure of queries that are not known beforehand."""
    super().check()
    refuse_chosen(self)


class ChoosingPate(Pate):
  """GNMax on public people, the first ones or those that teach most.

  With choose="uncertain", queries are asked in rounds. Teachers could vote on every public person;
  each round trains a student on the answers released so far and asks about the people whose two
  most likely classes it holds to be nearest in probability.

  Privacy:
    The queries of a round are a function of answers that are released, of public people and of a
    key that does not depend on private people. Given them, each answer is one Gaussian noisy
    maximum, (a, a / sigma^2)-RDP whatever the query; zCDP composes adaptively, that is for queries
    chosen by earlier answers, so `queries` answers cost the same as for fixed queries. Votes on
    people who are not asked about are neither noised nor released, and no choice reads them.
  """

  settings: type[TeacherSettings] = PateSettings

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """As `Pate`; the price does not depend on how queries are chosen."""
    plan = super().plan(settings, sizes, budget)
    if plan.settings.choose == "first":
      return plan
    rounds = plan.settings.rounds
    among = f"They are chosen among {sizes.public} in {rounds} rounds, by the answers released."
    return with_rounds(plan, among)

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """As `Pate`; the trace has the votes on those who were asked about."""
    fitted = super().fit(plan, data, key=key)
    counts, labels = fitted.trace
    asked = labels != pate.NO_ANSWER
    return Fit(fitted.params, NonPrivateVotes(counts[asked], labels[asked]))

  def labels(self, plan: Plan, data: Population, votes: np.ndarray, *, key: Key) -> np.ndarray:
    """As `Pate`; where queries are chosen, [public] labels with NO_ANSWER for the others.

    Every public person has noise of their own from the key, so that whether somebody else is asked
    about does not change an answer. The labels of those who are not asked about are dropped.
    """
    noisy = super().labels(plan, data, votes, key=key)
    if plan.settings.choose == "first":
      return noisy
    return self._in_rounds(plan, data, key, lambda rows, first: noisy[rows], chosen_now)

  def _answers(
    self, plan: Plan, data: Population, votes: np.ndarray, folder: pathlib.Path, key: jax.Array
  ) -> np.ndarray:
    if plan.settings.choose == "first":
      return super()._answers(plan, data, votes, folder, key)
    with pate.Answerer(
      folder, plan.config.rule, budget=plan.budget, data=data.name, unit=PERSON
    ) as answerer:

      def answer(rows: np.ndarray, first: int) -> np.ndarray:
        return answerer.answer(votes[rows], first=first).labels.astype(np.int32)

      # The log has answers by number. Whose they are is written down before they are given, so
      # that a release that goes on elsewhere does not depend on the last bits of a student.
      kept = functools.partial(chosen_once, folder / CHOSEN)
      found = self._in_rounds(plan, data, key, answer, kept)
      answerer.finish()
    return found

  def _in_rounds(
    self,
    plan: Plan,
    data: Population,
    key: jax.Array,
    answer: Callable[[np.ndarray, int], np.ndarray],
    chosen: Callable[[int, Callable[[], np.ndarray]], np.ndarray],
  ) -> np.ndarray:
    """[public] labels of those asked about.

    Args:
      plan: for these people.
      data: the people.
      key: of the students.
      answer: `(rows, number of earlier queries) -> labels`.
      chosen: `(round, choice) -> rows`, which may know an earlier choice.
    """
    people = self._asked(plan, data)
    labels = np.full(people.size, pate.NO_ANSWER, np.int32)

    def choice(count: int) -> np.ndarray:
      known = labels != pate.NO_ANSWER
      if not known.any():
        return np.arange(count)
      student = tree.take(self.students([plan], data, labels, key=key), 0)
      logits = plan.model.apply(student, jnp.asarray(people.x))
      return np.sort(np.asarray(least_sure(logits, known, count)))

    first = 0
    for number, part in enumerate(
      np.array_split(np.arange(plan.config.queries), plan.settings.rounds)
    ):
      rows = chosen(number, functools.partial(choice, len(part)))
      labels[rows] = answer(rows, first)
      first += len(rows)
    return labels

  def _asked(self, plan: Plan, data: Population) -> Examples:
    if plan.settings.choose == "first":
      return super()._asked(plan, data)
    public = plan.bounded(data).public
    assert public is not None
    return public

  def _counted(self, votes: np.ndarray, labels: np.ndarray, folder: pathlib.Path) -> np.ndarray:
    del folder
    return votes[labels != pate.NO_ANSWER]


@functools.partial(jax.jit, static_argnames="count")
def least_sure(logits: Scores, asked: jax.Array, count: int) -> jax.Array:
  """[count] rows, not asked before, whose two most likely classes are nearest in probability.

  Rows that are equally near come in their order. May be traced and mapped over.

  Args:
    logits: [n, C] of a student.
    asked: [n] whether a row was asked before; at least `count` were not.
    count: number of rows.
  """
  two, _ = jax.lax.top_k(jax.nn.softmax(logits, axis=-1), 2)
  apart = jnp.where(asked, jnp.inf, two[:, 0] - two[:, 1])
  return jax.lax.top_k(-apart, count)[1]


def with_rounds(plan: Plan, told: str) -> Plan:
  """The plan, saying how queries are chosen; raises for rounds that ask about nobody."""
  checks.integer(
    "rounds",
    plan.settings.rounds,
    low=2,
    high=plan.config.queries,
    remedy="each round asks about somebody",
  )
  return dataclasses.replace(plan, says=(f"{plan.says[0]} {told}", *plan.says[1:]))


def chosen_now(number: int, choice: Callable[[], np.ndarray]) -> np.ndarray:
  """A choice that nobody remembers: for a fit."""
  del number
  return choice()


def chosen_once(path: pathlib.Path, number: int, choice: Callable[[], np.ndarray]) -> np.ndarray:
  """The rows of a round as they are on the disk, or chosen and written."""
  known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
  if number == len(known):
    known.append(choice().tolist())
    _whole_files.write_whole(path, json.dumps(known))
  return np.array(known[number])
