"""The log of an `Answerer`: what was released, in order, once.

Sealed JSON lines, as in a ledger: a header, then tests (which queries passed)
and answers (the labels of those that did), each a stretch of consecutive
queries. A line that a crash tore is dropped: its stretch gets the same noise
again.
"""

import json
import pathlib
import re
import secrets
from typing import Any, NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.accounting import _ledger_file
from jaxfair.accounting._locked_file import LedgerError, LockedFile


class AnswerLogError(LedgerError):
  """A log that belongs to other answers, or cannot be read."""


KIND = _ledger_file.Kind(
  "log of answers",
  "jaxfair-answers",
  2,
  AnswerLogError,
  "restore a copy of the log, or start another folder, which pays for its answers again",
)


class Stretch(NamedTuple):
  """Consecutive queries that are one line of the log.

  Attributes:
    what: "tests" or "answers".
    start: the first query.
    stop: the first query behind them.
    paid: whether the ledger has a charge for them; where no query passed,
      there is nothing to answer.
  """

  what: str
  start: int
  stop: int
  paid: bool


class AnswerLog:
  """Two prefixes of the queries: those tested, and those dealt with.

  Attributes:
    run: names these answers in the ledger; random, and new for every log.
    tested: queries whose test is known.
    done: queries whose answer, or lack of one, is known.
    stretches: what is in the log.
  """

  def __init__(
    self,
    path: pathlib.Path,
    settings: dict[str, Any],
    *,
    ledger: str,
    secret: str | None,
    run: str | None = None,
    with_tests: bool,
    soft: bool,
  ):
    """Begins a log, or continues the one that is there.

    Args:
      path: path of the log.
      settings: what must be the same on continuing: the rule, the seed.
      ledger: id of the ledger that pays.
      secret: fingerprint of what the noise comes from; None if it is erased.
      run: names a new log in the ledger; None draws a name.
      with_tests: whether queries are tested before they are answered.
      soft: whether an answer is a list of values, not one label.
    """
    self._passed: list[np.ndarray] = []
    self._labels: list[np.ndarray] = []
    self._with_tests, self._soft = with_tests, soft
    self.tested = self.done = 0
    self.stretches: list[Stretch] = []
    if not path.exists():
      assert secret is not None, "a log is begun with a secret"
      self.run = run or secrets.token_hex(8)
      header = {
        "format": KIND.format,
        "version": KIND.version,
        "run": self.run,
        "ledger": ledger,
        "secret": secret,
        "settings": settings,
      }
      line, self._seal = _ledger_file.sealed_line(header, "")
      self._lines = 1
      self._file = LockedFile.create(path, line)
      return
    self._file = LockedFile.open(path)
    try:
      found = _ledger_file.replay(self._file.read(), path, KIND)
      self._understand(found.records, path)
      _require_same(found.records[0], path, settings, ledger, secret)
      if not found.terminated:
        self._file.append(b"")
      if found.torn:
        self._file.cut(found.size)
      self._seal, self._lines = found.seals[-1], len(found.records)
    except BaseException:
      self._file.close()
      raise

  def add_tests(self, passed: np.ndarray) -> None:
    """Writes down which of the next queries passed; on the disk on return."""
    self._write("tests", self.tested, len(passed), passed=_packed(passed))
    self._count_tests(passed)

  def add_answers(self, count: int, labels: np.ndarray) -> None:
    """Writes down the next queries' labels, of those that passed."""
    self._write("answers", self.done, count, labels=labels.tolist())
    self._count_answers(count, labels)

  def passed(self, start: int, stop: int) -> np.ndarray:
    """Which of these queries passed their test."""
    if not self._with_tests:
      return np.ones(stop - start, bool)
    return _joined(self._passed, np.zeros(0, bool))[start:stop]

  def labels(self) -> np.ndarray:
    """The labels of all that passed and are done, in order."""
    return _joined(self._labels, np.zeros(0, np.int64))

  def close(self) -> None:
    """Gives the log up to other writers."""
    self._file.close()

  def _write(self, what: str, start: int, count: int, **values: object) -> None:
    record = {"sequence": self._lines, "kind": what, "first": start, "count": count, **values}
    line, seal = _ledger_file.sealed_line(record, self._seal)
    self._file.append(line)
    self._seal = seal
    self._lines += 1

  def _count_tests(self, passed: np.ndarray) -> None:
    stop = self.tested + len(passed)
    self.stretches.append(Stretch("tests", self.tested, stop, True))
    self._passed.append(passed)
    self.tested = stop

  def _count_answers(self, count: int, labels: np.ndarray) -> None:
    stop = self.done + count
    self.stretches.append(Stretch("answers", self.done, stop, len(labels) > 0))
    if len(labels):
      self._labels.append(labels)
    self.done = stop

  def _understand(self, records: list[dict[str, Any]], path: pathlib.Path) -> None:
    line = 1
    try:
      self.run = _check_header(records[0])
      for record in records[1:]:
        line += 1
        self._replay(record)
    except checks.ArgumentError as error:
      raise AnswerLogError(
        f"line {line} of {path} is not understood ({error}); {KIND.remedy}"
      ) from None

  def _replay(self, record: dict[str, Any]) -> None:
    """Counts a record that this class would write, and refuses any other."""
    what = record.get("kind")
    checks.one_of("kind", what, ("tests", "answers"))
    values = "passed" if what == "tests" else "labels"
    _fields(record, "sequence", "kind", "first", "count", values)
    before = self.tested if what == "tests" else self.done
    checks.integer("first", record["first"])
    checks.require(
      record["first"] == before, f"{what} at {record['first']} do not follow on {before}"
    )
    checks.integer("count", record["count"], low=1, high=2**40)
    count = int(record["count"])
    if what == "tests":
      checks.require(self._with_tests, "the rule has no tests")
      self._count_tests(_unpacked(record["passed"], count))
      return
    stop = self.done + count
    checks.require(
      not self._with_tests or stop <= self.tested,
      f"{stop} queries are answered and {self.tested} are tested",
    )
    wanted = int(self.passed(self.done, stop).sum())
    self._count_answers(count, _labels(record["labels"], wanted, self._soft))


def _check_header(header: dict[str, Any]) -> str:
  _fields(header, "format", "version", "run", "ledger", "secret", "settings")
  for name, digits in (("run", 16), ("ledger", 32), ("secret", 32)):
    value = header[name]
    checks.require(
      isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None,
      f"{name}={value!r} must be {digits} hexadecimal digits",
    )
  checks.require(isinstance(header["settings"], dict), "settings must be an object")
  return str(header["run"])


def _require_same(
  header: dict[str, Any],
  path: pathlib.Path,
  settings: dict[str, Any],
  ledger: str,
  secret: str | None,
) -> None:
  known, now = header["settings"], json.loads(json.dumps(settings))
  for name in {**now, **known}:
    if known.get(name) != now.get(name):
      raise AnswerLogError(
        f"{path} holds answers with {name}={known.get(name)}, not "
        f"{now.get(name)}; choose another folder"
      )
  if header["ledger"] != ledger:
    raise AnswerLogError(
      f"{path} holds answers that are charged to ledger {header['ledger']}, "
      f"not to {ledger}; pass that one, or choose another folder"
    )
  if secret is not None and header["secret"] != secret:
    raise AnswerLogError(
      f"{path} holds answers whose noise came from another secret; put back "
      "the one it was started with, or choose another folder"
    )


def _fields(record: dict[str, Any], *names: str) -> None:
  odd = sorted(record.keys() ^ set(names))
  checks.require(not odd, f"{', '.join(odd)} missing or not known")


def _packed(passed: np.ndarray) -> str:
  return np.packbits(passed).tobytes().hex()


def _unpacked(value: Any, count: int) -> np.ndarray:
  digits = 2 * -(-count // 8)
  checks.require(
    isinstance(value, str)
    and len(value) == digits
    and re.fullmatch("[0-9a-f]*", value) is not None,
    f"passed must be {digits} hexadecimal digits",
  )
  packed = np.frombuffer(bytes.fromhex(value), np.uint8)
  return np.unpackbits(packed, count=count).astype(bool)


def _labels(value: Any, count: int, soft: bool) -> np.ndarray:
  checks.require(
    isinstance(value, list) and len(value) == count, f"labels must be a list of {count}"
  )
  rows = value if soft else [value]
  for row in rows:
    checks.require(
      isinstance(row, list)
      and len(row) == len(rows[0])
      and all(type(item) is int and abs(item) < 2**62 for item in row),
      "labels must be whole numbers, as many for each query",
    )
  return np.asarray(value, np.int64)


def _joined(parts: list[np.ndarray], empty: np.ndarray) -> np.ndarray:
  """One array; what was joined once stays joined."""
  if len(parts) > 1:
    parts[:] = [np.concatenate(parts)]
  return parts[0] if parts else empty
