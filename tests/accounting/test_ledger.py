import contextlib
import errno
import json
import math
import multiprocessing
import os
import pathlib
import subprocess
import sys

import pytest

from jaxfair import checks
from jaxfair.accounting import (
  ApproxDp,
  DpSgd,
  Gaussian,
  Laplace,
  Ledger,
  PureDp,
  RandomizedResponse,
  Rdp,
  Relation,
  RepeatAndSelect,
  Repeated,
  ShuffledDpSgd,
  ZCdp,
  _locked_file,
  calibrate_dp_sgd,
  discrete_gaussian_sigma,
  gaussian_sigma,
  zcdp_budget,
)
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._guarantee import BudgetError
from jaxfair.accounting._ledger_file import sealed_line
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.accounting._zcdp import discrete_gaussian_rho

ADD = Relation.ADD_OR_REMOVE_ONE


@pytest.fixture
def path(tmp_path):
  return tmp_path / "ledger.jsonl"


def create(path, *, relation=ADD, budget=None, **more):
  return Ledger.create(path, data="adult", relation=relation, budget=budget, **more)


def test_what_was_charged_is_read_back(path):
  events = [
    Gaussian(5.0),
    DpSgd(2.0, 0.01, 10, 1000, 40),
    Rdp((2.0, 4.0), (0.1, 0.2)),
    Repeated(ZCdp(0.1), 3),
  ]
  with create(path, unit="one household", budget=(50.0, 1e-5)) as ledger:
    for number, event in enumerate(events):
      assert ledger.charge(event, id=f"release {number}", note="für alle")
    spent = ledger.epsilon()
  again = Ledger.read(path)
  assert [entry.event for entry in again] == events
  assert [entry.sequence for entry in again] == [1, 2, 3, 4]
  assert [entry.note for entry in again] == ["für alle"] * 4
  assert (again.data, again.unit, again.relation) == ("adult", "one household", ADD)
  assert again.budget == (50.0, 1e-5)
  assert again.epsilon() == spent == composed_epsilon(events, delta=1e-5)
  assert again.head == ledger.head
  assert "release 2" in again
  assert len(again) == 4


def test_it_is_on_disk_before_charge_returns(path, monkeypatch):
  """Written, then synced, then returned; the folder is synced at creation."""
  calls = []
  original = os.fsync

  def watch(handle):
    calls.append((os.fstat(handle).st_mode, path.exists()))
    original(handle)

  monkeypatch.setattr(os, "fsync", watch)
  with create(path) as ledger:
    assert len(calls) == 2  # the file, and the folder that names it
    before = path.stat().st_size
    monkeypatch.setattr(os, "fsync", lambda h: calls.append((path.stat().st_size, True)))
    ledger.charge(Gaussian(1.0), id="a")
    assert calls[-1][0] > before  # synced after it was written
    assert len(calls) == 3


def test_a_charge_can_be_repeated_after_a_crash(path):
  with create(path) as ledger:
    assert ledger.charge(Gaussian(5.0), id="a") is True
    assert ledger.charge(Gaussian(5.0), id="a") is False
  with Ledger.open(path) as ledger:
    assert ledger.charge(Gaussian(5.0), id="a") is False
    with pytest.raises(LedgerError, match="use a new id"):
      ledger.charge(Gaussian(5.1), id="a")
    assert len(ledger) == 1
  assert len(path.read_text().splitlines()) == 2


def test_replay_answers_for_any_delta_and_accountant(path):
  events = [DpSgd(2.0, 0.02, 50), Gaussian(9.0)]
  with create(path) as ledger:
    for number, event in enumerate(events):
      ledger.charge(event, id=str(number))
    for delta in (1e-3, 1e-6):
      for accountant in ("pld", "rdp"):
        assert ledger.epsilon(delta, accountant=accountant) == composed_epsilon(
          events, delta=delta, accountant=accountant
        )
    told = str(ledger.guarantee(1e-6))
    assert "one person added or removed" in told
    with pytest.raises(checks.ArgumentError, match="pass a delta"):
      ledger.epsilon()
    with pytest.raises(checks.ArgumentError, match="no budget"):
      ledger.remaining(1e-5)


def test_a_training_in_pieces_costs_what_it_costs_in_one(path):
  with create(path) as ledger:
    for piece in range(5):
      ledger.charge(DpSgd(2.0, 0.02, 20), id=f"steps {20 * piece}")
    assert ledger.epsilon(1e-5) == composed_epsilon([DpSgd(2.0, 0.02, 100)], delta=1e-5)


EXACT_FITS = {
  "gaussian": lambda e, d: [Gaussian(gaussian_sigma(epsilon=e, delta=d))],
  "four gaussians": lambda e, d: [
    Repeated(Gaussian(2 * gaussian_sigma(epsilon=e, delta=d) * (1 + 1e-12)), 4)
  ],
  "discrete gaussian": lambda e, d: [
    ZCdp(discrete_gaussian_rho(sigma=discrete_gaussian_sigma(epsilon=e, delta=d)))
  ],
  "dp-sgd": lambda e, d: [
    DpSgd(calibrate_dp_sgd(epsilon=e, delta=d, sampling_rate=0.02, steps=100), 0.02, 100)
  ],
  "dp-sgd in pieces": lambda e, d: [
    Repeated(
      DpSgd(calibrate_dp_sgd(epsilon=e, delta=d, sampling_rate=0.02, steps=100), 0.02, 25), 4
    )
  ],
  "pure": lambda e, d: [PureDp(e / 3)] * 3,
  "approximate": lambda e, d: [ApproxDp(e / 2, d / 2)] * 2,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT_FITS)
def test_what_exactly_fits_is_accepted_and_a_little_more_is_not(path, name):
  epsilon, delta = 0.7, 1e-5
  with create(path, budget=(epsilon, delta)) as ledger:
    for number, event in enumerate(EXACT_FITS[name](epsilon, delta)):
      assert ledger.charge(event, id=str(number))
    assert ledger.epsilon() <= epsilon * (1 + 1e-9)
    size = path.stat().st_size
    with pytest.raises(BudgetError, match=r"budget of epsilon 0.7.*left"):
      ledger.charge(Gaussian(30.0), id="one more")
    assert path.stat().st_size == size
    assert "one more" not in ledger
    assert ledger.remaining() < 1e-3
  assert Ledger.read(path).epsilon() <= epsilon * (1 + 1e-9)


def test_sums_are_not_refused_for_their_rounding(path):
  assert 3 * 0.1 > 0.3
  with create(path, budget=(0.3, 0.0)) as ledger:
    ledger.charge(Repeated(PureDp(0.1), 3), id="a")
    with pytest.raises(BudgetError):
      ledger.charge(PureDp(1e-6), id="b")


def test_a_budget_is_spent_to_the_last_event_it_pays_for(path):
  event, budget = ZCdp(0.002), (0.8, 1e-6)
  within = int(zcdp_budget(epsilon=0.8, delta=0.99e-6) / 0.002)
  with create(path, budget=budget) as ledger:
    for number in range(within):
      ledger.charge(event, id=str(number))
    with pytest.raises(BudgetError):
      ledger.charge(event, id="one more")
    assert len(ledger) == within > 3


def test_what_is_affordable_can_be_asked_without_a_charge(path):
  with create(path, budget=(1.0, 0.0)) as ledger:
    ledger.charge(PureDp(0.75), id="first")
    assert ledger.affords(PureDp(0.25))
    assert not ledger.affords(PureDp(0.26))
    assert ledger.affords(PureDp(0.125), PureDp(0.125))
    assert not ledger.affords(PureDp(0.25), PureDp(0.01))
    assert len(ledger) == 1
  with create(path.with_name("other.jsonl")) as ledger:
    assert ledger.affords(PureDp(1e6))  # without a budget


def test_pure_budgets_take_pure_events_only(path):
  with create(path, budget=(1.0, 0.0)) as ledger:
    ledger.charge(PureDp(0.5), id="a")
    with pytest.raises(BudgetError):
      ledger.charge(Gaussian(1e4), id="b")
    assert ledger.remaining() == pytest.approx(0.5)


def test_what_cannot_be_accounted_is_not_written(path):
  with create(path) as ledger:
    response = RandomizedResponse(1.0, 2)
    with pytest.raises(checks.ArgumentError, match="ATTRIBUTE"):
      ledger.charge(response, id="a")
    assert len(ledger) == 0
  other = path.with_name("other")
  with create(other, relation=Relation.REPLACE_ONE) as ledger:
    ledger.charge(DpSgd(1.0, 0.1, 5), id="a")
    with pytest.raises(checks.ArgumentError, match="replace-one"):
      ledger.charge(RepeatAndSelect(DpSgd(1.0, 0.1, 5), 2.0), id="b")
    assert len(ledger) == 1


def test_a_second_writer_is_refused_with_the_holders_pid(path):
  with create(path):
    with pytest.raises(LedgerError, match=rf"process {os.getpid()}\b"):
      Ledger.open(path)
    assert len(Ledger.read(path)) == 0
  with Ledger.open(path), pytest.raises(LedgerError, match="being written"):
    Ledger.open(path)
  with Ledger.open(path) as ledger:
    ledger.charge(Gaussian(1.0), id="a")
  assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


def test_reading_in_the_same_process_does_not_drop_the_lock(path):
  with create(path):
    Ledger.read(path)
    with pytest.raises(LedgerError, match="being written"):
      Ledger.open(path)


@pytest.mark.slow
def test_another_process_is_refused_and_let_in_afterwards(path):
  code = (
    "import sys\n"
    "from jaxfair.accounting import Gaussian, Ledger, LedgerError\n"
    "try:\n"
    "  with Ledger.open(sys.argv[1]) as ledger:\n"
    "    ledger.charge(Gaussian(2.0), id='theirs')\n"
    "except LedgerError as error:\n"
    "  print(error)\n"
  )
  run = [sys.executable, "-c", code, str(path)]
  with create(path) as ledger:
    ledger.charge(Gaussian(1.0), id="ours")
    told = subprocess.run(run, capture_output=True, text=True, check=True)
    assert f"process {os.getpid()}" in told.stdout
  told = subprocess.run(run, capture_output=True, text=True, check=True)
  assert told.stdout == ""
  assert [entry.id for entry in Ledger.read(path)] == ["ours", "theirs"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_may_not_write(path):
  def child(ledger, answers):
    try:
      ledger.charge(Gaussian(1.0), id="child")
    except LedgerError as error:
      answers.put(str(error))
    else:
      answers.put("written")
    ledger.close()  # and leaves the parent's lock alone

  context = multiprocessing.get_context("fork")
  answers = context.SimpleQueue()
  with create(path) as ledger:
    process = context.Process(target=child, args=(ledger, answers))
    process.start()
    told = answers.get()
    process.join()
    assert "forked" in told
    with pytest.raises(LedgerError):
      Ledger.open(path)
    ledger.charge(Gaussian(1.0), id="parent")


def test_a_reader_cannot_charge_nor_a_closed_ledger(path):
  with create(path) as ledger:
    pass
  for closed in (ledger, Ledger.read(path)):
    with pytest.raises(LedgerError, match=r"Ledger\.open"):
      closed.charge(Gaussian(1.0), id="a")
  ledger.close()


def test_a_torn_tail_is_reported_then_mended(path):
  with create(path) as ledger:
    ledger.charge(Gaussian(5.0), id="a")
    ledger.charge(Gaussian(6.0), id="b")
  whole = path.read_bytes()
  path.write_bytes(whole[:-30])
  torn = len(whole) - 30 - whole[:-1].rindex(b"\n") - 1
  looked = Ledger.read(path)
  assert looked.torn == torn
  assert [entry.id for entry in looked] == ["a"]
  assert path.read_bytes() == whole[:-30]
  with Ledger.open(path) as ledger:
    assert ledger.torn == torn
    assert ledger.charge(Gaussian(6.0), id="b") is True
  lines = [json.loads(line) for line in path.read_text().splitlines()]
  assert [line.get("kind") for line in lines] == [None, "charge", "recovered", "charge"]
  assert lines[2]["dropped_bytes"] == torn
  assert [e.id for e in Ledger.read(path)] == ["a", "b"]
  assert Ledger.read(path).torn == 0


def test_a_record_without_its_newline_counts(path):
  with create(path) as ledger:
    ledger.charge(Gaussian(5.0), id="a")
  path.write_bytes(path.read_bytes()[:-1])
  assert len(Ledger.read(path)) == 1
  with Ledger.open(path) as ledger:
    assert ledger.charge(Gaussian(5.0), id="a") is False
    ledger.charge(Gaussian(6.0), id="b")
  assert [e.id for e in Ledger.read(path)] == ["a", "b"]


def test_every_cut_can_be_opened_and_continued(path, tmp_path):
  with create(path) as ledger:
    ledger.charge(Gaussian(5.0), id="a")
    ledger.charge(Gaussian(6.0), id="b")
  whole = path.read_bytes()
  header = whole.index(b"\n") + 1
  for cut in range(header, len(whole), 7):
    copy = tmp_path / f"cut {cut}"
    copy.write_bytes(whole[:cut])
    with Ledger.open(copy) as ledger:
      ledger.charge(Gaussian(7.0), id="after")
    assert [e.id for e in Ledger.read(copy)][-1] == "after"


def test_a_full_disk_stops_the_ledger_until_it_is_opened_again(path, monkeypatch):
  with create(path) as ledger:
    ledger.charge(Gaussian(5.0), id="a")
    with monkeypatch.context() as patch:

      def half(file, at, line):
        file.seek(at)
        file.write(line[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

      patch.setattr(_locked_file, "write_line", half)
      with pytest.raises(LedgerError, match=r"No space left.*release nothing"):
        ledger.charge(Gaussian(6.0), id="b")
    assert "b" not in ledger
    with pytest.raises(LedgerError, match=r"Ledger\.open"):
      ledger.charge(Gaussian(6.0), id="b")
  with Ledger.open(path) as ledger:
    assert ledger.torn == 20
    assert ledger.charge(Gaussian(6.0), id="b")


def test_a_disk_too_full_to_tell_the_writer_does_not_stop_it(path, monkeypatch):
  """Who holds the lock is told for messages only; the lock needs no room."""

  def full(self, text):
    raise OSError(errno.ENOSPC, "No space left on device")

  monkeypatch.setattr(pathlib.Path, "write_text", full)
  with create(path) as ledger:
    assert ledger.charge(Gaussian(5.0), id="a")
  with Ledger.open(path) as ledger:
    assert "a" in ledger


def test_an_interrupted_charge_stops_the_ledger(path, monkeypatch):
  with create(path) as ledger:
    with monkeypatch.context() as patch:

      def interrupted(handle):
        raise KeyboardInterrupt

      patch.setattr(os, "fsync", interrupted)
      with pytest.raises(KeyboardInterrupt):
        ledger.charge(Gaussian(6.0), id="b")
    # Not the name of this test, which is in the path.
    with pytest.raises(LedgerError, match="was interrupted"):
      ledger.charge(Gaussian(7.0), id="c")
  # It was written after all, and counts.
  assert [e.id for e in Ledger.read(path)] == ["b"]


def test_existing_missing_and_impossible_files(path, tmp_path):
  with create(path) as ledger:
    ledger.charge(Gaussian(1.0), id="a")
  before = path.read_bytes()
  with pytest.raises(LedgerError, match="exists"):
    create(path)
  assert path.read_bytes() == before
  with pytest.raises(LedgerError, match=r"Ledger\.create"):
    Ledger.open(tmp_path / "none")
  with pytest.raises(LedgerError, match="no ledger"):
    Ledger.read(tmp_path / "none")
  with pytest.raises(LedgerError, match="cannot create"):
    create(tmp_path / "no folder" / "ledger")
  assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


def test_lines_of_the_future_are_refused(path):
  """A kind of line we do not know may be a charge."""
  with create(path) as ledger:
    pass
  record = {"sequence": 1, "kind": "discount", "time": "2030"}
  line, _ = sealed_line(record, ledger.head)
  path.write_bytes(path.read_bytes() + line + b"\n")
  with pytest.raises(LedgerError, match=r"line 2.*discount"):
    Ledger.read(path)
  with pytest.raises(LedgerError, match="line 2"):
    Ledger.open(path)
  # and the failed open left no lock behind
  with pytest.raises(LedgerError, match="line 2"):
    Ledger.open(path)


@pytest.mark.parametrize(
  ("change", "names"),
  [
    ({"data": ""}, "data"),
    ({"unit": 3}, "unit"),
    ({"relation": "replace-one"}, "relation"),
    ({"budget": (0.0, 1e-5)}, "epsilon"),
    ({"budget": (1.0, 1.0)}, "delta"),
    ({"budget": (math.inf, 1e-5)}, "epsilon"),
  ],
)
def test_bad_headers_are_refused_before_a_file_exists(path, change, names):
  good = {"data": "adult", "relation": ADD, "unit": "one person"}
  with pytest.raises(checks.ArgumentError, match=names):
    Ledger.create(path, **{**good, **change})
  assert not path.exists()


def test_bad_charges_are_refused(path):
  with create(path) as ledger:
    with pytest.raises(checks.ArgumentError, match="id"):
      ledger.charge(Gaussian(1.0), id="")
    with pytest.raises(checks.ArgumentError, match="note"):
      ledger.charge(Gaussian(1.0), id="a", note=3)  # type: ignore[arg-type]
    with pytest.raises(checks.ArgumentError, match="Event"):
      ledger.charge("gaussian", id="a")  # type: ignore[arg-type]
    assert len(ledger) == 0


EXTREMES = (1e-300, 5e-324, 1e300, math.inf, math.nan, 0.0, -1.0)


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize(
  "make",
  [
    Gaussian,
    Laplace,
    lambda noise: DpSgd(noise, 0.1, 5),
    lambda noise: ShuffledDpSgd(noise, 2),
    lambda sigma: ZCdp(discrete_gaussian_rho(sigma=sigma)),
    lambda epsilon: RandomizedResponse(epsilon, 2),
  ],
)
def test_noise_beyond_all_measure_is_one_clear_error(make, value):
  with pytest.raises(checks.ArgumentError, match=r"must be"):
    make(value)
  with pytest.raises(checks.ArgumentError, match=r"must be"):
    make(10**400)


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e-100, 1e-3, 1e100])
@pytest.mark.parametrize(
  "make",
  [
    Gaussian,
    Laplace,
    lambda noise: DpSgd(noise, 0.1, 5),
    lambda noise: DpSgd(noise, 1e-100, 2**53),
    lambda noise: DpSgd(noise, 0.1, 5, 1000, 130),
    lambda noise: ShuffledDpSgd(noise, 2**53),
    ZCdp,
    PureDp,
    lambda epsilon: ApproxDp(epsilon, 1e-7),
    lambda epsilon: RandomizedResponse(epsilon, 2**53, 2**53),
    lambda value: Rdp((1.0 + 1e-9, 1e100), (value, value)),
    lambda value: RepeatAndSelect(Gaussian(5.0), 1 + value, value),
  ],
)
def test_extreme_noise_is_charged_or_refused(path, make, value):
  """With and without a budget, alone and after something else."""
  event = make(value)
  for number, budget in enumerate((None, (1.0, 1e-5), (1.0, 0.0))):
    with create(path.with_name(str(number)), relation=Relation.ZERO_OUT, budget=budget) as ledger:
      for id in ("first", "second"):
        try:
          ledger.charge(event, id=id)
        except (BudgetError, checks.ArgumentError):
          assert id not in ledger
        ledger.affords(event)
      with contextlib.suppress(checks.ArgumentError):  # no finite epsilon
        assert ledger.epsilon(1e-5) >= 0
