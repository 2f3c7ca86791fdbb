import re

import jax
import numpy as np
import pytest

from helpers import quick_compile, subprocesses
from jaxfair import checks
from jaxfair.training import _hosts

COMMON = """
import os, sys
import json, jax, numpy as np
if len(sys.argv) > 1:
  jax.config.update("jax_cpu_collectives_implementation", "gloo")
  jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
from jaxfair import accounting, models, privacy, training
from jaxfair.training import _hosts
from jaxfair.types import Examples

rng = np.random.default_rng(0)
y = rng.integers(0, 3, 101).astype(np.int32)
x = (rng.normal(size=(3, 4))[y] + rng.normal(size=(101, 4))).astype(np.float32)
PEOPLE = Examples(x, y, np.zeros(101, np.int32))
MODEL, LOSS = models.logistic(3), models.cross_entropy
CONFIG = training.DpSgdConfig(steps=10, batch_size=20, learning_rate=0.3, shards=4,
                              loop="step")
MESH = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
FOLDER = %r

def plain(own):
  config = training.FitConfig(steps=5, batch_size=16, learning_rate=0.05)
  return values(training.fit(MODEL, LOSS, own, config, key=jax.random.key(1)).params)

class Stop(Exception):
  pass

def values(params):
  return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(params)]).tolist()

class Counting:
  size = 101
  asked = []

  def take(self, rows):
    self.asked.append(rows)
    return PEOPLE.take(rows)

  def fingerprint(self):
    self.asked.append(None)
    return "counting"

def release(stop, folder=FOLDER, key=None, people=PEOPLE):
  def progress(done, total):
    if done == 5:
      stop()
  return training.train_to_budget(MODEL, LOSS, people, CONFIG, epsilon=3.0, delta=1e-4, key=key,
                                  folder=folder, mesh=MESH, progress=progress)
"""

SPREAD = """
def spread(count, stop_at, folder=FOLDER + "-spread"):
  devices = jax.sharding.Mesh(np.array(jax.devices()[:count]), ("data",))
  P = jax.sharding.PartitionSpec

  def place(leaf):  # the weights of the four features are divided
    spec = P("data") if leaf.shape[0] == 4 else P()
    return _hosts.place(np.asarray(leaf), jax.sharding.NamedSharding(devices, spec))

  def progress(done, total):
    if done == stop_at:
      raise Stop

  initial = jax.tree.map(place, MODEL.init(jax.random.key(9), x[0]))
  try:
    return training.train_to_budget(
      MODEL, LOSS, PEOPLE, CONFIG, epsilon=3.0, delta=1e-4, key=jax.random.key(5), folder=folder,
      mesh=devices, progress=progress, initial=initial)
  except Stop:
    return None
"""

FOUR = (
  COMMON
  + SPREAD
  + """
assert spread(1, 7) is None
end, whole = spread(4, 0), spread(4, 0, None)
trace = [fit.trace.loss.tolist() for fit in (end, whole)]
print(json.dumps([values(end.params), values(whole.params), trace]))
"""
)

ONE = (
  COMMON
  + """
def stop():
  raise Stop

try:
  release(stop)
except Stop:
  pass
whole = release(lambda: None, folder=None, key=jax.random.key(5))
print(json.dumps([values(whole.params), plain(jax.tree.map(lambda leaf: leaf[:100], PEOPLE))]))
"""
)

TWO = (
  COMMON
  + SPREAD
  + """
assert spread(2, 4) is None
found = {"seeded": values(release(lambda: None, folder=None, key=jax.random.key(5)).params)}
disk = release(lambda: None, folder=FOLDER + "-disk", key=jax.random.key(5), people=Counting())
rows = [rows for rows in Counting.asked[1:] if rows is not None]
found["disk"] = values(disk.params), sorted(set(np.concatenate(rows).tolist())), sum(map(len, rows))
found["whole"] = sum(rows is None for rows in Counting.asked), int(disk.trace.batch.sum())
called = []
found["key"] = np.asarray(jax.random.key_data(_hosts.key_from_first(
  lambda: (called.append(1), privacy.os_key())[1]))).tolist()
found["drawn"] = len(called)
finished = release(lambda: None)
found["released"] = values(finished.params), finished.for_release, finished.guarantee.epsilon
entries = accounting.Ledger.read(FOLDER + "/ledger.jsonl")
found["charges"] = [[entry.event.shards, entry.event.max_batch] for entry in entries]
found["read"] = values(release(lambda: None).params)

def spread(own):
  sharding = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec("data"))
  return _hosts.place(jax.tree.map(lambda leaf: leaf[:100], own), sharding)

found["plain"] = plain(spread(PEOPLE))
try:
  plain(spread(PEOPLE._replace(x=np.where(np.arange(101)[:, None] == 70, np.inf, x))))
except Exception as error:
  found["broken"] = str(error)

def fails():
  raise ValueError("the disk is full")

try:
  _hosts.from_first(fails)
except Exception as error:
  found["error"] = str(error)

def stop():
  if jax.process_index():
    print(json.dumps(found), flush=True)
    os._exit(0)

try:
  release(stop, folder=FOLDER + "-2")
except _hosts.LostProcessError as error:
  found["lost"] = str(error)
print(json.dumps(found), flush=True)
os._exit(0)
"""
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
  """A release that one process stops and two finish, and what else the two found."""
  folder = str(tmp_path_factory.mktemp("hosts") / "run")
  one = subprocesses.on_devices(ONE % folder, 1, flags=quick_compile.FLAGS)
  return folder, one, subprocesses.together(TWO % folder, 2, flags=quick_compile.FLAGS)


@pytest.mark.slow
def test_two_processes_train_what_one_does(runs):
  _, one, two = runs
  for found in two:
    np.testing.assert_allclose(found["seeded"], one[0], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_each_process_reads_only_people_of_its_own_shards(runs):
  first, second = (found["disk"] for found in runs[2])
  assert first[0] == runs[2][0]["seeded"]
  assert second[0] == runs[2][1]["seeded"]
  assert max(first[1]) < 101 // 2 <= min(second[1])
  assert [found["whole"][0] for found in runs[2]] == [1, 0]  # one process compares everybody
  assert first[2] + second[2] == runs[2][0]["whole"][1]


@pytest.mark.slow
def test_arrays_that_no_process_holds_whole_are_checked_and_trained_on(runs):
  _, one, two = runs
  for found in two:
    np.testing.assert_allclose(found["plain"], one[1], rtol=0, atol=1e-6)
    assert "1 rows with NaN or infinite values (the first is row 70)" in found["broken"]


@pytest.mark.slow
def test_two_processes_draw_one_key(runs):
  first, second = runs[2]
  assert first["key"] == second["key"]
  assert (first["drawn"], second["drawn"]) == (1, 0)


@pytest.mark.slow
def test_two_processes_charge_once(runs):
  """They continue what one process began with a key from the operating system."""
  first, second = runs[2]
  assert first["released"] == second["released"]
  assert first["released"][1]
  assert first["released"][2] <= 3.0
  assert first["charges"] == second["charges"]
  assert [shards for shards, _ in first["charges"]] == [4]
  assert first["read"] == second["read"] == first["released"][0]


@pytest.mark.slow
def test_what_fails_in_the_first_process_fails_in_all(runs):
  assert [found["error"] for found in runs[2]] == 2 * ["the disk is full"]


@pytest.mark.slow
def test_parameters_that_two_processes_share_are_continued_by_any_number_of_devices(runs):
  """Two processes save their parts; one device goes on, then four."""
  folder, *_ = runs
  end, whole, trace = subprocesses.on_devices(FOUR % folder, 4, flags=quick_compile.FLAGS)
  np.testing.assert_allclose(end, whole, rtol=0, atol=1e-6)
  np.testing.assert_allclose(*trace, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_lost_process_ends_the_others_with_a_remedy(runs):
  folder, _, (first, _) = runs
  assert first["lost"] == (
    "another process of this run has ended; start all of them again with the same call, which "
    f"continues {folder}-2"
  )


def test_one_process_is_told_what_it_computes():
  assert _hosts.from_first(lambda: {"a": 1}) == {"a": 1}
  key = _hosts.key_from_first(lambda: jax.random.key(3))
  np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(jax.random.key(3)))
  with pytest.raises(ValueError, match="no device"), _hosts.together("start again"):
    raise ValueError("no device")


def test_processes_that_were_told_something_else_do_not_begin(monkeypatch):
  """Else one of them clips to a bound that the noise of all is not scaled to."""
  first = {"l2_clip": 1.0, "steps": 10}
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  monkeypatch.setattr(jax, "process_index", lambda: 1)
  monkeypatch.setattr(_hosts, "from_first", lambda function: first)
  _hosts.require_same(first, "start again")
  for other, told in (
    ({**first, "l2_clip": np.float32(1000)}, "l2_clip is 1.0 in the first process and '1000.0' in"),
    ({"l2_clip": 1.0}, "steps is 10 in the first process and 'missing' in process 2; start again"),
    ({**first, "rule": "drop"}, "rule is 'missing' in the first process and 'drop' in process 2"),
  ):
    with pytest.raises(checks.ArgumentError, match=re.escape(told)):
      _hosts.require_same(other, "start again")
