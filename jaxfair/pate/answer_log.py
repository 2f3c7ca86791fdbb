"""The log of an `Answerer`: what was released, in order, once.

JSON lines: a header, then tests (which queries passed) and answers (the labels
of those that did), each a stretch of consecutive queries. A line counts when
it is complete; a line that a crash tore was not released, and is dropped.
"""

import json
import pathlib
import secrets
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.accounting.locked_file import LockedFile

FORMAT = "jaxfair-answers"


class AnswerLogError(checks.JaxfairError):
  """A log that belongs to other answers, or cannot be read."""


class AnswerLog:
  """Two prefixes of the queries: those tested, and those dealt with.

  Attributes:
    run: names these answers in the ledger; random, and new for every log.
    tested: queries whose test is known.
    done: queries whose answer, or lack of one, is known.
  """

  def __init__(self, path: pathlib.Path, described: dict[str, Any]):
    """Begins a log, or continues the one that is there.

    Args:
      path: of the log.
      described: what must be the same on continuing: the rule, the seed.
    """
    self._passed: list[np.ndarray] = []
    self._labels: list[np.ndarray] = []
    self.tested = self.done = 0
    if not path.exists():
      self.run = secrets.token_hex(8)
      header = {"format": FORMAT, "run": self.run, "settings": described}
      line = json.dumps(header).encode()
      self._file = LockedFile.create(path, line)
    else:
      self._file = LockedFile.open(path)
      try:
        self._replay(path, json.loads(json.dumps(described)))
      except BaseException:
        self._file.close()
        raise

  def add_tests(self, passed: np.ndarray) -> None:
    """Writes down which of the next queries passed; on the disk on return."""
    self._write(
      {
        "tests": self.tested,
        "count": len(passed),
        "passed": np.packbits(passed).tobytes().hex(),
      }
    )
    self._count_tests(passed)

  def add_answers(self, count: int, labels: np.ndarray) -> None:
    """Writes down the next queries' labels, of those that passed."""
    self._write(
      {
        "answers": self.done,
        "count": count,
        "labels": labels.tolist(),
      }
    )
    self._count_answers(count, labels)

  def passed(self, start: int, stop: int) -> np.ndarray:
    """Which of these queries passed their test."""
    return _joined(self._passed, np.zeros(0, bool))[start:stop]

  def labels(self) -> np.ndarray:
    """The labels of all that passed and are done, in order."""
    return _joined(self._labels, np.zeros(0, np.int64))

  def close(self) -> None:
    """Gives the log up to other writers."""
    self._file.close()

  def _write(self, record: dict[str, Any]) -> None:
    self._file.append(json.dumps(record, separators=(",", ":")).encode())

  def _count_tests(self, passed: np.ndarray) -> None:
    self._passed.append(passed)
    self.tested += len(passed)

  def _count_answers(self, count: int, labels: np.ndarray) -> None:
    if len(labels):
      self._labels.append(labels)
    self.done += count

  def _replay(self, path: pathlib.Path, described: Any) -> None:
    *lines, torn = self._file.read().split(b"\n")
    try:
      header, *records = (json.loads(line) for line in lines)
      if header["format"] != FORMAT:
        raise ValueError("no log of answers")
      self.run = header["run"]
      for record in records:
        self._understand(record)
    except (KeyError, TypeError, ValueError) as error:
      raise AnswerLogError(
        f"{path} cannot be read ({error}); restore it from a copy, or begin "
        "another folder, which pays for its answers anew"
      ) from error
    for name, value in described.items():
      if header["settings"].get(name) != value:
        raise AnswerLogError(
          f"{path} holds answers with {name}={header['settings'].get(name)}, "
          f"not {value}; choose another folder"
        )
    if torn:
      self._file.cut(sum(len(line) + 1 for line in lines))

  def _understand(self, record: dict[str, Any]) -> None:
    count = int(record["count"])
    if "tests" in record:
      start, bits = record["tests"], bytes.fromhex(record["passed"])
      if start != self.tested or len(bits) != -(-count // 8):
        raise ValueError(f"tests at {start} do not follow on")
      packed = np.frombuffer(bits, np.uint8)
      self._count_tests(np.unpackbits(packed, count=count).astype(bool))
    else:
      start = record["answers"]
      if start != self.done:
        raise ValueError(f"answers at {start} do not follow on")
      self._count_answers(count, np.asarray(record["labels"], np.int64))


def _joined(parts: list[np.ndarray], empty: np.ndarray) -> np.ndarray:
  """One array; what was joined once stays joined."""
  if len(parts) > 1:
    parts[:] = [np.concatenate(parts)]
  return parts[0] if parts else empty
