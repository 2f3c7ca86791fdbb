"""What the lines of a ledger say, once their seals are checked."""

import datetime
import pathlib
import re
import secrets
from typing import Any, NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.accounting import _event_json
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bounds import require_covered
from jaxfair.accounting._guarantee import Relation, delta_in_range
from jaxfair.accounting._ledger_file import LEDGER
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.accounting._units import units


class Budget(NamedTuple):
  """The total (epsilon, delta) that may be spent."""

  epsilon: float
  delta: float


class Entry(NamedTuple):
  """One charge.

  Attributes:
    sequence: its line, counted from the header's 0.
    id: the caller's name for the release.
    event: what was done.
    note: for people.
    time: when, in UTC.
  """

  sequence: int
  id: str
  event: ev.Event
  note: str
  time: str


class Header(NamedTuple):
  """What the ledger is about."""

  id: str
  data: str
  unit: str
  relation: Relation
  budget: Budget | None


def header(
  data: str, unit: str, relation: Relation, budget: tuple[float, float] | None
) -> dict[str, Any]:
  """The first line: what the ledger speaks of."""
  for name, text in (("data", data), ("unit", unit)):
    _text(name, text)
  checks.require(isinstance(relation, Relation), f"relation={relation!r} is not a Relation")
  return {
    "format": LEDGER.format,
    "version": LEDGER.version,
    "ledger": secrets.token_hex(16),
    "data": data,
    "unit": unit,
    "relation": relation.value,
    "budget": _budget(budget),
    "time": now(),
  }


def charge(entry: Entry) -> dict[str, Any]:
  """The line of one charge."""
  return {
    "sequence": entry.sequence,
    "kind": "charge",
    "id": entry.id,
    "event": _event_json.to_json(entry.event),
    "note": entry.note,
    "time": entry.time,
  }


def recovered(sequence: int, dropped_bytes: int) -> dict[str, Any]:
  """The line that tells of an unfinished one."""
  return {"sequence": sequence, "kind": "recovered", "dropped_bytes": dropped_bytes, "time": now()}


def understood(records: list[dict[str, Any]], path: pathlib.Path) -> tuple[Header, list[Entry]]:
  """What the records of a ledger say: its header and its charges.

  Raises:
    LedgerError: for a line that this module would not write, since it may
      be a charge, or hide one.
  """
  number = 0
  try:
    header = _header(records[0])
    entries = {}
    for number, record in enumerate(records[1:], start=1):
      kind = record.get("kind")
      checks.one_of("kind", kind, ("charge", "recovered"))
      checks.require(
        type(record.get("sequence")) is int,  # True and 1.0 equal 1, too
        "sequence must be a whole number",
      )
      _time(record)
      if kind == "recovered":
        _fields(record, recovered(number, 1))
        checks.integer("dropped_bytes", record["dropped_bytes"], low=1)
        continue
      entry = _entry(record, header.relation)
      checks.require(entry.id not in entries, f"id {entry.id!r} is charged twice")
      entries[entry.id] = entry
  except checks.ArgumentError as error:
    raise LedgerError(
      f"line {number + 1} of {path} cannot be read ({error}); use the version of jaxfair that "
      "wrote it"
    ) from error
  return header, list(entries.values())


def now() -> str:
  """The time in UTC, to the second."""
  return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _budget(budget: tuple[float, float] | None) -> dict[str, float] | None:
  if budget is None:
    return None
  epsilon = _number("budget epsilon", budget[0])
  delta = _number("budget delta", budget[1])
  checks.positive("budget epsilon", epsilon)
  delta_in_range(delta, zero=True)
  return {"epsilon": epsilon, "delta": delta}


def _header(record: dict[str, Any]) -> Header:
  _fields(record, header("x", "x", Relation.ZERO_OUT, None))
  _time(record)
  id, budget = record["ledger"], record["budget"]
  checks.require(
    isinstance(id, str) and re.fullmatch("[0-9a-f]{32}", id) is not None,
    f"ledger={id!r} is not an id of 32 hexadecimal digits",
  )
  checks.one_of("relation", record["relation"], [r.value for r in Relation])
  if budget is not None:
    checks.require(isinstance(budget, dict), f"budget={budget!r} is no budget")
    _fields(budget, {"epsilon": 0, "delta": 0})
    _budget((budget["epsilon"], budget["delta"]))
    budget = Budget(float(budget["epsilon"]), float(budget["delta"]))
  return Header(
    id,
    _text("data", record["data"]),
    _text("unit", record["unit"]),
    Relation(record["relation"]),
    budget,
  )


def _entry(record: dict[str, Any], relation: Relation) -> Entry:
  blank = Entry(0, "", ev.PureDp(0.0), "", "")
  _fields(record, charge(blank))
  checks.require(isinstance(record["note"], str), f"note={record['note']!r} must be text")
  event = _event_json.from_json(record["event"])
  require_covered(units([event], relation), relation)
  return Entry(record["sequence"], _text("id", record["id"]), event, record["note"], record["time"])


def _fields(record: dict[str, Any], like: dict[str, Any]) -> None:
  """Requires the same fields, neither fewer nor more."""
  odd = sorted(record.keys() ^ like.keys())
  checks.require(not odd, f"{', '.join(odd)} missing or unknown")


def _text(name: str, value: object) -> str:
  checks.require(isinstance(value, str) and value != "", f"{name}={value!r} must be a name")
  return str(value)


def _number(name: str, value: Any) -> float:
  real = isinstance(value, int | float | np.integer | np.floating)
  checks.require(real and not isinstance(value, bool), f"{name}={value!r} must be a finite number")
  checks.number(name, value)
  return float(value)


def _time(record: dict[str, Any]) -> None:
  time = record.get("time")
  try:
    datetime.datetime.fromisoformat(time if isinstance(time, str) else "")
  except ValueError:
    raise checks.ArgumentError(f"time={time!r} is no time") from None
