"""Many trainings in one program: each as if it were alone, on any devices."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, models
from jaxfair.training import FitConfig, _ensembles, fit, fit_many
from jaxfair.training._ensembles import map_members
from jaxfair.types import Examples, Model

KEYS = jax.random.split(jax.random.key(5), 7)
CONFIG = FitConfig(learning_rate=0.1, steps=6, batch_size=8, optimizer=optax.sgd)
MODEL = Model(
  lambda key, x: {"w": jax.random.normal(key, (x.size, 3)), "b": jnp.zeros(3)},
  lambda params, x: x @ params["w"] + params["b"],
)


def close(a, b):
  for ours, theirs in zip(*map(jax.tree.leaves, (a, b)), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def same_bits(a, b):
  for ours, theirs in zip(*map(jax.tree.leaves, (a, b)), strict=True):
    np.testing.assert_array_equal(ours, theirs)


def member(fits, i):
  return jax.tree.map(lambda leaf: np.asarray(leaf)[i], fits)


def many(examples, config=CONFIG, keys=KEYS, **options):
  return fit_many(MODEL, models.cross_entropy, examples, config, keys=keys, **options)


def alone(examples, i, config=CONFIG, **options):
  """What member i is by itself."""
  return fit(MODEL, models.cross_entropy, examples, config, key=KEYS[i], **options)


def stack(trees):
  return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3, 20, None])
def test_each_member_is_what_it_is_alone_whatever_the_chunk(people, chunk):
  found = many(people, chunk=chunk)
  close(found, stack([alone(people, i) for i in range(7)]))


@pytest.mark.slow
def test_vmap_over_keys_is_one_by_one(people):
  def train(key):
    return fit(MODEL, models.cross_entropy, people, CONFIG, key=key)

  close(jax.vmap(train)(KEYS), many(people))


def test_a_member_depends_on_its_own_key_only(people):
  others = jax.random.split(jax.random.key(6), 7)
  mixed = jnp.where(jnp.arange(7) == 3, KEYS, others)
  a, b = many(people), many(people, keys=mixed)
  same_bits(member(a, 3), member(b, 3))
  assert (a.params["w"][2] != b.params["w"][2]).any()


@pytest.mark.slow
def test_every_number_of_the_config_may_differ_between_members(people):
  rates = np.linspace(0.01, 0.05, 7, dtype=np.float32)
  decays = np.linspace(0, 0.3, 7, dtype=np.float32)
  found = many(people, dataclasses.replace(CONFIG, learning_rate=rates, weight_decay=decays))
  for i in range(7):
    own = dataclasses.replace(CONFIG, learning_rate=float(rates[i]), weight_decay=float(decays[i]))
    close(member(found, i), alone(people, i, own))


@pytest.mark.slow
def test_proximity_is_to_the_shared_anchor(people):
  anchor = {"w": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}
  pulls = np.array([0, 1, 5, 5, 5, 5, 5], np.float32)
  found = many(people, dataclasses.replace(CONFIG, proximity=pulls), anchor=anchor)
  for i in (0, 1, 6):
    own = dataclasses.replace(CONFIG, proximity=float(pulls[i]))
    close(member(found, i), alone(people, i, own, anchor=anchor))


@pytest.fixture
def parts(make_people):
  return stack([make_people(20, seed=seed) for seed in range(7)])


@pytest.mark.slow
def test_each_member_may_have_its_own_people_and_start(parts):
  start = {
    "w": np.random.default_rng(0).normal(size=(7, 4, 3)).astype(np.float32),
    "b": np.ones((7, 3), np.float32),
  }
  found = many(parts, stacked=True, initial=start)
  for i in (0, 6):
    own = alone(member(parts, i), i, initial=member(start, i))
    close(member(found, i), own)


@pytest.mark.slow
def test_members_may_share_features_and_differ_in_labels(parts):
  mixed = Examples(parts.x[0], parts.y, parts.group[0])
  found = many(mixed, stacked=Examples(False, True, False))
  for i in (0, 6):
    own = Examples(parts.x[0], parts.y[i], parts.group[0])
    close(member(found, i), alone(own, i))


@pytest.mark.slow
def test_a_member_does_not_see_the_others_people(parts):
  flipped = parts._replace(y=np.where(np.arange(7)[:, None] == 2, parts.y, 2 - parts.y))
  a, b = (many(p, stacked=True) for p in (parts, flipped))
  same_bits(member(a, 2), member(b, 2))
  assert (a.params["b"][1] != b.params["b"][1]).any()


@pytest.mark.slow
def test_a_second_call_compiles_nothing(make_people):
  many(make_people(seed=1))
  size = _ensembles._mapped._cache_size()
  changed = dataclasses.replace(CONFIG, learning_rate=0.5)
  many(make_people(seed=2), changed, keys=jax.random.split(KEYS[0], 7))
  assert _ensembles._mapped._cache_size() == size
  many(make_people(seed=2), chunk=5)
  assert _ensembles._mapped._cache_size() == size + 1  # or nothing is counted


@pytest.mark.slow
def test_convolutions_run_one_after_the_other():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(8, 8, 8, 1)).astype(np.float32)
  y = np.arange(8, dtype=np.int32) % 2
  config = FitConfig(learning_rate=np.array([0.1, 0.2]), steps=2, batch_size=4)
  model, people = models.convnet(2), Examples(x, y, y)
  found = fit_many(model, models.cross_entropy, people, config, keys=KEYS[:2])
  alone = fit(
    model, models.cross_entropy, people, dataclasses.replace(config, learning_rate=0.2), key=KEYS[1]
  )
  close(member(found, 1), alone)


def test_members_may_return_any_tree_and_share_what_is_common():
  def member(own, common):
    return {"sum": own["a"] + common, "pair": (own["a"] * 2, own["b"])}

  own = {"a": jnp.arange(5.0), "b": jnp.arange(10).reshape(5, 2)}
  found = map_members(member, own, jnp.asarray(10.0), chunk=2)
  np.testing.assert_array_equal(found["sum"], np.arange(5) + 10)
  np.testing.assert_array_equal(found["pair"][1], own["b"])


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"keys": KEYS[0]}, "keys must be a vector"),
    ({"keys": jnp.zeros((3, 2), jnp.uint32)}, "keys must be a random key"),
    ({"keys": KEYS[:0]}, "there is no member to run; pass at least one key"),
    ({"chunk": -2}, "chunk=-2 must be at least 1"),
    (
      {"config": dataclasses.replace(CONFIG, learning_rate=np.ones(3))},
      r"learning_rate has shape \(3,\); stack one value per key: \(7,\)",
    ),
    (
      {"config": dataclasses.replace(CONFIG, learning_rate=np.zeros(7))},
      "learning_rate=0.0 must be above 0",
    ),
    ({"config": dataclasses.replace(CONFIG, proximity=1.0)}, "proximity needs a center"),
    (
      {"config": dataclasses.replace(CONFIG, batch_size=61)},
      "batch_size=61 must be at least 1 and at most 60",
    ),
    (
      {"initial": {"w": np.zeros((4, 3)), "b": np.zeros(3)}},
      "one entry per member along their first axis, but have 3, 4, 7",
    ),
    ({"stacked": True}, "one entry per member along their first axis"),
  ],
)
def test_impossible_requests_are_refused(people, options, told):
  with pytest.raises(checks.ArgumentError, match=told):
    many(people, **options)


@pytest.mark.parametrize(
  ("field", "value", "told"),
  [("x", np.nan, "1 rows with NaN"), ("y", 3, "ids from 0 to 3, outside 0..2")],
)
def test_every_member_s_people_are_looked_at(parts, field, value, told):
  getattr(parts, field)[5, 2] = value
  with pytest.raises(checks.ArgumentError, match=told):
    many(parts, stacked=True)


DEVICES = """
import dataclasses, hashlib, json, sys
import jax, jax.numpy as jnp, numpy as np, optax
from jaxfair import models, tree
from jaxfair.training import FitConfig, _ensembles, fit_many
from jaxfair.types import Examples

K, N = 13, 24
rng = np.random.default_rng(0)
parts = Examples(
  rng.normal(size=(K, N, 4)).astype(np.float32),
  rng.integers(0, 3, (K, N)).astype(np.int32),
  np.zeros((K, N), np.int32),
)
shared = tree.take(parts, 0)
keys = jax.random.split(jax.random.key(0), K)
config = FitConfig(
  learning_rate=0.05, steps=6, batch_size=8, optimizer=optax.sgd
)
config = dataclasses.replace(config, weight_decay=np.linspace(0, 1, K))
MODELS = {"logistic": models.logistic(3), "mlp": models.mlp((5,), 3)}

def digest(tree):
  leaves = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]
  return hashlib.sha256(b"".join(leaves)).hexdigest()

def train(model, examples, **options):
  return fit_many(
    MODELS[model], models.cross_entropy, examples, config, keys=keys,
    **options,
  )

def bits(model, stacked, chunk, devices):
  examples = parts if stacked else shared
  found = train(
    model, examples, stacked=stacked, chunk=chunk, devices=devices
  )
  return digest(found)
"""

ONE_DEVICE = (
  DEVICES
  + """
print(json.dumps(
  [bits("logistic", False, 4, None), bits("mlp", True, 2, None)]
))
"""
)

MANY_DEVICES = (
  DEVICES
  + """
# Only member 0 keeps its labels: does any other device reach it?
flipped = parts._replace(
  y=np.where(np.arange(K)[:, None] == 0, parts.y, 2 - parts.y)
)

def moved(model):
  a, b = (
    jax.device_get(train(model, people, stacked=True, chunk=2).params)
    for people in (parts, flipped)
  )
  apart = jax.tree.leaves(jax.tree.map(lambda u, v: np.abs(u - v), a, b))
  return [
    float(max(leaf[0].max() for leaf in apart)),
    float(min(leaf[1:].max() for leaf in apart)),
  ]

found = {
  "devices": jax.device_count(),
  "bits": [
    [bits("logistic", False, 4, jax.devices()[:d]) for d in (1, 3, 8)],
    [bits("mlp", True, 2, jax.devices()[:d]) for d in (1, 8)],
  ],
  "moved": {model: moved(model) for model in MODELS},
}
# The same with the replication check that we must not use.
mapped = jax.shard_map
jax.shard_map = lambda f, **kw: mapped(f, **(kw | {"check_vma": True}))
_ensembles._mapped.clear_cache()
found["trapped"] = {model: moved(model) for model in MODELS}
print(json.dumps(found))
"""
)


@pytest.fixture(scope="module")
def eight(on_devices):
  return on_devices(MANY_DEVICES, 8)


@pytest.mark.slow
def test_the_number_of_devices_changes_no_bit(eight, on_devices):
  one_device = on_devices(ONE_DEVICE, 1)
  assert eight["devices"] == 8
  for expected, found in zip(one_device, eight["bits"], strict=True):
    assert set(found) == {expected}
  assert one_device[0] != one_device[1]  # or the digests see nothing


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_no_device_reaches_another_s_member(eight, model):
  first, others = eight["moved"][model]
  assert first == 0.0
  assert others > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("model", ["logistic", "mlp"])
def test_shard_map_s_own_check_would_leak_between_members(eight, model):
  """The trap is real: with check_vma=True the test above would fail."""
  first, _ = eight["trapped"][model]
  assert first > 1e-4


@pytest.mark.parametrize(
  ("batch", "features", "side_by_side"),
  [(32, 100, 4), (32, 256, 2), (100, 256, 1), (8, 1, 4), (None, 256, 1)],
)
def test_members_share_a_chunk_while_their_batches_fit_a_cache(batch, features, side_by_side):
  people = Examples(np.zeros((190, features), np.float32), *2 * [None])
  config = dataclasses.replace(CONFIG, batch_size=batch)
  assert _ensembles.chunk_for(config, people) == side_by_side
