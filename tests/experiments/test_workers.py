"""Cells on workers: the table has the same bytes, and a worker may die."""

import json
import signal
import textwrap

import pytest

from jaxfair import checks, experiments
from jaxfair.experiments import _cells, _config, _folders, _registry, _shards, _worker, _workers
from jaxfair.experiments._study import cell_name

STUDY = """
  import os, pathlib, signal
  import jax
  from jaxfair import checks
  from jaxfair import experiments as ex

  class Config(ex.Settings):
    means: ex.Sweep[ex.NonNegative] = (0.0, 1.0, 2.0, 3.0)
    fault: str = ""  # what goes wrong in the cell of mean 2
    mark: str = ""   # a file that is there once it has

  def run(config, cell, context):
    print("a study may print")
    mark = pathlib.Path(config.mark)
    if cell["mean"] == 2 and config.fault == "dies" and not mark.exists():
      mark.touch()
      os.kill(os.getpid(), signal.SIGKILL)
    checks.require(config.fault != "mistake" or cell["mean"] != 2, "mean=2 is odd; use 1")
    if cell["mean"] == 2 and config.fault == "bug":
      raise KeyError("a bug")
    if config.fault == "file":
      (context.folder / "kept").touch()
    context.say(f"around {cell['mean']}")
    values = cell["mean"] + jax.random.normal(context.key, (3, 2))
    shared = jax.random.normal(context.shared_key, (3, 2))
    axes = {"seed": range(3), "group": ["a", "b"]}
    return ex.Table.from_arrays(cell, axes, {"value": values, "shared": shared})

  STUDY = ex.Study(
    name="means", summary="Draws", config=Config, cells=ex.grid(mean="means"), run=run,
    claims={"grows: It grows": ex.difference("value", {"mean": 3.0}, {"mean": 0.0}) > 0})
"""


@pytest.fixture
def made(tmp_path):
  """Plans of a study that another process can find."""
  file = tmp_path / "means.py"
  file.write_text(textwrap.dedent(STUDY))

  def of(**values):
    values |= {"study": str(file), "mark": str(tmp_path / "mark")}
    return experiments.plan(_registry.find(str(file)), values)

  return of


def silent(message):
  del message


def run(plan, folder, **options):
  experiments.execute(plan, folder, say=silent, **options)
  return content(folder)


def content(folder):
  files = {p.name: p.read_bytes() for p in folder.rglob("*.csv")}
  return files | {"claims.json": (folder / "claims.json").read_bytes()}


@pytest.mark.slow
def test_workers_give_the_same_bytes_even_if_one_is_killed(made, tmp_path):
  steps = []
  plan = made(fault="dies")
  found = run(plan, tmp_path / "two", workers="2", progress=lambda *step: steps.append(step))
  assert (tmp_path / "mark").exists()  # one of them died
  assert found == run(plan, tmp_path / "one")
  record = _folders.read_record(tmp_path / "two")
  assert set(record.notes) == {f"around {mean}.0" for mean in range(4)}
  assert record.finished
  assert [step[:2] for step in steps] == [(done, 4) for done in range(5)]


class Here:
  """Answers in this process; the cell of mean 2 is lost if it is told so."""

  slots = 1

  def __init__(self, lost=False):
    self.lost, self.asked, self.closed = lost, [], False

  def compute(self, config, name):
    self.asked.append(name)
    if self.lost and name.startswith("2.0"):
      raise _workers.WorkerDiedError
    return _worker.answer(config, name)

  def close(self):
    self.closed = True


@pytest.mark.parametrize(
  ("fault", "error", "told"),
  [
    ("mistake", checks.JaxfairError, "mean=2 is odd; use 1"),
    ("bug", RuntimeError, "KeyError: 'a bug'"),
    ("file", checks.JaxfairError, "keeps_files=True"),
    ("", _folders.RunError, "died 3 times.*fewer --workers"),
  ],
)
def test_what_goes_wrong_on_a_worker_is_told_and_finished_cells_are_kept(
  made, tmp_path, monkeypatch, fault, error, told
):
  engine = Here(lost=not fault)
  monkeypatch.setattr(_workers, "engine_of", lambda workers: engine)
  with pytest.raises(error, match=told):
    run(made(fault=fault), tmp_path / "r", workers="1")
  assert engine.closed
  assert sum(name.startswith("2.0") for name in engine.asked) == {"": 3, "file": 0}.get(fault, 1)
  finished = {path.name[:3] for path in (tmp_path / "r").glob("cells/*.csv")}
  assert finished <= {"0.0", "1.0", "3.0"}
  assert ("0.0" in finished) == (fault != "file")


def test_a_release_stays_in_this_process(made, tmp_path):
  said = []
  plan = made(seed="os")
  experiments.execute(plan, tmp_path / "r", say=said.append, workers="2")
  assert "the key of a release does not leave it" in said[0]


def test_other_software_is_refused(made, monkeypatch):
  engine = Here()
  old = {"software": {"code": _cells.code_digest(), **_cells.software(), "jax": "0.1"}}
  monkeypatch.setattr(engine, "compute", lambda config, name: old)
  with pytest.raises(_folders.RunError, match=r"other software.*jax 0\.1 instead of"):
    list(_workers.compute_on(engine, made(), ["a"]))
  assert engine.closed


@pytest.mark.parametrize("workers", ["0", "-1", "two", "1.5", "2000"])
def test_a_wrong_number_of_workers_is_refused(workers):
  with pytest.raises(checks.ArgumentError, match=r"workers=.* must be a number of processes"):
    _workers.engine_of(workers)


@pytest.mark.slow
def test_closing_ends_the_processes(made):
  engine = _workers.engine_of("1")
  plan = made()
  name = cell_name(plan.study.plan_cells(plan.settings)[0])
  assert "result" in engine.compute(_config.dump(plan.values), name)
  (process,) = engine._all
  assert process.poll() is None
  engine.close()
  assert process.poll() == -signal.SIGKILL


def test_devices_are_shared_out_and_threads_are_not(monkeypatch):
  monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "8")
  assert _workers.worker_environment(3) == {"JAX_NUM_CPU_DEVICES": "2"}
  assert _workers.worker_environment(16) == {"JAX_NUM_CPU_DEVICES": "1"}
  monkeypatch.delenv("JAX_NUM_CPU_DEVICES")
  assert _workers.worker_environment(3) == {}


# Ray starts its processes by forking and then executing another program, which JAX warns about.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.slow
def test_two_ray_workers_give_the_same_bytes_even_if_one_is_killed(made, tmp_path, monkeypatch):
  ray = pytest.importorskip("ray", reason="Ray is in the extra `cluster`")
  monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
  monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
  ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
  try:
    plan = made(fault="dies")
    assert run(plan, tmp_path / "ray", workers="ray") == run(plan, tmp_path / "one")
    assert (tmp_path / "mark").exists()
  finally:
    ray.shutdown()


def test_shards_merge_to_the_same_bytes(made, tmp_path):
  plan, folder = made(), tmp_path / "all"
  whole = run(plan, tmp_path / "one")
  with pytest.raises(_folders.RunError, match="4 of 4 cells are missing"):
    _shards.merge(plan, folder, say=silent)
  for index in (1, 2, 3):
    own = _shards.execute_shard(plan, folder, _shards.Shard(index, 3), say=silent)
    assert len(list(own.glob("cells/*.csv"))) == (2 if index == 1 else 1)
    if index < 3:
      with pytest.raises(_folders.RunError, match=r"cells are missing.*--shard I/N"):
        _shards.merge(plan, folder, say=silent)
  _shards.merge(plan, folder, say=silent)
  assert content(folder) == whole
  assert len(_folders.read_record(folder).notes) == 4


def test_shards_of_other_software_or_configs_are_refused(made, tmp_path):
  plan, folder = made(), tmp_path / "all"
  first = _shards.execute_shard(plan, folder, _shards.Shard(1, 2), say=silent)
  second = _shards.execute_shard(plan, folder, _shards.Shard(2, 2), say=silent)
  versions = second / "versions.json"
  old = json.loads(versions.read_text())
  versions.write_text(json.dumps(old | {"jax": "0.1"}))
  with pytest.raises(_folders.RunError, match="other software"):
    _shards.merge(plan, folder, say=silent)
  versions.write_text(json.dumps(old | {"devices": "8 x cpu"}))  # does not matter
  config = first / "config.toml"
  config.write_text(config.read_text() + "\n")
  with pytest.raises(_folders.RunError, match="another config"):
    _shards.merge(plan, folder, say=silent)


def test_a_shard_of_a_release_is_refused(made, tmp_path):
  with pytest.raises(checks.ArgumentError, match="leave --shard out"):
    _shards.execute_shard(made(seed="os"), tmp_path / "r", _shards.Shard(1, 2), say=silent)
  with pytest.raises(checks.ArgumentError, match="this run has 4 cells"):
    _shards.execute_shard(made(), tmp_path / "r", _shards.Shard(1, 5), say=silent)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/2/3", "-1/2"])
def test_a_wrong_shard_is_refused(text):
  with pytest.raises(checks.ArgumentError, match="such as 1/4 to 4/4"):
    _shards.Shard.parse(text)
