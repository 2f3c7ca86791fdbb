"""Answers for release: charged first, stopped in time, never given twice."""

import contextlib
import os
import pathlib
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from jaxfair import accounting, checks
from jaxfair.pate import _rules
from jaxfair.pate._aggregation import NO_ANSWER, check_counts
from jaxfair.pate._answer_charges import Charges, check_ledger, open_ledger
from jaxfair.pate._answer_log import AnswerLog, AnswerLogError
from jaxfair.pate._answer_noise import Drawn, NoiseSecret, erase_secret
from jaxfair.types import VotesLike


class Answers(NamedTuple):
  """What was released about some queries.

  Attributes:
    labels: [n] class ids, `NO_ANSWER` where there is none; of `NoisyVotes`
      [n, C] noisy counts, 0 where there are none.
    answered: [n] whether there is an answer.
    asked: [n] whether the votes were read; what was asked is charged.
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

  The folder holds `ledger.jsonl`, `answers.jsonl` and `private/secret_key`.
  After a crash, even a kill -9, the same code continues where it stopped:
  queries in the log are answered from it, without reading the votes and
  without a charge. `finish` erases the secret once there are no more queries.

  Privacy:
    Charges are data-independent, and written to the disk before the votes are
    read: first the tests of a batch, then, once the log says which passed,
    their answers. A batch is started only if the budget covers all its
    answers, so the budget is never exceeded, and the point where it ends depends on
    released answers only: `accounting._filters` proves that the budget holds.
    Tests that fail cost the test alone. A crash may leave a charge for an
    answer that was never released, never the reverse.

    Each charged stretch of queries is answered once: its noise is computed
    from the folder's secret and its votes. A log that is older than its
    ledger, after a crash or because it was restored, therefore gets the same
    answers again. The charge contains a keyed digest of the votes; other votes raise an
    error, since they would be a second release. So does a ledger that lacks a charge for
    an answer in the log. A copy of the folder answers the same votes with the same bits.
    Copies that are asked about other votes are separate releases, and neither counts the
    other: charge them to one ledger.

    What a rule with a test spends depends on its answers, so only the budget (a
    privacy filter) may be published; the ledger holds the amount spent.
    For the other rules the amount spent may be published, provided that the number
    of queries does not depend on the labels.

  """

  def __init__(
    self,
    folder: str | os.PathLike[str],
    rule: _rules.Rule,
    *,
    budget: tuple[float, float] | None = None,
    data: str = "private votes",
    unit: str = "one person",
    ledger: accounting.Ledger | None = None,
    dataset_ledger: accounting.DatasetLedger | None = None,
    batch_size: int = 10_000,
    seed: int | None = None,
    about: str | None = None,
  ):
    """Begins answering, or continues.

    Args:
      folder: folder of these answers; made if missing.
      rule: `GnMax`, `ConfidentGnMax`, `LaplaceMax` or `NoisyVotes`.
      budget: (epsilon, delta), for one person replaced by another; needed to
        begin a folder's own ledger.
      data: the data set's name, for that ledger.
      unit: the unit that is protected, if each is in one teacher's part.
      ledger: open for charges and with a budget, instead of the folder's own.
      dataset_ledger: charges the whole budget to the data set as well, once,
        before anything is answered for release.
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
    self._folder = folder
    self.rule = rule
    self._batch_size = batch_size
    self._seed = seed
    self._settings: dict[str, Any] = {"rule": _rules.described(rule), "seed": seed}
    if about is not None:
      self._settings["about"] = about
    self._own = ledger is None
    with contextlib.ExitStack() as undo:
      if ledger is None:
        ledger = open_ledger(folder / "ledger.jsonl", data, unit, budget)
        undo.callback(ledger.close)
      self.ledger = ledger
      check_ledger(ledger, budget if self._own else None)
      path = folder / "answers.jsonl"
      self._secret = (
        NoiseSecret.of_folder(folder, begin=not path.exists())
        if seed is None
        else NoiseSecret.of_seed(seed)
      )
      self._log = AnswerLog(
        path,
        self._settings,
        ledger=ledger.id,
        secret=self._secret.fingerprint() if self._secret else None,
        run=self._secret.run if self._secret else None,
        with_tests=rule.test is not None,
        soft=rule.soft,
      )
      undo.callback(self._log.close)
      self._charges = Charges(ledger, self._log)
      if dataset_ledger is not None and seed is None:
        dataset_ledger.charge_budget(ledger)
      undo.pop_all()

  @property
  def asked(self) -> int:
    """The number of queries handled so far, which is the number of the next one."""
    return self._log.done

  def answer(self, counts: VotesLike, *, first: int) -> Answers:
    """Answers queries `first`, `first + 1`, ..., as far as the budget goes.

    Args:
      counts: [n, C] integer votes per class.
      first: the number of the first query. A script that is run again after
        a crash begins at 0 again; new queries begin at `asked`.

    Returns:
      One row for each query.

    Raises:
      LedgerError: if a charge cannot be written, or was made for other votes;
        nothing is released then.
    """
    check_counts(counts)
    checks.integer(
      "first", first, low=0, high=self.asked, remedy="queries are answered in order, without gaps"
    )
    votes = np.asarray(counts).astype(np.int64)
    while self.asked < first + len(votes):
      if not self._advance(votes[max(0, self.asked - first) :]):
        break
    return self._collect(first, *votes.shape)

  def finish(self) -> None:
    """Erases the secret that could subtract the noise.

    The folder still returns the answers it holds, but gives no new ones. A
    log that is older than its ledger can then no longer be repaired.
    """
    erase_secret(self._folder)
    self._secret = None

  def close(self) -> None:
    """Closes the folder; other processes may then use it."""
    self._log.close()
    if self._own:
      self.ledger.close()

  def __enter__(self) -> "Answerer":
    return self

  def __exit__(
    self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
  ) -> None:
    self.close()

  def _advance(self, votes: np.ndarray) -> bool:
    """Tests and answers a batch of the next queries; False at the end."""
    log, rule = self._log, self.rule
    if rule.test is not None and log.tested == log.done:
      start = log.tested
      stop = self._paid_until("tests", start, len(votes))
      if stop is None:
        stop = start + self._affordable(len(votes), rule.test, rule.answer)
      if stop == start:
        return False
      rows = votes[: stop - start]
      drawn = self._pay("tests", start, stop, rule.test, rows)
      log.add_tests(rule.passes(rows, drawn.source))
    return self._answer_batch(votes)

  def _answer_batch(self, votes: np.ndarray) -> bool:
    log, rule, start = self._log, self.rule, self._log.done
    stop = self._paid_until("answers", start, len(votes))
    if stop is None and rule.test is not None:
      stop = min(start + len(votes), log.tested)
    elif stop is None:
      stop = start + self._affordable(len(votes), rule.answer)
    if stop == start:
      return False
    # A charge that is found covers queries whose tests came before it.
    checks.require(
      rule.test is None or stop <= log.tested,
      f"answers up to query {stop} are charged and {log.tested} are tested",
    )
    passed = log.passed(start, stop)
    rows = votes[: stop - start][passed]
    labels = np.zeros(0, np.int64)
    if len(rows):
      drawn = self._pay("answers", start, stop, rule.answer, rows)
      labels = rule.answers(rows, drawn.source)
    log.add_answers(stop - start, labels)
    return True

  def _affordable(self, limit: int, *events: accounting.Event) -> int:
    """How many of each event the budget pays for, up to a batch."""

    def fits(count: int) -> bool:
      return self.ledger.affords(*(accounting.Repeated(event, count) for event in events))

    low, high = 0, min(limit, self._batch_size)
    if fits(high):
      return high
    while high - low > 1:
      middle = (low + high) // 2
      low, high = (middle, high) if fits(middle) else (low, middle)
    return low

  def _pay(
    self, what: str, start: int, stop: int, event: accounting.Event, rows: np.ndarray
  ) -> Drawn:
    """Pays for a stretch unless it is paid for; its noise."""
    if self._secret is None:
      raise AnswerLogError(
        f"the answers in {self._folder} are finished, and the secret of their "
        "noise is erased; begin another folder, which pays for its answers"
      )
    # A study's answers are the same in every folder.
    settings = [self._log.run if self._seed is None else "", self._settings]
    return self._charges.pay(what, start, stop, event, rows, secret=self._secret, settings=settings)

  def _paid_until(self, what: str, start: int, size: int) -> int | None:
    """Where a stretch ends that is charged and not in the log.

    There is one after a crash between charge and release, or with a log that
    is older than its ledger. Its noise was drawn for the whole of it.
    """
    stop = self._charges.end(what, start)
    if stop is None:
      return None
    checks.require(
      start + size >= stop,
      f"queries {start} to {stop} were charged together, but only {size} of them are passed; "
      "pass the votes of all of them",
    )
    return stop

  def _collect(self, first: int, size: int, num_classes: int) -> Answers:
    known = min(self.asked, first + size)
    passed = self._log.passed(0, self.asked)
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
    return Answers(labels, answered, asked, self._guarantee(), self._seed is None)

  def _guarantee(self) -> accounting.PrivacyGuarantee:
    if self.rule.test is None:
      return self.ledger.guarantee()
    assert self.ledger.budget is not None
    epsilon, delta = self.ledger.budget
    return accounting.PrivacyGuarantee(
      epsilon, delta, self.ledger.relation, self.ledger.unit, "budget"
    )
