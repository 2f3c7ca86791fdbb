"""A ledger says what this module writes, or it is refused."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.json_values import JSON, places
from jaxfair import accounting as acc
from jaxfair.accounting import Ledger, Relation
from jaxfair.accounting._ledger_file import replay, sealed_line
from jaxfair.accounting._locked_file import LedgerError

EVENTS = [
  acc.Gaussian(5.0),
  acc.DpSgd(2.0, 0.01, 10, 1000, 40),
  acc.Rdp((2.0, 4.0), (0.1, 0.2)),
  acc.Composed((acc.Repeated(acc.ZCdp(0.1), 3), acc.ApproxDp(0.1, 1e-9))),
  acc.RepeatAndSelect(acc.Laplace(30.0), 2.0),
  acc.RandomizedResponse(0.1, 3, 2),
]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
  """The records of a ledger with a mended tail."""
  path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
  with Ledger.create(
    path, data="adult", relation=Relation.ZERO_OUT, budget=(500.0, 1e-5)
  ) as ledger:
    for number, event in enumerate(EVENTS):
      ledger.charge(event, id=f"release {number}")
  path.write_bytes(path.read_bytes() + b"torn")
  Ledger.open(path).close()
  return replay(path.read_bytes(), path).records


def write(path, records):
  """Seals the records correctly, whatever they say."""
  lines, seal = [], ""
  for record in records:
    line, seal = sealed_line(record, seal)
    lines.append(line + b"\n")
  path.write_bytes(b"".join(lines))


def test_every_ledger_has_an_id_of_its_own(tmp_path):
  ids = set()
  for name in "abc":
    with Ledger.create(tmp_path / name, data="adult", relation=Relation.ZERO_OUT) as ledger:
      ids.add(ledger.id)
    assert Ledger.read(tmp_path / name).id == ledger.id
  assert len(ids) == 3


HEADERS = [
  {"budget": {"epsilon": -1.0, "delta": 1e-5}},
  {"budget": {"epsilon": 0, "delta": 1e-5}},
  {"budget": {"epsilon": True, "delta": 1e-5}},
  {"budget": {"epsilon": "1", "delta": 1e-5}},
  {"budget": {"epsilon": 10**400, "delta": 1e-5}},
  {"budget": {"epsilon": 1.0, "delta": 1.5}},
  {"budget": {"epsilon": 1.0, "delta": -0.1}},
  {"budget": {"epsilon": 1.0}},
  {"budget": {"epsilon": 1.0, "delta": 1e-5, "more": 1}},
  {"budget": {}},
  {"budget": [1.0, 1e-5]},
  {"budget": False},
  {"data": []},
  {"data": ""},
  {"data": None},
  {"unit": 3},
  {"relation": "friends"},
  {"relation": ["zero-out"]},
  {"ledger": 7},
  {"ledger": "ABC"},
  {"time": 1900},
  {"time": "once"},
  {"more": 1},
]
CHARGES = [
  {"id": 7},
  {"id": ""},
  {"id": ["release 0"]},
  {"note": None},
  {"time": 3.5},
  {"sequence": True},
  {"sequence": 1.0},
  {"event": None},
  {"event": {"type": ["gaussian"]}},
  {"event": {"type": "gaussian"}},
  {"event": {"type": "gaussian", "noise_multiplier": -5.0}},
  {"event": {"type": "gaussian", "noise_multiplier": 10**400}},
  {"event": {"type": "zcdp", "rho": "0.1"}},
  {"event": {"type": "repeated", "count": 10**30, "event": {}}},
  {"event": {"type": "shuffled-dp-sgd", "noise_multiplier": 1.0}},
  {"more": 1},
]


@pytest.mark.parametrize(
  ("line", "change"), [*((0, change) for change in HEADERS), *((1, change) for change in CHARGES)]
)
def test_a_sealed_lie_is_refused(tmp_path, good, line, change):
  records = copy.deepcopy(good)
  records[line].update(change)
  write(tmp_path / "ledger", records)
  for look in (Ledger.read, Ledger.open):
    with pytest.raises(LedgerError, match=f"line {line + 1} "):
      look(tmp_path / "ledger")


@pytest.mark.parametrize("line", [0, 1, -1])
def test_a_missing_field_is_refused(tmp_path, good, line):
  for name in good[line]:
    records = copy.deepcopy(good)
    del records[line][name]
    write(tmp_path / "ledger", records)
    with pytest.raises(LedgerError):
      Ledger.read(tmp_path / "ledger")


def test_an_id_charged_twice_is_refused(tmp_path, good):
  records = copy.deepcopy(good)
  records[2]["id"] = records[1]["id"]
  write(tmp_path / "ledger", records)
  with pytest.raises(LedgerError, match="charged twice"):
    Ledger.read(tmp_path / "ledger")


def test_an_event_without_a_price_is_refused(tmp_path, good):
  records = copy.deepcopy(good)
  records[0]["relation"] = "add-or-remove-one"  # no randomized response
  write(tmp_path / "ledger", records)
  with pytest.raises(LedgerError, match="ATTRIBUTE"):
    Ledger.read(tmp_path / "ledger")


def test_deep_events_are_refused(tmp_path, good):
  for depth in (40, 400, 900):
    event = good[1]["event"]
    for _ in range(depth):
      event = {"type": "repeated", "event": event, "count": 1}
    records = copy.deepcopy(good)
    records[1]["event"] = event
    write(tmp_path / "ledger", records)
    with pytest.raises(LedgerError, match="deep"):
      Ledger.read(tmp_path / "ledger")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_ledgers_open_as_valid_ones_or_are_refused(good, tmp_path_factory, data):
  records = copy.deepcopy(good)
  for _ in range(data.draw(st.integers(1, 3))):
    spots = [place for place in places(records) if len(place) > 1]
    place = data.draw(st.sampled_from(spots))
    inside = records
    for step in place[:-1]:
      inside = inside[step]
    inside[place[-1]] = data.draw(JSON)
  path = tmp_path_factory.mktemp("mutated") / "ledger"
  write(path, records)
  try:
    with Ledger.open(path) as ledger:
      assert ledger.budget is None or ledger.budget.epsilon > 0
      assert all(isinstance(entry.id, str) for entry in ledger)
      assert all(json.dumps(entry.note) for entry in ledger)
      assert len(ledger) == len(EVENTS)
  except LedgerError:
    pass
