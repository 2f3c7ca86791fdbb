"""One data set, one ledger, whoever releases what from it."""

import math
import os
import pathlib
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from jaxfair import checks
from jaxfair.accounting import (
  ApproxDp,
  DatasetLedger,
  Gaussian,
  Ledger,
  RandomizedResponse,
  Relation,
)
from jaxfair.accounting import _dataset_ledger as module
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._dataset_ledger import dataset_ledgers
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._guarantee import BudgetError
from jaxfair.accounting._locked_file import LedgerError

PERSON = Relation.ADD_OR_REMOVE_ONE
EVENT = Gaussian(5.0)


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  return tmp_path / "state"


def book(identity=b"people", name="people"):
  return DatasetLedger.of(identity, name=name)


def test_releases_of_one_data_set_add_up_whatever_it_is_called():
  assert book().charge(EVENT, id="a: ages", relation=PERSON)
  assert book(name="census").charge(EVENT, id="b: incomes", relation=PERSON)
  assert book(b"others").charge(EVENT, id="c: ages", relation=PERSON)
  (spent,) = book().spent(1e-5)
  assert spent.releases == 2
  assert spent.guarantee.epsilon == pytest.approx(composed_epsilon([EVENT, EVENT], delta=1e-5))
  told = book().told(1e-5)
  assert "delta 1e-05 for one person added or removed" in told
  assert "2 releases." in told
  assert book().names() == ["people", "census"]


def test_the_same_id_is_free_and_another_event_under_it_is_refused():
  assert book().charge(EVENT, id="a", relation=PERSON)
  assert not book().charge(EVENT, id="a", relation=PERSON)
  with pytest.raises(LedgerError, match="a new id for a new release"):
    book().charge(Gaussian(1.0), id="a", relation=PERSON)


def test_charges_of_one_release_are_one_release():
  for part in range(3):
    book().charge(EVENT, id=f"run: part {part}", relation=PERSON)
  assert [spent.releases for spent in book().spent(1e-5)] == [1]


def test_relations_and_units_are_not_added_up():
  book().charge(EVENT, id="a", relation=PERSON)
  book().charge(EVENT, id="b", relation=PERSON, unit="one household")
  book().charge(RandomizedResponse(1.0, 2, 10), id="c", relation=Relation.ATTRIBUTE)
  found = book().spent(1e-5)
  assert {(s.guarantee.relation, s.guarantee.unit) for s in found} == {
    (PERSON, "one person"),
    (PERSON, "one household"),
    (Relation.ATTRIBUTE, "one person"),
  }
  assert all(spent.releases == 1 for spent in found)
  assert "covers only its own releases" in book().told(1e-5)


def test_without_a_budget_the_delta_is_the_smallest_usual_one_that_covers_the_releases():
  book().charge(EVENT, id="a", relation=PERSON)
  assert [spent.guarantee.delta for spent in book().spent()] == [1e-6]
  book().charge(ApproxDp(0.1, 5e-6), id="b", relation=PERSON)
  (spent,) = book().spent()
  assert spent.guarantee.delta == 1e-5
  assert spent.guarantee.epsilon == book().spent(1e-5)[0].guarantee.epsilon < math.inf


def test_a_delta_that_nothing_covers_is_an_infinite_epsilon():
  book().charge(EVENT, id="a", relation=PERSON)
  (spent,) = book().spent(0.0)
  assert "epsilon inf" in str(spent)


def test_nothing_in_the_folder_names_the_data(root):
  identity = b"\x01" * 32
  book(identity).charge(EVENT, id="a", relation=PERSON)
  for path in root.rglob("*"):
    assert identity.hex()[:16] not in str(path)
    private = 0o700 if path.is_dir() else 0o600
    assert stat.S_IMODE(path.stat().st_mode) == private, path
    if path.is_file():
      assert identity not in path.read_bytes()
      assert identity.hex() not in path.read_text()


def test_the_folder_s_name_needs_the_secret(tmp_path, monkeypatch):
  """Else whoever guesses all records but one finds that one by trying."""
  here = book().folder.name
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "somebody else's"))
  assert book().folder.name != here


def test_all_data_sets_are_listed_by_name():
  assert dataset_ledgers() == []
  for name in ("b", "a"):
    book(name.encode(), name).charge(EVENT, id="x", relation=PERSON)
  assert [one.name for one in dataset_ledgers()] == ["a", "b"]
  assert all(len(one.spent(1e-5)) == 1 for one in dataset_ledgers())


def test_a_budget_is_kept_before_and_after_the_first_release():
  one = gaussian_epsilon(sigma=5.0, delta=1e-5)
  book().set_budget((1.2 * one, 1e-5), relation=PERSON)
  book().charge(EVENT, id="a", relation=PERSON)
  with pytest.raises(BudgetError, match="does not cover"):
    book().require_affordable(EVENT, relation=PERSON)
  with pytest.raises(BudgetError, match="would overrun"):
    book().charge(EVENT, id="b", relation=PERSON)
  book().set_budget((2 * one, 1e-5), relation=PERSON)
  book().require_affordable(EVENT, relation=PERSON)
  book().charge(EVENT, id="b", relation=PERSON)
  (spent,) = book().spent()
  assert spent.releases == 2
  assert spent.budget == (2 * one, 1e-5)
  assert spent.guarantee.delta == 1e-5


def test_a_budget_below_what_is_spent_changes_nothing():
  book().charge(EVENT, id="a", relation=PERSON)
  before = book().spent(1e-5)
  raw = before[0].path.read_bytes()
  with pytest.raises(BudgetError, match="is spent already"):
    book().set_budget((0.1, 1e-5), relation=PERSON)
  assert book().spent(1e-5) == before
  assert before[0].path.read_bytes() == raw
  assert not list(book().folder.glob("*.partial"))


def test_without_a_budget_everything_is_affordable():
  book().require_affordable(EVENT, relation=PERSON)
  assert not book().folder.exists()
  book().charge(EVENT, id="a", relation=PERSON)
  book().require_affordable(EVENT, relation=PERSON)


def test_the_ledger_itself_can_be_handed_to_a_mechanism():
  with book().opened(Relation.REPLACE_ONE) as ledger:
    assert isinstance(ledger, Ledger)
    ledger.charge(EVENT, id="counts")
  (spent,) = book().spent(1e-5)
  assert spent.guarantee.relation is Relation.REPLACE_ONE


def test_another_ledger_s_budget_is_charged_whole_and_once(tmp_path):
  path = tmp_path / "ledger.jsonl"
  with Ledger.create(
    path, data="people", relation=Relation.REPLACE_ONE, budget=(1.0, 1e-6)
  ) as ledger:
    assert book().charge_budget(ledger)
    ledger.charge(EVENT, id="a")
    assert not book().charge_budget(ledger)
  with Ledger.open(path) as ledger:
    assert not book().charge_budget(ledger)
  (spent,) = book().spent(1e-5)
  assert spent.guarantee.relation is Relation.REPLACE_ONE
  assert 0.99 < spent.guarantee.epsilon <= 1.0
  with Ledger.create(
    tmp_path / "other.jsonl", data="people", budget=(1.0, 1e-6), relation=Relation.REPLACE_ONE
  ) as ledger:
    assert book().charge_budget(ledger)
  assert [spent.releases for spent in book().spent(1e-5)] == [2]
  with (
    Ledger.create(tmp_path / "free.jsonl", data="people", relation=PERSON) as ledger,
    pytest.raises(checks.ArgumentError, match="has no budget"),
  ):
    book().charge_budget(ledger)


def test_a_data_set_that_stays_held_is_told_of(monkeypatch):
  monkeypatch.setattr(module, "PATIENCE", 0.1)
  with book().opened(PERSON), pytest.raises(LedgerError, match="held by another process"):
    book().charge(EVENT, id="a", relation=PERSON)


def test_damaged_names_are_no_obstacle():
  book().charge(EVENT, id="a", relation=PERSON)
  (book().folder / "about.json").write_text("[")
  assert [one.name for one in dataset_ledgers()] == ["unnamed"]
  book().charge(EVENT, id="b", relation=PERSON)
  assert book().names() == ["people"]


PROGRAM = textwrap.dedent("""
  import sys
  from jaxfair.accounting import ApproxDp, DatasetLedger, Gaussian, Relation
  book = DatasetLedger.of(b"people", name="people")
  for i in range(1000):
    book.charge(Gaussian(50.0), id=f"{sys.argv[1]}: {i}",
                relation=Relation.ADD_OR_REMOVE_ONE)
    print(i, flush=True)
""")


@pytest.mark.slow
def test_processes_share_a_ledger_and_a_kill_loses_no_charge(root):
  here = str(pathlib.Path(__file__).parents[2])
  environment = os.environ | {"PYTHONPATH": here}
  running = [
    subprocess.Popen(
      [sys.executable, "-c", PROGRAM, name], stdout=subprocess.PIPE, text=True, env=environment
    )
    for name in "ab"
  ]
  told = {}
  for name, process in zip("ab", running, strict=True):
    for _ in range(10):
      last = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().split()
    told[name] = int(rest[-1]) if rest else last
    process.wait()
    process.stdout.close()
  (spent,) = book().spent(1e-5)
  ids = {entry.id for entry in Ledger.read(spent.path)}
  for name, count in told.items():
    assert {f"{name}: {i}" for i in range(count + 1)} <= ids
  assert book().charge(EVENT, id="after", relation=PERSON)


def test_a_budget_is_not_walked_around_by_another_relation_or_unit():
  other = Relation.REPLACE_ONE
  book().charge(EVENT, id="before", relation=other)
  book().set_budget((1.0, 1e-5), relation=PERSON)
  for options in ({"relation": other}, {"relation": PERSON, "unit": "one household"}):
    with pytest.raises(BudgetError, match="does not limit; set one"):
      book().require_affordable(EVENT, **options)
    with pytest.raises(BudgetError, match="does not limit; set one"):
      book().charge(EVENT, id="new", **options)
    with pytest.raises(BudgetError, match="does not limit; set one"), book().opened(**options):
      pass
  assert not book().charge(EVENT, id="before", relation=other)  # as a release that is continued
  book().charge(EVENT, id="within", relation=PERSON)
  book().set_budget((2.0, 1e-5), relation=other)
  book().charge(EVENT, id="new", relation=other)
