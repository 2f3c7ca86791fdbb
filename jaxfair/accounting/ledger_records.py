"""What the lines of a ledger say, once their seals are checked."""

import datetime
from typing import Any, NamedTuple

from jaxfair import checks
from jaxfair.accounting import event_json
from jaxfair.accounting import events as ev
from jaxfair.accounting.guarantee import Relation, delta_in_range
from jaxfair.accounting.ledger_file import FORMAT, VERSION, LedgerError


class Budget(NamedTuple):
  """What may be spent in all."""

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
  """What the ledger speaks of."""

  data: str
  unit: str
  relation: Relation
  budget: Budget | None


def header(
  data: str,
  unit: str,
  relation: Relation,
  budget: tuple[float, float] | None,
) -> dict[str, Any]:
  """The first line: what the ledger speaks of."""
  for name, text in (("data", data), ("unit", unit)):
    checks.require(
      isinstance(text, str) and text != "", f"{name} must be a name in words"
    )
  checks.require(
    isinstance(relation, Relation), f"relation={relation!r} is no Relation"
  )
  return {
    "format": FORMAT,
    "version": VERSION,
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
    "event": event_json.to_json(entry.event),
    "note": entry.note,
    "time": entry.time,
  }


def recovered(sequence: int, dropped_bytes: int) -> dict[str, Any]:
  """The line that tells of an unfinished one."""
  return {
    "sequence": sequence,
    "kind": "recovered",
    "dropped_bytes": dropped_bytes,
    "time": now(),
  }


def understood(
  records: list[dict[str, Any]], path: Any
) -> tuple[Header, list[Entry]]:
  """What the records of a ledger say: its header and its charges.

  Raises:
    LedgerError: for a line of a kind that is not known, since it may be a
      charge.
  """
  number = 0
  try:
    header = Header(
      records[0]["data"],
      records[0]["unit"],
      Relation(records[0]["relation"]),
      Budget(**records[0]["budget"]) if records[0]["budget"] else None,
    )
    entries = []
    for record in records[1:]:
      number += 1
      if record["kind"] == "charge":
        entries.append(_entry(record))
      elif record["kind"] != "recovered":
        raise ValueError(f"kind {record['kind']!r} is not known")
  except (KeyError, TypeError, ValueError) as error:
    raise LedgerError(
      f"line {number + 1} of {path} is not understood ({error}); use the "
      "jaxfair that wrote it"
    ) from error
  return header, entries


def now() -> str:
  """The time in UTC, to the second."""
  return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _budget(budget: tuple[float, float] | None) -> dict[str, float] | None:
  if budget is None:
    return None
  epsilon, delta = budget
  checks.positive("budget epsilon", epsilon)
  delta_in_range(delta, zero=True)
  return {"epsilon": float(epsilon), "delta": float(delta)}


def _entry(record: dict[str, Any]) -> Entry:
  return Entry(
    record["sequence"],
    record["id"],
    event_json.from_json(record["event"]),
    record["note"],
    record["time"],
  )
