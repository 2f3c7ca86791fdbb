"""The ledger: a record of every release, written before the release happens.

    with Ledger.create("run/ledger.jsonl", data="adult", budget=(1.0, 1e-5),
                       relation=Relation.ADD_OR_REMOVE_ONE) as ledger:
      ledger.charge(Gaussian(5.0), id="histogram of ages")
      release(...)  # only now

`charge` returns when the line is on disk. A process that dies later may have charged for a value
that was never released; no value is ever released without a charge.
"""

import os
import pathlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting import _ledger_file
from jaxfair.accounting import _ledger_records as records
from jaxfair.accounting._bounds import Accountant, best_bound, require_covered
from jaxfair.accounting._filters import PrivacyFilter
from jaxfair.accounting._guarantee import BudgetError, PrivacyGuarantee, Relation, delta_in_range
from jaxfair.accounting._ledger_records import Entry
from jaxfair.accounting._locked_file import LedgerError, LockedFile
from jaxfair.accounting._units import Units, units


class Ledger:
  """An append-only file of events on one data set.

  Made by `create`, `open` or `read`. Two writers never share a ledger.

  Attributes:
    path: path of the file.
    id: random, and new for every ledger; it identifies a ledger wherever its
      file is.
    data: the name of the data set; never a hash of it, which would itself
      reveal something about the people in it.
    unit: the unit that is protected.
    relation: which data sets count as neighbors.
    budget: what may be spent, or None.
    torn: bytes of an unfinished last line that a crash left, as found.
    head: the seal of the last line; a copy kept elsewhere shows whether the file
      was later truncated to an older state.
  """

  def __init__(self, path: pathlib.Path, file: LockedFile | None, found: _ledger_file.Replay):
    header, entries = records.understood(found.records, path)
    self.path = path
    self.id = header.id
    self.data = header.data
    self.unit = header.unit
    self.relation = header.relation
    self.budget = header.budget
    self.torn = found.torn
    self.head = found.seals[-1]
    self._file = file
    self._lines = len(found.records)
    self._turn = threading.Lock()
    self._entries: dict[str, Entry] = {}
    self._counts: dict[ev.Event, int] = {}
    self._filter = PrivacyFilter(*self.budget, self.relation) if self.budget else None
    for entry in entries:
      self._count(entry, units([entry.event], self.relation))

  @classmethod
  def create(
    cls,
    path: str | os.PathLike[str],
    *,
    data: str,
    relation: Relation,
    unit: str = "one person",
    budget: tuple[float, float] | None = None,
  ) -> "Ledger":
    """A new ledger, open for charges.

    Args:
      path: must not exist.
      data: the data set's name.
      relation: which data sets count as neighbors.
      unit: the unit that is protected.
      budget: (epsilon, delta) that all charges together stay within, however
        each is chosen after looking at the releases before it (`filters`).
    """
    header = records.header(data, unit, relation, budget)
    line, seal = _ledger_file.sealed_line(header, "")
    path = pathlib.Path(path)
    file = LockedFile.create(path, line)
    found = _ledger_file.Replay([header], [seal], len(line) + 1, 0, True)
    return cls(path, file, found)

  @classmethod
  def open(cls, path: str | os.PathLike[str]) -> "Ledger":
    """An existing ledger, for more charges.

    An unfinished last line is dropped, and a new line records that; its value
    had not been released.

    Raises:
      LedgerError: if it is damaged, or another process writes it.
    """
    path = pathlib.Path(path)
    file = LockedFile.open(path)
    try:
      found = _ledger_file.replay(file.read(), path)
      ledger = cls(path, file, found)
      ledger._mend(file, found)
    except BaseException:
      file.close()
      raise
    return ledger

  @classmethod
  def read(cls, path: str | os.PathLike[str]) -> "Ledger":
    """An existing ledger, to look at; takes no lock and changes nothing."""
    path = pathlib.Path(path)
    try:
      raw = path.read_bytes()
    except FileNotFoundError:
      raise LedgerError(f"there is no ledger at {path}") from None
    except OSError as error:
      raise LedgerError(f"cannot read {path} ({error.strerror})") from None
    return cls(path, None, _ledger_file.replay(raw, path))

  def charge(self, event: ev.Event, *, id: str, note: str = "") -> bool:
    """Writes the event down; release its value only after this returns.

    Args:
      event: what is about to be released.
      id: names the release. Charging the same id and event again is free, so
        that a resumed run may recompute the *same* value from the same key.
      note: for readers; must not hold anything private.

    Returns:
      True, or False if this id was charged before.

    Raises:
      BudgetError: if it would overrun the budget; nothing is written.
      LedgerError: if it cannot be written; nothing may be released.
    """
    checks.require(isinstance(id, str) and id != "", "id must be a name")
    checks.require(isinstance(note, str), f"note={note!r} must be text")
    more = units([event], self.relation)
    with self._turn:
      file = self._writable()
      known = self._entries.get(id)
      if known is not None:
        if known.event == event:
          return False
        raise LedgerError(
          f"id {id!r} was charged for {known.event}, not for {event}; use a new id for a new "
          "release"
        )
      require_covered(more, self.relation)
      self._require_budget(more, id)
      entry = Entry(self._lines, id, event, note, records.now())
      self._append(file, records.charge(entry))
      self._count(entry, more)
    return True

  def affords(self, *events: ev.Event) -> bool:
    """Whether `charge` would accept these, one after the other.

    Nothing is written.
    """
    batches = [units([event], self.relation) for event in events]
    with self._turn:
      return self._filter is None or self._filter.accepts(*batches)

  def epsilon(self, delta: float | None = None, *, accountant: Accountant = "pld") -> float:
    """The epsilon of everything charged, at this delta or the budget's.

    The best of several analyses for events that were fixed beforehand. If an
    event, or when to stop, was chosen after looking at earlier releases, only the
    budget is a guarantee.
    """
    return self.guarantee(delta, accountant=accountant).epsilon

  def guarantee(
    self, delta: float | None = None, *, accountant: Accountant = "pld"
  ) -> PrivacyGuarantee:
    """`epsilon` as a `PrivacyGuarantee`, with delta, relation, unit and accountant."""
    delta = self._delta(delta)
    bound = best_bound(self._units, delta=delta, relation=self.relation, accountant=accountant)
    return PrivacyGuarantee(bound.epsilon, delta, self.relation, self.unit, bound.accountant)

  def remaining(self, delta: float | None = None) -> float:
    """The budget's epsilon minus what is spent, at this delta or the budget's.

    The next event usually adds less than its own epsilon; `affords` tells whether the
    budget covers it.
    """
    if self.budget is None:
      raise checks.ArgumentError(f"{self.path} has no budget; use epsilon to see what is spent")
    return max(0.0, self.budget.epsilon - self.epsilon(delta))

  def close(self) -> None:
    """Closes the ledger; other processes may then write it."""
    if self._file is not None:
      self._file.close()
    self._file = None

  def __iter__(self) -> Iterator[Entry]:
    return iter(tuple(self._entries.values()))

  def __len__(self) -> int:
    return len(self._entries)

  def __contains__(self, id: str) -> bool:
    return id in self._entries

  def __enter__(self) -> "Ledger":
    return self

  def __exit__(
    self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
  ) -> None:
    self.close()

  def _mend(self, file: LockedFile, found: _ledger_file.Replay) -> None:
    if not found.terminated:
      file.append(b"")
    if found.torn:
      file.cut(found.size)
      self._append(file, records.recovered(self._lines, found.torn))

  def _writable(self) -> LockedFile:
    if self._file is None:
      raise LedgerError(f"{self.path} is open for reading only, or closed; use Ledger.open")
    self._file.require_unchanged()
    return self._file

  @property
  def _units(self) -> Units:
    # In a fixed order: equal collections of events are the same cache entry.
    return tuple(sorted(self._counts.items(), key=repr))

  def _require_budget(self, more: Units, id: str) -> None:
    if self._filter is None or self._filter.accepts(more):
      return
    assert self.budget is not None
    epsilon, delta = self.budget
    raise BudgetError(
      f"charging {id!r} would overrun the budget of epsilon {epsilon:g} at "
      f"delta {delta:g}, of which {self.remaining():.4g} is left; add noise, "
      "release less, or stop here"
    )

  def _append(self, file: LockedFile, record: dict[str, Any]) -> None:
    line, seal = _ledger_file.sealed_line(record, self.head)
    file.append(line)
    self.head = seal
    self._lines += 1

  def _count(self, entry: Entry, more: Units) -> None:
    self._entries[entry.id] = entry
    for unit, count in more:
      self._counts[unit] = self._counts.get(unit, 0) + count
    if self._filter is not None:
      self._filter.count(more)

  def _delta(self, delta: float | None) -> float:
    if delta is None:
      checks.require(self.budget is not None, f"{self.path} has no budget; pass a delta")
      assert self.budget is not None
      return self.budget.delta
    delta_in_range(delta, zero=True)
    return delta
