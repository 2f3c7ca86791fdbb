"""What is written is where the next reader looks, or nothing is released."""

import os

import pytest

from jaxfair.accounting import Gaussian, Ledger, Relation
from jaxfair.accounting._locked_file import LedgerError


@pytest.fixture
def path(tmp_path):
  (tmp_path / "run").mkdir()
  return tmp_path / "run" / "ledger.jsonl"


def create(path):
  return Ledger.create(path, data="adult", relation=Relation.ZERO_OUT)


def replace(path):
  path.unlink()
  create(path).close()


def swap_link(path):
  other = path.with_name("other.jsonl")
  create(other).close()
  path.rename(path.with_name("kept.jsonl"))
  path.symlink_to(other)


def swap_hard_link(path):
  other = path.with_name("other.jsonl")
  create(other).close()
  path.unlink()
  os.link(other, path)


def replace_folder(path):
  path.parent.rename(path.parent.with_name("old"))
  path.parent.mkdir()
  create(path).close()


MOVES = {
  "rename": lambda path: path.rename(path.with_name("kept.jsonl")),
  "unlink": lambda path: path.unlink(),
  "replace": replace,
  "symbolic link": swap_link,
  "hard link": swap_hard_link,
  "folder renamed": lambda path: path.parent.rename(path.parent / "../old"),
  "folder replaced": replace_folder,
}


@pytest.mark.parametrize("name", MOVES)
def test_a_moved_ledger_takes_no_charge(path, name):
  with create(path) as ledger:
    ledger.charge(Gaussian(1.0), id="before")
    MOVES[name](path)
    with pytest.raises(LedgerError, match="moved, deleted or replaced"):
      ledger.charge(Gaussian(1.0), id="after")
    assert "after" not in ledger
    # Not even for free: what it holds is no longer what others see.
    with pytest.raises(LedgerError, match="moved, deleted or replaced"):
      ledger.charge(Gaussian(1.0), id="before")


@pytest.mark.parametrize("name", MOVES)
def test_a_ledger_moved_during_a_charge_releases_nothing(path, name, monkeypatch):
  with create(path) as ledger:
    with monkeypatch.context() as patch:
      sync = os.fsync

      def move(handle):
        sync(handle)
        patch.setattr(os, "fsync", sync)
        MOVES[name](path)

      patch.setattr(os, "fsync", move)
      with pytest.raises(LedgerError, match="moved, deleted or replaced"):
        ledger.charge(Gaussian(1.0), id="a")
    with pytest.raises(LedgerError, match="interrupted"):
      ledger.charge(Gaussian(1.0), id="a")


def test_a_ledger_put_back_goes_on(path):
  with create(path) as ledger:
    ledger.charge(Gaussian(1.0), id="a")
    path.rename(path.with_name("kept"))
    with pytest.raises(LedgerError, match="put the file back"):
      ledger.charge(Gaussian(1.0), id="b")
    path.with_name("kept").rename(path)
    assert ledger.charge(Gaussian(1.0), id="b")
  assert len(Ledger.read(path)) == 2


def test_an_older_copy_written_over_it_is_seen(path):
  with create(path) as ledger:
    before = path.read_bytes()
    ledger.charge(Gaussian(1.0), id="a")
    path.write_bytes(before)  # the same file, as `cp` does it
    with pytest.raises(LedgerError, match="changed by another program"):
      ledger.charge(Gaussian(1.0), id="b")


def test_another_working_directory_does_not_move_it(path, tmp_path, monkeypatch):
  monkeypatch.chdir(path.parent)
  with create(path.name) as ledger:
    monkeypatch.chdir(tmp_path)
    assert ledger.charge(Gaussian(1.0), id="a")
  assert len(Ledger.read(path)) == 1
  assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_second_name_for_the_file_is_the_same_ledger(path):
  other = path.with_name("other.jsonl")
  with create(path) as ledger:
    os.link(path, other)
    with pytest.raises(LedgerError, match="being written"):
      Ledger.open(other)
    ledger.charge(Gaussian(1.0), id="a")
  assert Ledger.read(other).id == ledger.id
  assert len(Ledger.read(other)) == 1


def test_a_folder_is_no_ledger(path):
  with pytest.raises(LedgerError, match="cannot open"):
    Ledger.open(path.parent)
  with pytest.raises(LedgerError, match="cannot read"):
    Ledger.read(path.parent)
