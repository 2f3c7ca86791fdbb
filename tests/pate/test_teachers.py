"""Teachers: each as if it were alone, on any devices, after any crash."""

import dataclasses
import hashlib
import pathlib

import jax
import numpy as np
import optax
import pytest

from helpers import subprocesses
from jaxfair import checks, data, models, pate, training, tree
from jaxfair.pate import _teachers
from jaxfair.training import _checkpoints, _ensembles
from jaxfair.types import Examples

K, N = 15, 24
MODEL = models.mlp((5,), 3)
KEY = jax.random.key(4)
RATES = np.linspace(0.01, 0.1, K, dtype=np.float32)  # one for each teacher
CONFIG = training.FitConfig(learning_rate=RATES, steps=6, batch_size=None, optimizer=optax.sgd)


@pytest.fixture
def parts():
  return make_parts()


def make_parts(seed=0):
  rng = np.random.default_rng(seed)
  y = np.tile(np.arange(N, dtype=np.int32) % 3, (K, 1))
  x = rng.normal(size=(K, N, 4)).astype(np.float32)
  x[..., 0] += y
  return Examples(x, y, np.zeros((K, N), np.int32))


def train(parts, config=CONFIG, model=MODEL, loss=models.cross_entropy, **options):
  return pate.train_teachers(model, loss, parts, config, key=KEY, **options)


def digest(params):
  leaves = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(params)]
  return hashlib.sha256(b"".join(leaves)).hexdigest()


@pytest.mark.slow
def test_a_teacher_is_a_fit_on_its_part_with_its_settings(parts):
  stacked = train(parts)
  for i in (0, 14):
    alone = training.fit(
      MODEL,
      models.cross_entropy,
      tree.take(parts, i),
      dataclasses.replace(CONFIG, learning_rate=RATES[i]),
      key=jax.random.fold_in(KEY, i),
    )
    for ours, theirs in zip(jax.tree.leaves(stacked), jax.tree.leaves(alone.params), strict=True):
      assert ours.shape == (K, *theirs.shape)
      np.testing.assert_allclose(ours[i], theirs, rtol=1e-5, atol=1e-6)


def test_no_part_reaches_another_s_teacher(parts):
  flipped = parts._replace(y=np.where(np.arange(K)[:, None] == 2, parts.y, 2 - parts.y))
  a, b = train(parts), train(flipped)
  for ours, theirs in zip(*map(jax.tree.leaves, (a, b)), strict=True):
    np.testing.assert_array_equal(ours[2], theirs[2])
    assert (np.asarray(ours[3]) != theirs[3]).any()


def test_a_second_ensemble_compiles_nothing(parts):
  train(parts)
  size = _ensembles._mapped._cache_size()
  train(make_parts(1), dataclasses.replace(CONFIG, learning_rate=RATES * 2))
  assert _ensembles._mapped._cache_size() == size


class Killed(BaseException):
  """Stands for a kill: nothing handles it."""


@pytest.mark.slow
def test_a_killed_run_loses_one_chunk_and_no_bit(parts, tmp_path):
  told = []

  def die(done, total):
    told.append((done, total))
    if done == 8:
      raise Killed

  where = {"checkpoint": tmp_path / "run", "save_every": 3}
  with pytest.raises(Killed):
    train(parts, progress=die, **where)
  assert told == [(4, 15), (8, 15)]
  trained = []
  original = _ensembles.fit_many

  def counted(*args, **options):
    trained.append(options["keys"].shape[0])
    return original(*args, **options)

  _ensembles.fit_many = counted
  try:
    resumed = train(parts, **where)
  finally:
    _ensembles.fit_many = original
  assert trained == [4, 4]  # of four segments, two were there
  assert digest(resumed) == digest(train(parts))
  assert jax.tree.leaves(resumed)[0].shape[0] == K


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"config": dataclasses.replace(CONFIG, steps=7)}, "steps=6, not 7"),
    ({"chunk": 2}, "chunk=4, not 2"),
    ({"parts": make_parts(1)}, "other data"),
    ({"model": models.mlp((5,), 3, "tanh")}, "another model; pass the model"),
    (
      {"loss": lambda logits, y: models.cross_entropy(2 * logits, y)},
      "another loss; pass the loss .* or choose another folder",
    ),
    ({"config": dataclasses.replace(CONFIG, optimizer=optax.sign_sgd)}, "another optimizer"),
  ],
)
def test_a_folder_with_another_ensemble_is_refused(parts, tmp_path, change, told):
  where = {"checkpoint": tmp_path / "run", "save_every": 3}
  train(parts, **where)
  with pytest.raises(_checkpoints.CheckpointError, match=told):
    train(**({"parts": parts} | where | change))


@pytest.mark.slow
def test_saved_teachers_may_have_a_penalty(parts, tmp_path):
  term = training.parity_penalty(MODEL, parts.x[0], np.arange(N) % 2, num_groups=2, lam=0.5)
  config = dataclasses.replace(CONFIG, penalties=(term,))
  saved = train(parts, config, checkpoint=tmp_path / "run", save_every=8)
  assert digest(saved) == digest(train(parts, config))
  with pytest.raises(_checkpoints.CheckpointError, match="another penalty"):
    train(parts, checkpoint=tmp_path / "run", save_every=8)


REBUILT = """
import json, sys
import flax.linen as nn, haiku as hk
sys.path[:0] = %r
from test_teachers import digest, make_parts, models, train

class Net(nn.Module):
  @nn.compact
  def __call__(self, x):
    return nn.Dense(3)(nn.relu(nn.Dense(5)(x)))

def net(x):
  return hk.Linear(3)(nn.relu(hk.Linear(5)(x)))

def died(done, total):
  if done < total and %r:
    raise SystemExit(print(json.dumps("died")))

kind, folder = %r
model = models.from_flax(Net()) if kind == "flax" else models.from_haiku(net)
found = train(
  make_parts(), model=model, checkpoint=folder, save_every=8, progress=died
)
print(json.dumps([digest(found), digest(train(make_parts(), model=model))]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flax", "haiku"])
def test_a_model_rebuilt_in_another_process_continues(kind, tmp_path):
  here = pathlib.Path(__file__).parent
  paths, run = [str(here), str(here.parent)], (kind, str(tmp_path / "run"))
  assert subprocesses.on_devices(REBUILT % (paths, True, run), 1) == "died"
  assert list((tmp_path / "run" / "private").glob("teachers-*"))
  continued, whole = subprocesses.on_devices(REBUILT % (paths, False, run), 1)
  assert continued == whole


def test_teachers_without_some_class_are_named(parts):
  y = parts.y.copy()
  y[4] = 1
  y[7][y[7] == 2] = 0
  with pytest.warns(_teachers.MissingClassWarning) as caught:
    train(parts._replace(y=y))
  assert "2 of 15 teachers" in str(caught[0].message)
  assert "4 (no 0, 2), 7 (no 2); use fewer" in str(caught[0].message)


def test_long_lists_of_teachers_are_cut(parts):
  y = np.where(np.arange(K)[:, None] < 12, parts.y % 2, parts.y)
  with pytest.warns(_teachers.MissingClassWarning, match="9 .no 2. and 2 more"):
    train(parts._replace(y=y))


@pytest.mark.parametrize(
  ("change", "told"),
  [
    (lambda p: jax.tree.map(lambda a: a[0], p), r"make them with data.parti"),
    (lambda p: jax.tree.map(lambda a: a[:0], p), "parts holds no teacher"),
    (lambda p: jax.tree.map(lambda a: a[:, :0], p), "15 teachers have no exam"),
    (lambda p: p._replace(y=p.y + 1), "ids from 1 to 3"),
    (lambda p: p._replace(group=p.group[:, :3]), "parts.group has shape"),
  ],
)
def test_impossible_parts_are_refused(parts, change, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(change(parts))


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"chunk": 0}, "chunk=0 must be at least 1"),
    ({"save_every": 0}, "save_every=0 must be at least 1"),
  ],
)
def test_impossible_settings_are_refused(parts, options, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(parts, **options)


def test_more_teachers_than_people_are_refused():
  people = jax.tree.map(lambda leaf: leaf[0], make_parts())
  with pytest.raises(checks.ArgumentError, match="more than the 24 examples"):
    data.partition(people, 25, key=KEY)


COMMON = """
import json, sys
import jax, jax.numpy as jnp, numpy as np, optax
from jaxfair import models, pate
from jaxfair.training import FitConfig
from jaxfair.types import Examples

K, N = 15, 24
rng = np.random.default_rng(0)
y = np.tile(np.arange(N, dtype=np.int32) % 3, (K, 1))
parts = Examples(
  rng.normal(size=(K, N, 4)).astype(np.float32), y, np.zeros_like(y)
)
queries = rng.normal(size=(50, 4)).astype(np.float32)
config = FitConfig(
  learning_rate=0.05, steps=6, batch_size=None, optimizer=optax.sgd
)
MODEL = models.mlp((5,), 3)  # biases start as constants, weights by the key

def train(people=parts, **options):
  found = pate.train_teachers(
    MODEL, models.cross_entropy, people, config, key=jax.random.key(0),
    chunk=1, **options)
  return jax.device_get(found)

def bits(params):
  return "".join(np.asarray(a).tobytes().hex() for a in jax.tree.leaves(params))

def each(params, count):
  return [bits(jax.tree.map(lambda leaf: leaf[i], params)) for i in range(count)]

def votes(params, chunk=1):
  found = pate.predict_votes(MODEL, params, queries, chunk=chunk)
  return np.asarray(found).tolist()
"""

EIGHT = (
  COMMON
  + """
# Device d trains teachers 2 d and 2 d + 1; there is no teacher 15, so device 7
# has the last one twice.
last = np.arange(K)[:, None] == K - 1
flipped = parts._replace(y=np.where(last, 2 - y, y))

def moved(a):
  b = train(flipped)
  apart = jax.tree.leaves(jax.tree.map(lambda u, v: np.abs(u - v), a, b))
  return [
    float(max(leaf[:-1].max() for leaf in apart)),
    float(min(leaf[-1].max() for leaf in apart)),
  ]

params = train()
found = {"devices": jax.device_count(), "bits": bits(params),
         "moved": moved(params)}
print(json.dumps(found))
"""
)

TWO = (
  """
import sys, jax
jax.config.update("jax_cpu_collectives_implementation", "gloo")
address, count, me = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jax.distributed.initialize(address, count, me)
"""
  + COMMON
  + """
params = train()
saved = train(checkpoint=FOLDER, save_every=2)  # one process has saved some of them
print(json.dumps([[params.first, each(params.own, 8)], [saved.first, each(saved.own, 8)],
                  [votes(params), votes(saved), votes(params, 3)]]))
"""
)


ONE = (
  COMMON
  + """
params = train()

class Stop(Exception):
  pass

def stop(done, total):
  if done >= 6:
    raise Stop

try:
  train(checkpoint=FOLDER, save_every=2, progress=stop)
except Stop:
  pass
print(json.dumps([bits(params), each(params, K), [votes(params), votes(params, 3)]]))
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp("teachers") / "run"


@pytest.fixture(scope="module")
def one(folder):
  """In a process of its own, too: tests compile with other flags. It saves six teachers."""
  return subprocesses.on_devices(ONE.replace("FOLDER", repr(str(folder))), 1)


@pytest.fixture(scope="module")
def eight():
  return subprocesses.on_devices(EIGHT, 8)


@pytest.mark.slow
def test_devices_change_no_bit(one, eight):
  assert eight["devices"] == 8
  assert eight["bits"] == one[0]


@pytest.mark.slow
def test_labels_on_one_device_move_no_bit_on_another(eight):
  """Fails with shard_map's own check, as tests/training shows."""
  others, own = eight["moved"]
  assert others == 0.0
  assert own > 1e-4


@pytest.mark.slow
def test_two_processes_share_the_teachers_of_one_and_continue_its_folder(one, folder):
  """Each holds its own teachers alone, with the bits of one process, and all votes."""
  _, each, (votes, in_chunks) = one
  held = [*each, each[-1]]  # two times eight; there is no teacher 15
  before = {path: path.stat().st_mtime_ns for path in folder.rglob("teachers-*")}
  code = TWO.replace("FOLDER", repr(str(folder)))
  for number, (trained, saved, voted) in enumerate(subprocesses.together(code, 2)):
    assert trained == saved == [8 * number, held[8 * number : 8 * number + 8]]
    assert voted == [votes, votes, in_chunks]
  assert len(before) == 3
  assert len(list(folder.rglob("teachers-*"))) == 8
  assert before == {path: path.stat().st_mtime_ns for path in before}  # not trained again
