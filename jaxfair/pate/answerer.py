"""Answers for release: charged first, stopped in time, never given twice."""

import os
import pathlib
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from jaxfair import accounting, checks
from jaxfair.pate import rules
from jaxfair.pate.aggregation import NO_ANSWER, check_counts
from jaxfair.pate.answer_log import AnswerLog
from jaxfair.privacy.coins import BitSource, seeded


class Answers(NamedTuple):
  """What was released about some queries.

  Attributes:
    labels: [n] class ids, `NO_ANSWER` where there is none; of `NoisyVotes`
      [n, C] noisy counts, 0 where there are none.
    answered: [n] whether there is an answer.
    asked: [n] whether the votes were looked at; what was asked is charged.
      The queries that are not asked are the last: the budget did not reach.
    guarantee: what may be published along with the labels.
    for_release: whether the noise came from the operating system.
  """

  labels: np.ndarray
  answered: np.ndarray
  asked: np.ndarray
  guarantee: accounting.PrivacyGuarantee
  for_release: bool


class Answerer:
  """Answers queries in order until the budget is spent.

      with pate.Answerer("run", pate.GnMax(sigma=40.0), budget=(1.0, 1e-5),
                         data="adult") as answerer:
        answers = answerer.answer(counts, first=0)

  The folder holds `ledger.jsonl` and `answers.jsonl`. After a crash, even a
  kill -9, the same lines go on where they stopped: queries in the log are
  answered from it, without looking at the votes and without a charge.

  Privacy:
    Charges are data-independent, and written to the disk before the votes are
    looked at: first the tests of a batch, then, when it is known and written
    down which passed, their answers. A batch is begun only if the budget pays
    for all its answers, so it is never overrun, and when it ends depends on
    released answers only: `accounting.filters` proves that the budget holds.
    Tests that fail cost the test alone. A crash may leave a charge for an
    answer that nobody saw, never the reverse.

    What a rule with a test spends depends on its answers, so what may be
    published is the budget (a privacy filter); the ledger tells the spend.
    The other rules publish the spend, provided that the number of queries
    does not depend on the labels.

  """

  def __init__(
    self,
    folder: str | os.PathLike[str],
    rule: rules.Rule,
    *,
    budget: tuple[float, float] | None = None,
    data: str = "private votes",
    unit: str = "one person",
    ledger: accounting.Ledger | None = None,
    batch_size: int = 10_000,
    seed: int | None = None,
    about: str | None = None,
  ):
    """Begins answering, or continues.

    Args:
      folder: of these answers; made if missing.
      rule: `GnMax`, `ConfidentGnMax`, `LaplaceMax` or `NoisyVotes`.
      budget: (epsilon, delta), for one person replaced by another; needed to
        begin a folder's own ledger.
      data: the data set's name, for that ledger.
      unit: who is protected, if one of them lies in one teacher's part.
      ledger: open for charges and with a budget, instead of the folder's own.
      batch_size: queries that are charged and answered at a time.
      seed: makes a study reproducible, and its answers unfit for release;
        the operating system's entropy if None.
      about: what is asked, in public words; a folder that was begun about
        something else is refused, instead of giving its answers.
    """
    checks.integer("batch_size", batch_size, low=1)
    if seed is not None:
      checks.integer("seed", seed, low=0)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    self.rule = rule
    self._batch_size = batch_size
    self._seed = seed
    self._own = ledger is None
    if ledger is None:
      ledger = _open(folder / "ledger.jsonl", data, unit, budget)
    self.ledger = ledger
    try:
      _check_ledger(self.ledger, budget if self._own else None)
      described: dict[str, Any] = {
        "rule": rules.described(rule), "seed": seed
      }  # fmt: skip
      if about is not None:
        described["about"] = about
      self._log = AnswerLog(folder / "answers.jsonl", described)
      self._charged = _charged(self.ledger, self._log.run)
    except BaseException:
      if self._own:
        self.ledger.close()
      raise

  @property
  def asked(self) -> int:
    """How many queries are dealt with; the number of the next one."""
    return self._log.done

  def answer(self, counts: Any, *, first: int) -> Answers:
    """Answers queries `first`, `first + 1`, ..., as far as the budget goes.

    Args:
      counts: [n, C] integer votes per class.
      first: the number of the first query. A script that is run again after
        a crash begins at 0 again; new queries begin at `asked`.

    Returns:
      One row for each query.

    Raises:
      LedgerError: if a charge cannot be written; nothing is released then.
    """
    check_counts(counts)
    checks.integer(
      "first", first, low=0, high=self.asked,
      remedy="queries are answered in order, without gaps",
    )  # fmt: skip
    votes = np.asarray(counts).astype(np.int64)
    while self.asked < first + len(votes):
      if not self._advance(votes[max(0, self.asked - first) :]):
        break
    return self._collect(first, *votes.shape)

  def close(self) -> None:
    """Gives the folder up to other processes."""
    self._log.close()
    if self._own:
      self.ledger.close()

  def __enter__(self) -> "Answerer":
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    self.close()

  def _advance(self, votes: np.ndarray) -> bool:
    """Tests and answers a batch of the next queries; False at the end."""
    log, rule = self._log, self.rule
    if rule.test is not None and log.tested == log.done:
      start, stop = log.done, self._charge_tests(rule.test, len(votes))
      rows = votes[: stop - start]
      if not len(rows):
        return False
      log.add_tests(rule.passes(rows, self._source(start, "tests")))
    return self._answer_batch(votes)

  def _answer_batch(self, votes: np.ndarray) -> bool:
    log, start = self._log, self._log.done
    paid = self._paid("answers")
    stop = start + len(votes)
    if self.rule.test is not None:
      stop = min(stop, log.tested)
    if paid > start:
      stop = min(stop, paid)
    elif self.rule.test is None:
      stop = start + self._affordable(len(votes), self.rule.answer)
    if stop == start:
      return False
    passed = self._passed(start, stop)
    if passed.any() and paid <= start:
      self._charge("answers", start, stop, self.rule.answer, int(passed.sum()))
    rows = votes[: stop - start][passed]
    source = self._source(start, "answers")
    log.add_answers(stop - start, self.rule.answers(rows, source))
    return True

  def _charge_tests(self, test: accounting.Event, limit: int) -> int:
    """Where the tests that are paid for end; pays for some if none are."""
    start, paid = self._log.tested, self._paid("tests")
    if paid > start:
      return paid
    count = self._affordable(limit, test, self.rule.answer)
    if count:
      self._charge("tests", start, start + count, test, count)
    return start + count

  def _affordable(self, limit: int, *events: accounting.Event) -> int:
    """How many of each event the budget pays for, up to a batch."""

    def fits(count: int) -> bool:
      return self.ledger.affords(
        *(accounting.Repeated(event, count) for event in events)
      )

    low, high = 0, min(limit, self._batch_size)
    if fits(high):
      return high
    while high - low > 1:
      middle = (low + high) // 2
      low, high = (middle, high) if fits(middle) else (low, middle)
    return low

  def _charge(
    self, what: str, start: int, stop: int, event: accounting.Event, count: int
  ) -> None:
    name = f"{self._prefix(what, start)}{stop}"
    if not self.ledger.charge(accounting.Repeated(event, count), id=name):
      raise accounting.LedgerError(
        f"{name!r} is charged already, by somebody who answers the same "
        "queries; close this Answerer and begin it again"
      )
    self._charged[self._prefix(what, start)] = stop

  def _paid(self, what: str) -> int:
    """Where what was charged from the next query on ends.

    Above the next query only if a crash came between charge and release.
    """
    start = self._log.tested if what == "tests" else self._log.done
    return self._charged.get(self._prefix(what, start), start)

  def _prefix(self, what: str, start: int) -> str:
    return f"{self._log.run}: {what} of queries {start} to "

  def _passed(self, start: int, stop: int) -> np.ndarray:
    if self.rule.test is None:
      return np.ones(stop - start, bool)
    return self._log.passed(start, stop)

  def _source(self, start: int, what: str) -> BitSource:
    """Random bits, by name if there is a seed: a crash changes no answer."""
    if self._seed is None:
      return os.urandom
    return seeded((self._seed << 65) + (start << 1) + (what == "answers"))

  def _collect(self, first: int, size: int, num_classes: int) -> Answers:
    known = min(self.asked, first + size)
    passed = self._passed(0, self.asked)
    values = self._log.labels()
    before, within = passed[:first].sum(), passed[first:known]
    answered = np.zeros(size, bool)
    answered[: len(within)] = within
    labels = np.full(size, NO_ANSWER, np.int64)
    if self.rule.soft:
      labels = np.zeros((size, num_classes), np.int64)
    if answered.any():
      labels[answered] = values[before : before + within.sum()]
    asked = np.arange(first, first + size) < known
    return Answers(
      labels, answered, asked, self._guarantee(), self._seed is None
    )

  def _guarantee(self) -> accounting.PrivacyGuarantee:
    if self.rule.test is None:
      return self.ledger.guarantee()
    assert self.ledger.budget is not None
    epsilon, delta = self.ledger.budget
    return accounting.PrivacyGuarantee(
      epsilon, delta, self.ledger.relation, self.ledger.unit, "budget"
    )


def _charged(ledger: accounting.Ledger, run: str) -> dict[str, int]:
  """Where each stretch ends that this run has charged, by all before that."""
  names = [entry.id for entry in ledger if entry.id.startswith(f"{run}: ")]
  split = [name.rpartition(" ") for name in names]
  return {f"{prefix} ": int(stop) for prefix, _, stop in split}


def _open(
  path: pathlib.Path,
  data: str,
  unit: str,
  budget: tuple[float, float] | None,
) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  checks.require(
    budget is not None,
    "budget is missing; pass (epsilon, delta), or a ledger that has one",
  )
  return accounting.Ledger.create(
    path, data=data, unit=unit, budget=budget,
    relation=accounting.Relation.REPLACE_ONE,
  )  # fmt: skip


def _check_ledger(
  ledger: accounting.Ledger, budget: tuple[float, float] | None
) -> None:
  checks.require(
    ledger.budget is not None,
    f"{ledger.path} has no budget to stop at; create it with one",
  )
  checks.require(
    budget is None or tuple(budget) == ledger.budget,
    f"budget={budget} differs from {ledger.path}, which was begun with "
    f"{tuple(ledger.budget or ())}; leave it out to continue",
  )
  checks.require(
    ledger.relation.fixed_size,
    f"{ledger.path} is about people added or removed, which can move everyone "
    "to another teacher; use Relation.REPLACE_ONE",
  )
