"""Preprocessing that is bought for a release: charged first, bought once, kept for a resumed run.

folder/
  preprocessing/   not for release
    ledger.jsonl   what was charged
    bought.json    what was released: a part of every model that is made with it
"""

import json
import os
import pathlib
import secrets
from typing import Any

import jax
import numpy as np

from jaxfair import _whole_files, accounting, data
from jaxfair.accounting import Budget, DatasetLedger
from jaxfair.data import _scaling
from jaxfair.methods._method import PERSON
from jaxfair.methods._preprocessing import Preprocessing, PreprocessingPlan
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

  Privacy:
    The event is on the disk, in both ledgers, before anything is drawn. What was bought is seen
    by nobody before it is written down, so a run that was stopped before and buys again has
    released one result, not two; the charge has a name of its own and is made once. Of several
    processes the first one charges and buys, and tells the others what it was.
  """
  place = folder / PLACE
  file, mark = place / "bought.json", place / "id"

  def bought() -> str:
    if not file.exists():
      _buy(plan, x, mark, file, budget=budget, name=name, ledger=ledger, key=key)
    return file.read_text(encoding="utf-8")

  return _read(_hosts.from_first(bought), plan)


def _buy(
  plan: PreprocessingPlan,
  x: np.ndarray | Source,
  mark: pathlib.Path,
  file: pathlib.Path,
  *,
  budget: Budget,
  name: str,
  ledger: DatasetLedger | None,
  key: Key | None,
) -> None:
  assert plan.event is not None
  place = file.parent
  place.mkdir(parents=True, exist_ok=True)
  if not mark.exists():
    _whole_files.write_whole(mark, secrets.token_hex(16))
  entry = f"{mark.read_text()}: preprocessing"
  with _ledger(place / "ledger.jsonl", plan, budget, name) as own:
    own.charge(plan.event, id=entry)
  if ledger is not None and key is None:
    ledger.charge(plan.event, id=entry, relation=plan.relation)
  made = plan.buy(x, source=os.urandom if key is None else seeded_bits(key))
  scaler = {part: np.asarray(value).tolist() for part, value in made.scaler._asdict().items()}
  record = {"encoder": made.encoder.to_record(), "kept": made.kept.tolist(), "scaler": scaler}
  _whole_files.write_whole(file, json.dumps(record))


def _read(text: str, plan: PreprocessingPlan) -> Preprocessing:
  record = json.loads(text)
  encoder = data.Encoder.from_record(record["encoder"])
  parts: Any = {name: np.asarray(value, np.float32) for name, value in record["scaler"].items()}
  scaler = _scaling.Scaler(**{**parts, "limit": float(parts["limit"])})
  kept = np.asarray(record["kept"], np.int64)
  return Preprocessing(encoder, kept, scaler, encoder.assumed_public(), plan.event)


def _ledger(
  path: pathlib.Path, plan: PreprocessingPlan, budget: Budget, name: str
) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  return accounting.Ledger.create(
    path, data=name, unit=PERSON, budget=budget, relation=plan.relation
  )
