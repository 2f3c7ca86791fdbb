"""A run reads the same people in all its cells, however often it is stopped."""

import dataclasses
import json
import os
import stat

import numpy as np
import pytest

from helpers.toy_study import ToyConfig
from jaxfair import checks, data, experiments
from jaxfair.experiments import People, _people, _runs
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._people import load_people
from jaxfair.types import Examples

DIGITS = People("digits")
OWN = "age,sex,hired\n20,F,yes\n30,M,no\n40,F,no\n50,M,yes\n"


class Crash(BaseException):
  """The process dies here."""


@dataclasses.dataclass(frozen=True)
class OwnConfig(ToyConfig):
  """With people, some of them in a list."""

  data: People = DIGITS
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
    made = _runs.plan(toy.study, values)
    return experiments.execute(made, tmp_path / "r", say=say)

  return execute


def content(folder):
  return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("finished", [False, True])
def test_an_edited_file_stops_a_continued_run(toy, own, run, tmp_path, finished, listed):
  if not finished:
    toy.failures[1.0] = Crash()
    with pytest.raises(Crash):
      run(listed=listed)
  else:
    run(listed=listed)
  before = content(tmp_path / "r")
  own.write_text(OWN.replace("20", "21"))
  told = r"own\.csv has changed since cells of .*r were .* --out, delete"
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
def test_a_file_edited_while_a_cell_runs_leaves_no_mixed_rows(toy, own, run, tmp_path, during):
  compute = toy.run

  def editing(config, cell, context):
    rows = compute(config, cell, context)
    if cell["mean"] == during:
      own.write_text(OWN + "60,F,no\n")
    return rows

  toy.study = dataclasses.replace(toy.study, run=editing)
  with pytest.raises(RunError, match="has changed since"):
    run()
  assert len(list(tmp_path.glob("r/cells/*.csv"))) == during


def test_a_run_of_which_nothing_was_computed_takes_the_new_file(toy, own, run, tmp_path):
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
  with pytest.raises(RunError, match="has changed since"):
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
  path = tmp_path / "r" / "data.json"
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
  (tmp_path / "r" / "data.json").unlink()
  told = []
  run(say=told.append)
  assert any("computed from the same" in one and "own.csv" in one for one in told)
  assert (tmp_path / "r" / "data.json").exists()


@pytest.fixture
def named(toy, monkeypatch, tmp_path):
  """A study that loads a set by name, in its cells or while it runs."""
  sets = {"digits": data.load("digits")}
  _people._load.cache_clear()
  monkeypatch.setattr(data, "load", lambda name, **_: sets[name])
  compute = toy.run

  def loading(config, cell, context):
    load_people(config.data)
    return compute(config, cell, context)

  toy.study = dataclasses.replace(toy.study, config=OwnConfig, run=loading)

  def execute(**options):
    if options.pop("early", False):
      cells = toy.study.cells

      def earlier(config):
        load_people(config.data)
        return cells(config)

      toy.study = dataclasses.replace(toy.study, cells=earlier)
    made = _runs.plan(toy.study, {"data": {"name": "digits"} | options})
    experiments.execute(made, tmp_path / "r", say=lambda message: None)

  def change():
    x, y, group = sets["digits"].examples
    moved = Examples(x, np.roll(y, 1), group)
    sets["digits"] = dataclasses.replace(sets["digits"], examples=moved)
    _people._load.cache_clear()  # as in another process

  yield execute, change
  _people._load.cache_clear()


@pytest.mark.parametrize("early", [False, True])
def test_a_named_set_that_changed_stops_a_continued_run(toy, named, tmp_path, early):
  execute, change = named
  toy.failures[1.0] = Crash()
  with pytest.raises(Crash):
    execute(early=early)
  change()
  before = content(tmp_path / "r")
  with pytest.raises(RunError, match=r"^digits has changed since"):
    execute()
  assert toy.computed == [0.0]
  # Of what was computed nothing is lost; versions.json is written as ever.
  assert content(tmp_path / "r").keys() == before.keys()
  assert list(tmp_path.glob("r/cells/*.csv"))


def test_a_finished_run_notices_if_its_study_looks_at_the_people(toy, named):
  execute, change = named
  execute(early=True)
  execute()
  change()
  with pytest.raises(RunError, match="digits has changed since"):
    execute()


def test_the_set_may_come_where_a_stand_in_was(toy, named, monkeypatch):
  execute, _ = named
  load = data.load
  digits = load("digits")

  def missing(name, **_):
    if name == "digits":
      raise data.DataError("not here")
    return dataclasses.replace(digits, name=name)

  monkeypatch.setattr(data, "load", missing)
  monkeypatch.setattr(data, "fetch", missing)
  toy.failures[1.0] = Crash()
  with pytest.raises(Crash):
    execute(stand_in=True)
  monkeypatch.setattr(data, "load", load)
  _people._load.cache_clear()
  with pytest.raises(RunError, match="digits has changed since"):
    execute(stand_in=True)


def test_one_set_by_two_groups_is_two():
  found = {}
  with _people.watched(found.__setitem__):
    load_people(People(name="digits"))
    load_people(People(name="digits", group="all"))
  load_people(People(name="digits", group="label"))  # not watched
  assert list(found) == ["digits", "digits, group all"]
  assert len(set(found.values())) == 2
