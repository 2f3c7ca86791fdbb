"""Preprocessing that is bought for a release: charged first, bought once, kept for a resumed run.

folder/
  preprocessing/   not for release
    ledger.jsonl   what was charged
    id             name of the charge, and a keyed digest of the people
    bought.json    what was bought, a part of every model that is made with it, and which features
                   of the private people it leaves
    private/       secret of the noise; erased when bought.json is there
"""

import hashlib
import json
import pathlib
import secrets
from typing import Any

import jax
import numpy as np

from jaxfair import _whole_files, accounting, checks, data
from jaxfair.accounting import Budget, DatasetLedger
from jaxfair.data import _scaling
from jaxfair.methods._method import PERSON
from jaxfair.methods._preprocessing import Preprocessing, PreprocessingPlan
from jaxfair.pate._answer_noise import NoiseSecret, erase_secret
from jaxfair.training import _hosts
from jaxfair.types import Key, Source

PLACE = "preprocessing"


def seeded_bits(key: Key) -> Any:
  """A source of bits that a key repeats: for what is not released by itself, or never."""
  return np.random.default_rng(np.asarray(jax.random.key_data(key))).bytes


def buy_once(
  plan: PreprocessingPlan,
  x: np.ndarray | Source,
  *,
  folder: pathlib.Path,
  budget: Budget,
  name: str,
  ledger: DatasetLedger | None,
  key: Key | None = None,
) -> Preprocessing:
  """Buys what a plan asks for, for a release in `folder`.

  Args:
    plan: priced.
    x: features of the private people, or these people on disk.
    folder: folder of the release.
    budget: of the whole release; the purchase must be within it.
    name: name of the data set.
    ledger: of the data set, charged as well; None for its own alone.
    key: for tests; from the operating system if None.

  Raises:
    ArgumentError: if the folder holds what was bought with a fixed seed for a release, or the
      reverse; at another price; for people with other columns or categories; or a purchase that
      was begun for other people, or whose result was removed.

  Privacy:
    The event is on the disk, in both ledgers, before anything is drawn. What was bought is seen
    by nobody before it is written down. Noise follows from a secret of the folder and a digest of
    the people, so a run that was stopped before and buys again, also from a backup, has released
    one result, not two; the charge has a name of its own and is made once by each ledger, also if
    what was bought is found. It is used at the price that was paid for it alone, and noise
    from a seed, which can be undone, never becomes part of a release. Of several processes the
    first one charges and buys, and tells the others what it was.
  """
  place = folder / PLACE
  file = place / "bought.json"

  def bought() -> str:
    place.mkdir(parents=True, exist_ok=True)
    # Held until it is written down: another process that buys in this folder would draw again.
    with _ledger(place / "ledger.jsonl", plan, budget, name) as own:
      entry, source = _begun(place, x, file, seeded=key is not None)
      _charge(own, plan, entry)
      if ledger is not None and key is None:
        ledger.charge(_event(plan), id=entry, relation=plan.relation)
      if not file.exists():
        made = plan.buy(x, source=source if key is None else seeded_bits(key))
        _whole_files.write_whole(file, json.dumps(_record(made)))
      erase_secret(place)
    return file.read_text(encoding="utf-8")

  return _read(_hosts.from_first(bought), plan, place)


def _begun(
  place: pathlib.Path, x: np.ndarray | Source, file: pathlib.Path, *, seeded: bool
) -> tuple[str, Any]:
  """The name of the charge, drawn once for a folder, and the noise of what is not bought yet."""
  mark, drawn = place / "id", None
  told = json.loads(mark.read_text(encoding="utf-8")) if mark.exists() else None
  checks.require(
    told is None or told["seeded"] == seeded,
    f"{place} was begun {'without' if seeded else 'with'} a fixed seed, and this release "
    f"has {'one' if seeded else 'none'}; choose another folder",
  )
  if not seeded and not file.exists():
    secret = NoiseSecret.of_folder(place, begin=told is None)
    checks.require(
      secret is not None,
      f"{place} was charged for scaling, and {file.name} is missing; restore it from a copy, or "
      "choose another folder, which pays again",
    )
    assert secret is not None
    drawn = secret.draw([PLACE, _digest(x)], np.zeros(0, np.int64))
  people = None if drawn is None else drawn.tag
  if told is None:
    told = {"id": secrets.token_hex(16), "seeded": seeded, "people": people}
    _whole_files.write_whole(mark, json.dumps(told))
  checks.require(
    drawn is None or told["people"] == people,
    f"{place} was begun for other people; choose another folder",
  )
  return f"{told['id']}: preprocessing", None if drawn is None else drawn.source


def _digest(x: np.ndarray | Source) -> str:
  """Recognizes the people; as private as they are."""
  if not isinstance(x, np.ndarray):
    return x.fingerprint()
  return hashlib.sha256(f"{x.shape} {x.dtype}".encode() + x.tobytes()).hexdigest()


def _charge(own: accounting.Ledger, plan: PreprocessingPlan, entry: str) -> None:
  event = _event(plan)
  checks.require(
    all(known.event == event for known in own if known.id == entry),
    f"{own.path.parent} holds scaling that was bought at another price; choose another folder, or "
    "the epsilon, delta and columns that it was bought for",
  )
  own.charge(event, id=entry)


def _event(plan: PreprocessingPlan) -> accounting.Event:
  assert plan.event is not None
  return plan.event


def _record(made: Preprocessing) -> dict[str, Any]:
  scaler = {part: np.asarray(value).tolist() for part, value in made.scaler._asdict().items()}
  return {"encoder": made.encoder.to_record(), "kept": made.kept.tolist(), "scaler": scaler}


def _read(text: str, plan: PreprocessingPlan, place: pathlib.Path) -> Preprocessing:
  record = json.loads(text)
  encoder = data.Encoder.from_record(record["encoder"])
  parts: Any = {name: np.asarray(value, np.float32) for name, value in record["scaler"].items()}
  scaler = _scaling.Scaler(**{**parts, "limit": float(parts["limit"])})
  kept = np.asarray(record["kept"], np.int64)
  whole = plan.encoder
  names = np.array([*whole.feature_names, ""])[np.minimum(kept, len(whole.feature_names))]
  checks.require(
    (tuple(names), encoder.label, encoder.group)
    == (encoder.feature_names, whole.label, whole.group),
    f"{place} holds scaling of people with other columns or categories; choose another folder",
  )
  return Preprocessing(encoder, kept, scaler, encoder.assumed_public(), plan.event)


def _ledger(
  path: pathlib.Path, plan: PreprocessingPlan, budget: Budget, name: str
) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  return accounting.Ledger.create(
    path, data=name, unit=PERSON, budget=budget, relation=plan.relation
  )
