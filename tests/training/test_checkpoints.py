"""What a training's folder holds, and what is gone when it is finished."""

import errno
import json
import os
import resource
import shutil
import stat

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair.training import _checkpoints
from jaxfair.training._checkpoint_files import load_leaves, save_leaves
from jaxfair.training._checkpoints import CheckpointError, Checkpoints

PARAMS = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3)}
DATA = (np.arange(8.0), None)


class Crash(BaseException):
  """As kill -9: nothing handles it."""


def begin(folder, key=None, data=DATA):
  return Checkpoints(folder, {"steps": 4}, data, key, programs={})


def begin_with_work(folder):
  store = begin(folder)
  for name in ("step-00000003", "step-00000004"):
    (folder / "private" / name).mkdir()
    (folder / "private" / name / "trace").write_text("without noise")
  return store


def private_files(folder):
  return sorted(path.name for path in (folder / "private").rglob("*"))


def test_a_finished_release_keeps_no_key_checkpoint_or_trace(tmp_path):
  begin_with_work(tmp_path).finish(PARAMS)
  assert private_files(tmp_path) == ["run.json"]
  again = begin(tmp_path)
  assert again.finished
  assert again.for_release
  np.testing.assert_array_equal(again.released(PARAMS)["w"], PARAMS["w"])


@pytest.mark.parametrize("data", [(np.arange(8.0) + 1, None), (np.arange(8.0), np.zeros(1))])
def test_a_finished_release_on_other_data_is_refused(tmp_path, data):
  begin_with_work(tmp_path).finish(PARAMS)
  with pytest.raises(CheckpointError, match="other data"):
    begin(tmp_path, data=data)
  with pytest.raises(CheckpointError, match="another key"):
    begin(tmp_path, key=jax.random.key(0))


def test_without_its_state_folder_a_finished_release_is_refused(tmp_path, monkeypatch):
  begin_with_work(tmp_path / "run").finish(PARAMS)
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "another"))
  with pytest.raises(CheckpointError, match=r"take released\.npz from there"):
    begin(tmp_path / "run")


def test_the_record_of_a_finished_release_tells_nothing_of_the_data(tmp_path):
  told = []
  for name in ("a", "b"):
    begin_with_work(tmp_path / name).finish(PARAMS)
    text = (tmp_path / name / "private" / "run.json").read_text()
    told.append(json.loads(text)["data"])
  assert told[0] != told[1]  # the same data


CALLS = {os: ("replace", "unlink", "fsync"), shutil: ("rmtree",)}


def die_at(monkeypatch, point):
  """The point-th call that changes the disk is the last one."""
  left = [point]

  def dying(real):
    def call(*args, **options):
      if left[0] == 0:
        raise Crash
      left[0] -= 1
      return real(*args, **options)

    return call

  for module, names in CALLS.items():
    for name in names:
      monkeypatch.setattr(module, name, dying(getattr(module, name)))


def test_a_kill_at_any_moment_of_finishing_is_made_good(tmp_path, monkeypatch):
  for point in range(100):
    folder = tmp_path / str(point)
    store = begin_with_work(folder)
    die_at(monkeypatch, point)
    try:
      store.finish(PARAMS)
      finished = True
    except Crash:
      finished = False
    monkeypatch.undo()
    again = begin(folder)
    if not again.finished:  # then it can still be continued
      assert {"secret_key", "step-00000004"} <= set(private_files(folder))
    else:
      assert (folder / "released.npz").exists()
      left = set(private_files(folder))  # the key goes first
      assert "secret_key" not in left or {"step-00000003"} <= left
    again.finish(PARAMS)
    assert private_files(folder) == ["run.json"]
    np.testing.assert_array_equal(begin(folder).released(PARAMS)["w"], PARAMS["w"])
    if finished:
      assert point >= 6
      return
  raise AssertionError("it never finished")


@pytest.mark.parametrize("existed", [False, True])
def test_the_private_folder_is_its_owner_s_even_if_it_existed(tmp_path, existed):
  private = tmp_path / "run" / "private"
  if existed:
    private.mkdir(parents=True)
    private.chmod(0o755)
  begin(tmp_path / "run")
  assert stat.S_IMODE(private.stat().st_mode) == 0o700
  private.chmod(0o777)  # somebody opened it while the training was stopped
  begin(tmp_path / "run")
  assert stat.S_IMODE(private.stat().st_mode) == 0o700
  for path in private.iterdir():
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_name_of_the_data_needs_the_training_s_key():
  """Else whoever guesses all records but one finds that one by trying."""
  people = np.arange(6.0).reshape(2, 3)
  names = {_checkpoints._fingerprint(people, jax.random.key(seed)) for seed in range(3)}
  assert len(names) == 3


def test_leaves_keep_their_bits_and_types(tmp_path):
  tree = {"a": jnp.ones(3, jnp.bfloat16) / 3, "b": (jnp.arange(4),)}
  save_leaves(tmp_path / "leaves.npz", tree)
  found = load_leaves(tmp_path / "leaves.npz", tree)
  assert jax.tree.structure(found) == jax.tree.structure(tree)
  for one, other in zip(jax.tree.leaves(tree), jax.tree.leaves(found), strict=True):
    assert one.dtype == other.dtype
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.slow
def test_a_full_disk_keeps_the_last_checkpoint_and_logs_nothing(tmp_path, capfd):
  store = begin(tmp_path)
  state = {"w": jnp.arange(100_000.0)}
  store.save(1, state)
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  noise = np.random.default_rng(0).normal(size=100_000)  # does not compress
  resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
  try:
    with pytest.raises(OSError, match="File too large") as caught:
      store.save(2, {"w": jnp.asarray(noise)})
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
  assert caught.value.errno == errno.EFBIG
  assert capfd.readouterr().err == ""
  assert private_files(tmp_path).count("step-00000002") == 0
  assert store.latest() == 1
  names = [path.name for path in (tmp_path / "private").iterdir()]
  assert sorted(names) == ["run.json", "secret_key", "step-00000001"]
  store.save(2, state)
  found = store.load(2, state)
  np.testing.assert_array_equal(found["w"], state["w"])


def test_a_checkpoint_that_does_not_fit_is_not_begun(tmp_path, monkeypatch):
  store = begin(tmp_path)
  monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 400_000))
  with pytest.raises(OSError, match="No space left") as caught:
    store.save(2, {"w": jnp.zeros(100_000)})
  assert "step-00000002" in str(caught.value)
  assert store.latest() == 0
