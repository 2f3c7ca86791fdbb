"""One data set, one ledger: what all releases of a data set cost together.

Every run has its own ledger, which says what that run cost. The costs of several
releases of the same people add up, so each is also charged to the data set's
ledger, in the user's state folder:

    ledgers/
      5f3a.../                    one data set; the name reveals nothing about it
        about.json                what it was called
        add-or-remove-one.jsonl   a ledger for each relation
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import time
from collections.abc import Iterator
from typing import NamedTuple

from jaxfair import _whole_files, checks
from jaxfair.accounting import _state_folder
from jaxfair.accounting._events import ApproxDp, Event
from jaxfair.accounting._guarantee import BudgetError, PrivacyGuarantee, Relation
from jaxfair.accounting._ledger import Ledger
from jaxfair.accounting._ledger_file import LedgerError
from jaxfair.accounting._ledger_records import Budget
from jaxfair.accounting._units import NotCovered

PERSON = "one person"
ABOUT, LOCK = "about.json", ".lock"
USUAL_DELTAS = (1e-6, 1e-5, 1e-4, 1e-3)  # where neither a caller nor a budget has another
PATIENCE = 60.0  # seconds to wait for another process's charge


class Spent(NamedTuple):
  """What was spent on a data set under one relation.

  Attributes:
    guarantee: of all its releases together; epsilon is infinite if nothing
      covers them at this delta.
    releases: how many; charges with ids "name: ..." are one release.
    budget: what may be spent, or None.
    path: path of the ledger.
  """

  guarantee: PrivacyGuarantee
  releases: int
  budget: Budget | None
  path: pathlib.Path

  def __str__(self) -> str:
    ending = "" if self.releases == 1 else "s"
    return f"{self.guarantee}, {self.releases} release{ending}"


@dataclasses.dataclass(frozen=True)
class DatasetLedger:
  """The ledger of one data set, shared by all runs of one user.

      book = DatasetLedger.of(data.csv_identity("people.csv"), name="people")
      book.charge(Gaussian(5.0), id="histogram of ages",
                  relation=Relation.ADD_OR_REMOVE_ONE)

  It is open only while a charge is written, so runs may share it.

  Attributes:
    name: name of the data set.
    folder: folder of its ledgers; made with the first charge.

  Privacy:
    Each neighboring relation has its own ledger, since the sum of epsilons of different relations
    is not an epsilon of either. Each ledger covers the releases that were charged to it.
  """

  name: str
  folder: pathlib.Path

  @classmethod
  def of(cls, identity: bytes, *, name: str) -> "DatasetLedger":
    """The ledger of the data set with this identity.

    Args:
      identity: from `data.csv_identity`, `data.named_identity` or
        `data.records_identity`; stored only as a hash keyed by the secret of the state folder.
      name: for readers; data sets are not distinguished by it.
    """
    checks.require(name != "", "name must be a non-empty text")
    known = _state_folder.keyed(identity)[:32]
    return cls(name, _state_folder.ledgers_folder() / known)

  def charge(
    self, event: Event, *, id: str, relation: Relation, unit: str = PERSON, note: str = ""
  ) -> bool:
    """Writes the event down, as `Ledger.charge`; release only afterwards.

    Raises:
      BudgetError: if the budget does not cover it, or covers only releases for other neighbors.
    """
    path = self._path(relation, unit)
    with self._held():
      if not (path.exists() and id in Ledger.read(path)):
        self._require_limit(relation, unit)
      with self._open(relation, unit) as ledger:
        return ledger.charge(event, id=id, note=note)

  def charge_budget(self, ledger: Ledger) -> bool:
    """Charges everything that another ledger's budget allows, once.

    For releases whose number or cost is not known beforehand, such as answers
    to queries that are still to come.

    Returns:
      True, or False if this ledger was charged before.

    Privacy:
      The budget is a privacy filter: everything charged to that ledger, now
      or later, is together (epsilon, delta)-DP, however it is chosen. The unspent
      part of the budget is charged as well, and may be spent there.
    """
    checks.require(ledger.budget is not None, f"{ledger.path} has no budget; create it with one")
    assert ledger.budget is not None
    event = ApproxDp(ledger.budget.epsilon, ledger.budget.delta)
    return self.charge(
      event, id=f"{ledger.id}: a ledger's budget", relation=ledger.relation, unit=ledger.unit
    )

  @contextlib.contextmanager
  def opened(self, relation: Relation, unit: str = PERSON) -> Iterator[Ledger]:
    """The ledger itself, open for charges; other processes wait meanwhile."""
    with self._held():
      self._require_limit(relation, unit)
      with self._open(relation, unit) as ledger:
        yield ledger

  def _open(self, relation: Relation, unit: str) -> Ledger:
    """The ledger, begun if it is missing; the caller holds the folder."""
    path = self._path(relation, unit)
    self._note_name()
    if path.exists():
      return Ledger.open(path)
    ledger = Ledger.create(path, data=self.name, relation=relation, unit=unit)
    path.chmod(0o600)
    return ledger

  def _require_limit(self, relation: Relation, unit: str) -> None:
    """Raises if the data set has a budget, and none for these neighbors.

    A limit on what may be spent would else be none for a method with another relation.
    """
    books = map(Ledger.read, sorted(self.folder.glob("*.jsonl")))
    limits = [(book.relation, book.unit) for book in books if book.budget]
    if limits and (relation, unit) not in limits:
      known = " and ".join(f"{one.value} ({of})" for one, of in limits)
      raise BudgetError(
        f"the budget of the data set {self.name!r} is for {known}, and this release is for "
        f"{relation.value} ({unit}), whose epsilon it does not limit; set one for it as well: "
        f"`jaxfair account ledger ... --budget EPSILON,DELTA --relation {relation.value}`"
      )

  def require_affordable(self, event: Event, *, relation: Relation, unit: str = PERSON) -> None:
    """Raises BudgetError if `charge` would; writes nothing."""
    self._require_limit(relation, unit)
    path = self._path(relation, unit)
    if not path.exists():
      return
    ledger = Ledger.read(path)
    if not ledger.affords(event):
      raise BudgetError(
        f"the budget of the data set {self.name!r} does not cover this "
        f"release: {ledger.remaining():.4g} of its epsilon "
        f"{ledger.budget and ledger.budget.epsilon:g} is left; release less, "
        "or raise it with `jaxfair account ledger --budget`"
      )

  def set_budget(
    self, budget: tuple[float, float], *, relation: Relation, unit: str = PERSON
  ) -> None:
    """Sets (epsilon, delta) that all releases for these neighbors together must stay within.

    Releases for other neighbors are then refused until they have a budget of their own.

    Raises:
      BudgetError: if more than that is spent already; nothing is changed.
    """
    path = self._path(relation, unit)
    with self._held():
      self._note_name()
      entries = tuple(Ledger.read(path)) if path.exists() else ()
      draft = path.with_name(f"{path.name}.partial")
      draft.unlink(missing_ok=True)
      try:
        with Ledger.create(
          draft, data=self.name, relation=relation, unit=unit, budget=budget
        ) as ledger:
          draft.chmod(0o600)
          for entry in entries:
            ledger.charge(entry.event, id=entry.id, note=entry.note)
        os.replace(draft, path)
      except BudgetError:
        raise BudgetError(
          f"more than epsilon {budget[0]:g} at delta {budget[1]:g} is spent "
          f"already on {self.name!r}; see `jaxfair account ledger`"
        ) from None
      finally:
        draft.unlink(missing_ok=True)
      _whole_files.sync_folder(self.folder)

  def spent(self, delta: float | None = None) -> list[Spent]:
    """What was spent for each relation.

    Args:
      delta: by default the budget's; without a budget the smallest of 1e-6, 1e-5, 1e-4 and 1e-3
        that covers the releases.
    """
    return [_spent(path, delta) for path in sorted(self.folder.glob("*.jsonl"))]

  def told(self, delta: float) -> str:
    """What was spent in a sentence, for pages and terminals."""
    found = self.spent(delta)
    lines = "; ".join(map(str, found)) or "none"
    alone = " Each epsilon covers only its own releases."
    return f"All releases from this data set so far: {lines}." + (alone if len(found) > 1 else "")

  def names(self) -> list[str]:
    """Everything that the data set was called."""
    try:
      text = (self.folder / ABOUT).read_text(encoding="utf-8")
      found = json.loads(text)["names"]
    except (OSError, ValueError, KeyError, TypeError):
      return []
    return [name for name in found if isinstance(name, str)]

  def _path(self, relation: Relation, unit: str) -> pathlib.Path:
    suffix = ""
    if unit != PERSON:
      suffix = "-" + hashlib.sha256(unit.encode()).hexdigest()[:8]
    return self.folder / f"{relation.value}{suffix}.jsonl"

  def _note_name(self) -> None:
    names = self.names()
    if self.name not in names:
      text = json.dumps({"names": [*names, self.name]}, indent=2)
      _whole_files.write_whole(self.folder / ABOUT, text, mode=0o600)

  @contextlib.contextmanager
  def _held(self) -> Iterator[None]:
    """Keeps other processes from writing these ledgers."""
    import fcntl

    _whole_files.owner_only(self.folder)
    until = time.monotonic() + PATIENCE
    handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
      while True:
        try:
          fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
          break
        except OSError:
          if time.monotonic() > until:
            raise LedgerError(
              f"the ledger of {self.name!r} in {self.folder} is held by "
              "another process; wait for it to end"
            ) from None
          time.sleep(0.02)
      yield
    finally:
      os.close(handle)


def dataset_ledgers() -> list[DatasetLedger]:
  """All data sets of the state folder from which something was released."""
  found = []
  for folder in sorted(_state_folder.ledgers_folder().iterdir()):
    names = DatasetLedger("", folder).names()
    found.append(DatasetLedger(", ".join(names) or "unnamed", folder))
  return sorted(found, key=lambda book: book.name)


def _spent(path: pathlib.Path, delta: float | None) -> Spent:
  ledger = Ledger.read(path)
  if delta is None and ledger.budget is not None:
    delta = ledger.budget.delta
  # Releases may spend more delta than is usual; then it is the first power of ten that covers them.
  deltas = USUAL_DELTAS if delta is None else (delta,)
  each = (_guarantee(ledger, at) for at in deltas)
  guarantee = next((one for one in each if one.epsilon < math.inf), None)
  guarantee = guarantee or _guarantee(ledger, deltas[0])
  releases = {entry.id.partition(": ")[0] for entry in ledger}
  return Spent(guarantee, len(releases), ledger.budget, path)


def _guarantee(ledger: Ledger, delta: float) -> PrivacyGuarantee:
  """What the ledger spent at this delta; infinite epsilon if nothing covers it."""
  try:
    return ledger.guarantee(delta)
  except NotCovered:
    return PrivacyGuarantee(math.inf, delta, ledger.relation, ledger.unit, "no analysis covers it")
