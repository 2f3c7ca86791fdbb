"""Run directories: crash anywhere, continue, and end with the same bytes."""

import dataclasses
import errno
import functools
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import jax
import numpy as np
import pytest

from jaxfair import checks, experiments, report
from jaxfair.experiments import _cells, _claims, _config, _folders, _reading, _runs
from jaxfair.experiments._folders import RunError

SOURCE = pathlib.Path(__file__).parents[1] / "helpers" / "toy_study.py"


class Crash(BaseException):
  """The process dies here."""


NOTES = ["numbers are drawn", "around 0.0", "around 1.0", "around 2.0"]


def silent(message):
  del message


def run(toy, folder, say=silent, **values):
  return experiments.execute(_runs.plan(toy.study, values), folder, say=say)


def content(folder):
  """What a run says, without times."""
  files = {p.name: p.read_bytes() for p in folder.rglob("*.csv")}
  return files | {"claims.json": (folder / "claims.json").read_bytes()}


@pytest.fixture
def whole(tmp_path):
  """What an uninterrupted run leaves."""
  from_file = {}

  def of(toy, **values):
    run(type(toy)(), tmp_path / "whole", **values)
    from_file.update(content(tmp_path / "whole"))
    return from_file

  return of


def test_a_run_directory_holds_what_is_promised(toy, tmp_path):
  table = run(toy, tmp_path / "r", seeds=3)
  assert len(table) == 3 * 3 * 2
  assert toy.computed == [0.0, 1.0, 2.0]
  names = {str(p.relative_to(tmp_path / "r")) for p in tmp_path.rglob("r/*")}
  assert names == {
    "config.toml",
    "versions.json",
    "run.json",
    "results.csv",
    "claims.json",
    "cells",
    ".lock",
  }
  config = _config.read(tmp_path / "r" / "config.toml")
  assert config == {
    "study": "toy",
    "title": "",
    "seed": 0,
    "means": [0.0, 1.0, 2.0],
    "seeds": 3,
    "spread": 0.5,
  }
  assert experiments.Table.read(tmp_path / "r" / "results.csv").names == table.names
  versions = json.loads((tmp_path / "r" / "versions.json").read_text())
  assert versions["jax"] == jax.__version__
  record = json.loads((tmp_path / "r" / "run.json").read_text())
  assert record["finished"] is True
  assert record["seed"] == "fixed"
  assert record["notes"] == NOTES


def test_verdicts_are_written(toy, tmp_path):
  run(toy, tmp_path / "r", seeds=8)
  verdicts = {
    claim["name"]: claim for claim in json.loads((tmp_path / "r" / "claims.json").read_text())
  }
  assert verdicts["grows"]["verdict"] == "supported"
  assert verdicts["grows"]["low"] > 0
  assert verdicts["grows"]["source"] == "Tab. 1"
  assert verdicts["odd"]["verdict"] == "not supported"
  assert verdicts["other"]["verdict"] == "not run"
  assert verdicts["other"]["why"] == "no rows with group=other"
  assert verdicts["other"]["value"] is None


def test_a_finished_run_is_read_and_not_judged_again(toy, tmp_path):
  run(toy, tmp_path, seeds=2)

  def refuse(table, level):
    raise AssertionError("judged again")

  again = dataclasses.replace(toy.study, claims={"grows: Again": _claims.Check(refuse)})
  read = _reading.read_run(tmp_path, study=again)
  assert [claim.name for claim in read.claims] == ["grows", "odd", "other"]
  (tmp_path / "claims.json").unlink()
  with pytest.raises(AssertionError, match="judged again"):
    _reading.read_run(tmp_path, study=again)


def test_the_same_config_gives_the_same_bytes_and_another_seed_others(toy, tmp_path):
  for name, seed in (("a", 0), ("b", 0), ("c", 1)):
    run(toy, tmp_path / name, seed=seed)
  a, b, c = (content(tmp_path / name) for name in "abc")
  assert a == b
  assert a["results.csv"] != c["results.csv"]


def test_cells_have_their_own_keys_whatever_runs_before_them(toy, tmp_path):
  run(toy, tmp_path / "a", means=[0.0, 1.0])
  run(toy, tmp_path / "b", means=[1.0])
  words = [np.asarray(jax.random.key_data(c.key)) for c in toy.contexts]
  assert (words[0] != words[1]).any()
  np.testing.assert_array_equal(words[1], words[2])
  shared = {np.asarray(jax.random.key_data(c.shared_key)).tobytes() for c in toy.contexts}
  assert len(shared) == 1
  assert shared.isdisjoint({word.tobytes() for word in words})


def test_named_keys_do_not_collide():
  keys = {
    np.asarray(jax.random.key_data(_cells._named_key(jax.random.key(0), name))).tobytes()
    for name in map(str, range(200))
  }
  assert len(keys) == 200


def test_finished_cells_are_not_computed_again(toy, tmp_path, whole):
  toy.failures[1.0] = Crash()
  with pytest.raises(Crash):
    run(toy, tmp_path / "r")
  assert toy.computed == [0.0]
  assert not (tmp_path / "r" / "results.csv").exists()
  said = []
  run(toy, tmp_path / "r", say=said.append)
  assert toy.computed == [0.0, 1.0, 2.0]
  assert content(tmp_path / "r") == whole(toy)
  # What was said before is not said again, but is still on record.
  assert said == ["1 of 3 cells were computed by an earlier run", *NOTES[2:]]
  record = json.loads((tmp_path / "r" / "run.json").read_text())
  assert record["notes"] == NOTES


def test_a_finished_run_is_not_touched(toy, tmp_path):
  run(toy, tmp_path / "r")
  before = content(tmp_path / "r")
  (tmp_path / "r" / "versions.json").write_text('{"jax": "0.0.0"}')
  run(toy, tmp_path / "r")
  assert toy.computed == [0.0, 1.0, 2.0]
  assert content(tmp_path / "r") == before
  assert "0.0.0" in (tmp_path / "r" / "versions.json").read_text()


def test_other_versions_on_the_way_are_noted(toy, tmp_path):
  toy.failures[1.0] = Crash()
  with pytest.raises(Crash):
    run(toy, tmp_path / "r")
  versions = _cells.versions(toy.study) | {"jax": "0.0.0"}
  (tmp_path / "r" / "versions.json").write_text(json.dumps(versions))
  said = []
  run(toy, tmp_path / "r", say=said.append)
  assert any(f"jax 0.0.0 -> {jax.__version__}" in line for line in said)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("seed", [3, "os"])
def test_a_crash_at_any_write_is_made_good(toy, tmp_path, monkeypatch, whole, call, seed):
  """Dies before the n-th file is complete, for every n, in one long run."""
  expected = whole(toy, seed=3)
  real = getattr(os, call)
  for point in range(100):
    left = [point]

    def dying(*args, left=left):
      if left[0] == 0:
        raise Crash
      left[0] -= 1
      return real(*args)

    folder = tmp_path / f"{point}"
    monkeypatch.setattr(os, call, dying)
    try:
      run(toy, folder, seed=seed)
      finished = True
    except Crash:
      finished = False
    monkeypatch.undo()
    run(toy, folder, seed=seed)
    if seed == 3:
      assert content(folder) == expected, point
    assert not (folder / "secret_key").exists()
    assert not list(folder.rglob("secret_key*"))
    record = json.loads((folder / "run.json").read_text())
    assert record["notes"] == NOTES
    if finished:
      assert point >= 8  # config, versions, 3 x (cell, record), results, ...
      return
  raise AssertionError("the run never finished")


KILLED = """
import dataclasses, os, pathlib, random, runpy, signal, sys, time
from jaxfair import experiments
source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
toy = runpy.run_path(source)["Toy"]()
draw = random.Random(0)

def slowly(*args):
  time.sleep(0.05)
  return toy.run(*args)

def attempt():
  study = dataclasses.replace(toy.study, run=slowly)
  made = experiments.plan(study, {"means": [float(m) for m in range(5)]})
  experiments.execute(made, folder, say=lambda message: None)

def cells():
  return len(list(folder.glob("cells/*.csv")))

kills = 0
while True:
  before, child = cells(), os.fork()
  if child == 0:
    attempt()
    os._exit(0)
  if kills < 3:  # while it starts: five cells take 0.25 seconds or more
    time.sleep(draw.uniform(0, 0.2))
  else:  # while it computes: after a new cell, so that it ends some day
    while cells() == before and os.waitpid(child, os.WNOHANG) == (0, 0):
      time.sleep(0.005)
    time.sleep(draw.uniform(0, 0.08))
  try:
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
  except (ProcessLookupError, ChildProcessError):
    status = 0  # it had ended
  if status == 0:
    break
  kills += 1
print(kills)
"""


@pytest.mark.slow
def test_kill_9_at_random_moments_changes_nothing(toy, tmp_path):
  made = subprocess.run(
    [sys.executable, "-W", "ignore", "-c", KILLED, SOURCE, tmp_path / "r"],
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert made.returncode == 0, made.stderr
  assert int(made.stdout) >= 3  # or nothing was tested
  run(toy, tmp_path / "whole", means=[float(m) for m in range(5)])
  assert content(tmp_path / "r") == content(tmp_path / "whole")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
@pytest.mark.parametrize("point", [0, 4, 9])
def test_a_full_disk_is_told_in_a_line_and_the_run_continues(
  toy, tmp_path, monkeypatch, whole, code, point
):
  expected, folder = whole(toy, seed=3), tmp_path / "r"
  left, real = [point], os.fsync

  def full(handle):
    left[0] -= 1
    if left[0] < 0:
      raise OSError(code, os.strerror(code))
    real(handle)

  monkeypatch.setattr(os, "fsync", full)
  with pytest.raises(RunError, match=os.strerror(code)) as caught:
    run(toy, folder, seed=3)
  monkeypatch.undo()
  kept = len(list(folder.glob("cells/*.csv")))
  assert f"kept in {folder}: {kept}; the same command" in str(caught.value)
  assert "None" not in str(caught.value)
  assert not list(folder.rglob("*.partial"))
  run(toy, folder, seed=3)
  assert content(folder) == expected


def test_an_error_that_is_not_the_disk_s_is_not_hidden(toy, tmp_path):
  def lost(config, cell, context):
    raise FileNotFoundError(errno.ENOENT, "No such file", "people.csv")

  with pytest.raises(FileNotFoundError):
    experiments.execute(_runs.plan(dataclasses.replace(toy.study, run=lost), {}), tmp_path / "r")


def test_a_run_of_another_config_is_refused_and_kept(toy, tmp_path):
  run(toy, tmp_path / "r", seeds=3)
  before = content(tmp_path / "r")
  with pytest.raises(RunError, match=r"another config; choose another --out"):
    run(toy, tmp_path / "r", seeds=4)
  assert content(tmp_path / "r") == before


def test_a_folder_that_is_no_run_is_refused_and_kept(toy, tmp_path):
  (tmp_path / "thesis.tex").write_text("mine")
  with pytest.raises(RunError, match="not a run directory; choose another"):
    run(toy, tmp_path)
  with pytest.raises(RunError, match="not a run directory"):
    run(toy, tmp_path / "thesis.tex")
  with pytest.raises(RunError, match="cannot be written"):
    run(toy, tmp_path / "thesis.tex" / "r")
  assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_empty_folder_may_be_used(toy, tmp_path):
  (tmp_path / "r").mkdir()
  run(toy, tmp_path / "r")
  assert (tmp_path / "r" / "results.csv").exists()


HOLDER = """
import sys, pathlib, time
from jaxfair import _whole_files
from jaxfair.experiments import _folders
folder = pathlib.Path(sys.argv[1])
with _folders.locked(folder, sys.argv[2]):
  _whole_files.write_whole(folder / "config.toml", sys.argv[2])
  print("held", flush=True)
  sys.stdin.read()
"""


@pytest.mark.slow
def test_two_processes_do_not_write_one_directory(toy, tmp_path):
  made = _runs.plan(toy.study, {})
  text = experiments._config.dump(made.values)
  with subprocess.Popen(
    [sys.executable, "-c", HOLDER, tmp_path / "r", text],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  ) as other:
    assert other.stdout.readline() == "held\n"
    with pytest.raises(RunError, match="being written by another process"):
      experiments.execute(made, tmp_path / "r", say=silent)
    assert toy.computed == []
    other.communicate("")
  experiments.execute(made, tmp_path / "r", say=silent)
  assert toy.computed == [0.0, 1.0, 2.0]


def test_the_secret_key_is_its_owner_s_and_gone_at_the_end(toy, tmp_path):
  seen = []
  compute = toy.run

  def looking(config, cell, context):
    path = context.folder / "secret_key"
    seen.append((stat.S_IMODE(path.stat().st_mode), path.read_text()))
    return compute(config, cell, context)

  toy.study = dataclasses.replace(toy.study, run=looking)
  old = os.umask(0)
  try:
    run(toy, tmp_path / "r", seed="os")
  finally:
    os.umask(old)
  assert {mode for mode, _ in seen} == {0o600}
  key = seen[0][1]
  assert not (tmp_path / "r" / "secret_key").exists()
  for path in (p for p in tmp_path.rglob("*") if p.is_file()):
    assert key not in path.read_text()
  record = json.loads((tmp_path / "r" / "run.json").read_text())
  assert record["seed"] == "os"


def test_a_resumed_run_keeps_its_secret_key_and_a_new_one_has_another(toy, tmp_path):
  toy.failures[1.0] = Crash()
  with pytest.raises(Crash):
    run(toy, tmp_path / "r", seed="os")
  run(toy, tmp_path / "r", seed="os")
  run(toy, tmp_path / "s", seed="os")
  key = {}
  for context in toy.contexts:
    words = np.asarray(jax.random.key_data(context.shared_key)).tobytes()
    key.setdefault(context.folder.name, set()).add(words)
  assert len(key["r"]) == 1
  assert key["r"] != key["s"]


def test_a_mistake_found_in_the_first_cell_leaves_nothing(toy, tmp_path):
  toy.failures[0.0] = checks.ArgumentError("more parts than examples")
  with pytest.raises(checks.ArgumentError, match="more parts"):
    run(toy, tmp_path / "runs" / "deep" / "r", seed="os")
  assert list(tmp_path.iterdir()) == []


def test_a_mistake_found_in_a_later_cell_keeps_the_earlier_ones(toy, tmp_path):
  toy.failures[1.0] = checks.ArgumentError("too many")
  with pytest.raises(checks.ArgumentError):
    run(toy, tmp_path / "r")
  assert len(list((tmp_path / "r" / "cells").glob("*.csv"))) == 1
  run(toy, tmp_path / "r")
  assert toy.computed == [0.0, 1.0, 2.0]


def test_a_ledger_is_never_removed(toy, tmp_path):
  def spending(config, cell, context):
    (context.folder / "ledger.jsonl").write_text("spent\n")
    raise checks.ArgumentError("no")

  toy.study = dataclasses.replace(toy.study, run=spending)
  with pytest.raises(checks.ArgumentError):
    run(toy, tmp_path / "r")
  assert (tmp_path / "r" / "ledger.jsonl").read_text() == "spent\n"
  assert (tmp_path / "r" / "config.toml").exists()


@pytest.mark.parametrize(
  ("values", "told"),
  [
    ({"seed": -1}, r"seed=-1 must be a whole number from 0 .* or \"os\""),
    ({"seed": True}, "seed=True must be a whole number"),
    ({"seed": "so"}, "seed='so' must be"),
    ({"seed": 2**31}, "must be a whole number from 0 to 2147483647"),
    ({"title": 3}, "title=3 must be a string"),
    ({"sedes": 3}, r"^a\.toml: sedes: unknown key; .*mean seeds"),
    ({"seeds": 0}, r"^a\.toml: seeds=0 must be at least 1"),
  ],
)
def test_wrong_values_are_refused(toy, values, told):
  with pytest.raises(_config.ConfigError, match=told):
    _runs.plan(toy.study, values, where="a.toml: ")


def test_a_config_without_cells_or_with_equal_ones_is_refused(toy, tmp_path):
  with pytest.raises(checks.ArgumentError, match="no cell to run"):
    run(toy, tmp_path / "r", means=[])
  with pytest.raises(checks.ArgumentError, match="two cells have equal"):
    run(toy, tmp_path / "r", means=[1.0, 1.0])
  assert list(tmp_path.iterdir()) == []


def test_progress_counts_cells(toy, tmp_path):
  steps = []
  made = _runs.plan(toy.study, {"means": [0.0, 1.0]})
  toy.failures[1.0] = Crash()
  for _ in range(2):
    try:
      experiments.execute(
        made, tmp_path / "r", say=silent, progress=lambda *step: steps.append(step[:2])
      )
    except Crash:
      steps.append("crash")
  assert steps == [(0, 2), (1, 2), "crash", (1, 2), (2, 2)]


DAMAGE = {
  "cut": lambda text: text[: len(text) // 2],
  "empty": lambda text: b"",
  "a list": lambda text: b"[]",
  "a number": lambda text: b"3",
  "names": lambda text: b'{"a": 1}',
  "null": lambda text: b"null",
  "no text": lambda text: b"\xff\xfe" + text,
  "nested": lambda text: b"[" * 100_000,
  "infinite": lambda text: text.replace(b"0", b"1" + 400 * b"0"),
  "quoted": lambda text: text.replace(b"1", b'"1"', 1),
}
RECORDS = [
  "run.json",
  "versions.json",
  "data.json",
  "claims.json",
  "results.csv",
  "config.toml",
  "cells",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # infinite values
@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_one_line_or_no_matter(toy, tmp_path, name):
  """Whatever a file holds: a run that goes on, or an error for a person."""
  run(toy, tmp_path / "r", seeds=3)
  refusals = 0
  for how, damage in DAMAGE.items():
    folder = tmp_path / how
    shutil.copytree(tmp_path / "r", folder)
    path = folder / name
    if name == "cells":
      path = sorted(path.iterdir())[0]
    path.write_bytes(damage(path.read_bytes() if path.exists() else b"{}"))
    (folder / "cells").joinpath(missing_cell(folder)).unlink()

    def draw(folder):
      report.write(_reading.read_run(folder, study=toy.study))

    again = functools.partial(run, type(toy)(), seeds=3)
    drawn = (draw,) if how in ("names", "quoted") else ()  # takes a while
    for use in (_folders.read_verdicts, *drawn, again):
      try:
        use(folder)
      except checks.JaxfairError as error:
        refusals += 1
        assert "\n" not in str(error)  # noqa: PT017
        assert folder.name in str(error)  # noqa: PT017
  assert refusals >= 2


def missing_cell(folder):
  """The last cell, so that something is left to compute."""
  return sorted((folder / "cells").iterdir())[-1].name


def test_a_run_knows_the_code_of_its_study(toy, tmp_path):
  run(toy, tmp_path / "r")
  versions = json.loads((tmp_path / "r" / "versions.json").read_text())
  assert versions["study code"] == _cells.study_digest(toy.study.run)


def test_the_digest_of_a_study_covers_what_it_imports_of_the_studies(tmp_path, monkeypatch):
  folder = tmp_path / "jaxfair" / "studies" / "own"
  folder.mkdir(parents=True)
  monkeypatch.setattr(_cells.jaxfair, "__file__", str(tmp_path / "jaxfair" / "__init__.py"))
  sources = {
    "study.py": "from jaxfair.studies.own import near\nfrom jaxfair import data\n",
    "near.py": "from jaxfair.studies.own.far import END\n",
    "far.py": "END = 1\n",
    "other.py": "OTHER = 1\n",
  }

  def digest(**changed):
    for name, source in sources.items():
      (folder / name).write_text(changed.get(name.removesuffix(".py"), source))
    own = {"__file__": str(folder / "study.py")}
    exec("def run(): pass", own)
    return _cells.study_digest(functools.partial(own["run"]))

  first = digest()
  assert digest(other="OTHER = 2\n") == first
  assert digest(far="END = 2\n") != first
  assert digest(near="from jaxfair.studies.own import far\n") != first
  assert digest() == first
