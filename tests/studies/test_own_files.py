"""A run reads one content of the user's files, however often it is stopped."""

import dataclasses
import json
import os
import stat

import pytest

from helpers.toy_study import ToyConfig
from jaxfair import checks, studies
from jaxfair.studies import People, RunError

OWN = "age,sex,hired\n20,F,yes\n30,M,no\n40,F,no\n50,M,yes\n"


class Crash(BaseException):
  """The process dies here."""


@dataclasses.dataclass(frozen=True)
class OwnConfig(ToyConfig):
  """With people, some of them in a list."""

  data: People = dataclasses.field(default_factory=People)
  others: tuple[People, ...] = ()


@pytest.fixture
def own(tmp_path):
  path = tmp_path / "own.csv"
  path.write_text(OWN)
  return path


@pytest.fixture
def run(toy, own, tmp_path):
  toy.study = dataclasses.replace(toy.study, config=OwnConfig)
  table = {"csv": str(own), "label": "hired", "group": "sex"}

  def execute(*, listed=False, say=lambda message: None):
    values = {"others": [table]} if listed else {"data": table}
    made = studies.plan(toy.study, values)
    return studies.execute(made, tmp_path / "r", say=say)

  return execute


def content(folder):
  return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_file_stops_a_continued_run(
  toy, own, run, tmp_path, finished, listed
):
  if not finished:
    toy.failures[1.0] = Crash()
    with pytest.raises(Crash):
      run(listed=listed)
  else:
    run(listed=listed)
  before = content(tmp_path / "r")
  own.write_text(OWN.replace("20", "21"))
  told = r"own\.csv has changed since cells of .*r were .*another --out, delete"
  with pytest.raises(RunError, match=told):
    run(listed=listed)
  assert content(tmp_path / "r") == before
  own.write_text(OWN)  # as the message says
  run(listed=listed)
  assert toy.computed == [0.0, 1.0, 2.0]


def test_a_file_that_was_only_touched_is_the_same(toy, own, run):
  run()
  os.utime(own, ns=(1, 1))
  run()
  assert toy.computed == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("during", [0.0, 1.0])
def test_a_file_edited_while_a_cell_runs_leaves_no_mixed_rows(
  toy, own, run, tmp_path, during
):
  compute = toy.run

  def editing(config, cell, context):
    rows = compute(config, cell, context)
    if cell["mean"] == during:
      own.write_text(OWN + "60,F,no\n")
    return rows

  toy.study = dataclasses.replace(toy.study, run=editing)
  with pytest.raises(RunError, match="has changed"):
    run()
  assert len(list(tmp_path.glob("r/cells/*.csv"))) == during


def test_a_run_of_which_nothing_was_computed_takes_the_new_file(
  toy, own, run, tmp_path
):
  toy.failures[0.0] = Crash()
  with pytest.raises(Crash):
    run()
  own.write_text(OWN + "60,F,no\n")
  run()
  run()
  assert toy.computed == [0.0, 1.0, 2.0]


def test_a_ledger_is_work_too(toy, own, run, tmp_path):
  toy.failures[0.0] = Crash()
  with pytest.raises(Crash):
    run()
  (tmp_path / "r" / "ledger.jsonl").write_text("spent\n")
  own.write_text(OWN + "60,F,no\n")
  with pytest.raises(RunError, match="has changed"):
    run()
  assert (tmp_path / "r" / "ledger.jsonl").read_text() == "spent\n"


def test_a_mistake_in_the_first_cell_leaves_nothing(toy, own, run, tmp_path):
  toy.failures[0.0] = checks.ArgumentError("no")
  with pytest.raises(checks.ArgumentError):
    run()
  assert [path.name for path in tmp_path.iterdir()] == ["own.csv"]


def test_the_digest_is_its_owner_s(run, tmp_path):
  old = os.umask(0)
  try:
    run()
  finally:
    os.umask(old)
  path = tmp_path / "r" / "own_files.json"
  assert stat.S_IMODE(path.stat().st_mode) == 0o600
  (digest,) = json.loads(path.read_text()).values()
  for other in (p for p in tmp_path.rglob("r/*") if p.is_file()):
    assert other == path or digest not in other.read_text()


def test_a_finished_run_needs_its_file_no_more(own, run):
  run()
  own.unlink()
  run()


def test_what_an_earlier_version_did_not_note_is_said(run, tmp_path):
  run()
  (tmp_path / "r" / "own_files.json").unlink()
  told = []
  run(say=told.append)
  assert any("own.csv is the file that earlier cells" in one for one in told)
  assert (tmp_path / "r" / "own_files.json").exists()
