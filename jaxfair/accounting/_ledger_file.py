"""The lines of a ledger: JSON, each sealed with those before it.

Every line ends with the SHA-256 of itself and of the previous line's seal, so
an edited, lost, duplicated or reordered line is detected. An unfinished last line belongs to a
release that was never made.
"""

import hashlib
import json
import pathlib
import re
from typing import Any, NamedTuple

from jaxfair.accounting._locked_file import LedgerError


class Kind(NamedTuple):
  """A kind of files made of sealed lines.

  Attributes:
    name: name in messages.
    format: in the header.
    version: of the format, also in the header.
    error: what is raised for a file that cannot be used.
    remedy: what to do about one that is damaged.
  """

  name: str
  format: str
  version: int
  error: type[LedgerError]
  remedy: str


LEDGER = Kind(
  "ledger",
  "jaxfair-ledger",
  2,
  LedgerError,
  "count everything ever released from this data as unaccounted, unless a copy holds every charge",
)
_END = re.compile(rb'"sha256":"[0-9a-f]{64}"\}')


class Replay(NamedTuple):
  """What the bytes of a ledger say.

  Attributes:
    records: the header and what follows, in order, without their seals.
    seals: one for each record.
    size: bytes of the intact records.
    torn: bytes after them that a crash left unfinished.
    terminated: whether the last intact record ends with its newline.
  """

  records: list[dict[str, Any]]
  seals: list[str]
  size: int
  torn: int
  terminated: bool


def sealed_line(record: dict[str, Any], previous: str) -> tuple[bytes, str]:
  """The line for a record (without newline), and its seal."""
  seal = _seal(record, previous)
  return _encode({**record, "sha256": seal}), seal


def replay(raw: bytes, path: pathlib.Path, kind: Kind = LEDGER) -> Replay:
  """Checks every line and its seal.

  Raises:
    LedgerError: (or the kind's) for anything but an unfinished last line.
  """
  *lines, tail = raw.split(b"\n")
  if not lines:
    raise kind.error(
      f"{path} has no complete header, which a crash cannot cause: it was truncated or is not "
      f"a {kind.name}; {kind.remedy}"
    )
  records: list[dict[str, Any]] = []
  seals = [""]
  for number, line in enumerate(lines, start=1):
    opened = _unseal(line, seals[-1])
    if opened is None or opened[0].get("sequence", 0) != number - 1:
      raise kind.error(
        f"{path} is damaged at line {number}: its seal does not match its content or the lines "
        f"before it; {kind.remedy}"
      )
    records.append(opened[0])
    seals.append(opened[1])
  _check_header(records[0], path, kind)
  size = len(raw) - len(tail)
  if not tail:
    return Replay(records, seals[1:], size, 0, True)
  last = _unseal(tail, seals[-1])
  if last is not None:  # all but the newline was written: it counts
    records.append(last[0])
    seals.append(last[1])
    return Replay(records, seals[1:], len(raw), 0, False)
  ends = (found.end() for found in _END.finditer(tail))
  if any(_unseal(tail[:end], seals[-1]) for end in ends):
    raise kind.error(
      f"{path} is damaged after its last record, which is complete; restore the newline at its "
      "end by hand"
    )
  return Replay(records, seals[1:], size, len(tail), True)


def _check_header(header: dict[str, Any], path: pathlib.Path, kind: Kind) -> None:
  if header.get("format") != kind.format:
    raise kind.error(f"{path} is not a {kind.name}: its first line is not a header")
  if header.get("version") != kind.version:
    raise kind.error(
      f"{path} has version {header.get('version')}, and this jaxfair reads "
      f"version {kind.version}; use the jaxfair that wrote it"
    )


def _encode(record: dict[str, Any]) -> bytes:
  text = json.dumps(record, separators=(",", ":"), allow_nan=False)
  return text.encode("ascii")


def _seal(record: dict[str, Any], previous: str) -> str:
  return hashlib.sha256(previous.encode() + _encode(record)).hexdigest()


def _unseal(line: bytes, previous: str) -> tuple[dict[str, Any], str] | None:
  """The record and its seal, if the line is exactly what we would write."""
  try:
    record = json.loads(line)
  except (ValueError, RecursionError):
    return None
  if not isinstance(record, dict):
    return None
  seal = record.pop("sha256", None)
  try:
    expected, _ = sealed_line(record, previous)
  except (ValueError, RecursionError):  # NaN or infinity
    return None
  return (record, seal) if line == expected else None
