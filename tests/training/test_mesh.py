import dataclasses

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from helpers import pages, quick_compile
from jaxfair import models, training
from jaxfair.checks import ArgumentError
from jaxfair.privacy import noise
from jaxfair.training import DpSgdConfig

CONFIG = DpSgdConfig(steps=40, batch_size=30, learning_rate=0.3, shards=16)

# Prints what the tests below judge: differences between one device and several, the compiled
# step's collectives and operations, and the noise of a step in which nobody has a gradient.
EIGHT = """
import dataclasses, json, re
import jax, jax.numpy as jnp, numpy as np, optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxfair import data, models, privacy, training
from jaxfair.training import _ensembles, _streaming
from jaxfair.training._dp_sgd import DpSgdProgram
from jaxfair.training._group_rules import GroupClip
from jaxfair.training._program import Given, begin
from jaxfair.types import Examples

MODEL, LOSS, KEY = models.mlp([16], 3), models.cross_entropy, jax.random.key(3)
CONFIG = training.DpSgdConfig(steps=40, batch_size=30, learning_rate=0.3, shards=16)
RICH = dataclasses.replace(
  CONFIG, adaptive=privacy.QuantileClip(count_noise=2.0), average=0.9, chunk_size=5, views=2,
  augment=lambda x, key: x + 0.1 * jax.random.normal(key, x.shape), optimizer=optax.adam,
  learning_rate=0.05, steps=10, group_rule=GroupClip(2))

def people(n):
  rng = np.random.default_rng(0)
  y = rng.integers(0, 3, n).astype(np.int32)
  x = (rng.normal(size=(3, 8))[y] + rng.normal(size=(n, 8))).astype(np.float32)
  x[5, 0] = np.nan
  return Examples(x, y, y % 2)

def mesh(*shape):
  axes = ("data", "model")[: len(shape)]
  return Mesh(np.array(jax.devices()[: np.prod(shape)]).reshape(shape), axes)

def apart(first, second):
  pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
  return max(float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max()) for a, b in pairs)

def run(config, own, devices=None, **more):
  return jax.device_get(training.dp_sgd(MODEL, LOSS, own, config, key=KEY, mesh=devices, **more))

found = {}
_streaming.BYTES = 6000  # blocks of one or two steps
own, eight = people(203), mesh(8)
one = run(CONFIG, own)
found["plain"] = apart(one, run(CONFIG, own, eight))
streamed = dataclasses.replace(CONFIG, augment=RICH.augment, views=2, chunk_size=5, steps=8)
found["from a source"] = [
  apart(run(streamed, own, devices), run(streamed, data.open_source(*own), devices))
  for devices in (None, eight)]
found["learned"] = [float(one.trace.loss[0]), float(one.trace.loss[-1])]

# Nobody has a finite gradient: what is left of the steps is their noise.
broken = own._replace(x=np.full_like(own.x, np.nan))
loud = dataclasses.replace(CONFIG, learning_rate=3.0, l2_clip=2.0, noise_multiplier=1.5)
drawn = [run(loud, broken, devices).params for devices in (None, eight)]
found["same noise"] = apart(*drawn)
start = MODEL.init(jax.random.fold_in(KEY, 0), own.x[0])
values = np.concatenate([(a - b).ravel() for a, b in
                         zip(jax.tree.leaves(drawn[1]), jax.tree.leaves(start), strict=True)])
found["noise"] = [float(values.std()), len(values)]

# Parameters that are spread over the devices, and people who are there already.
own, devices = people(208), mesh(4, 2)
placed = jax.device_put(own, NamedSharding(devices, P(("data", "model"))))
shardings = jax.tree.map(
  lambda leaf: NamedSharding(devices, P("data") if leaf.shape[0] == 16 else P()), start)
spread = training.dp_sgd(MODEL, LOSS, placed, RICH, key=KEY, mesh=devices,
                         initial=jax.device_put(start, shardings))
found["kept"] = [a.sharding.is_equivalent_to(b, a.ndim) for a, b in
                 zip(jax.tree.leaves(spread.params), jax.tree.leaves(shardings), strict=True)]
found["rich"] = apart(jax.device_get(spread), run(RICH, own, initial=start))
given = Given(placed, CONFIG, KEY, start)
given = DpSgdProgram.on(devices, MODEL, LOSS, placed, CONFIG, start).place(given)
found["as it is"] = all(
  a.unsafe_buffer_pointer() == b.unsafe_buffer_pointer()
  for left, right in zip(placed, given.examples, strict=True)
  for a, b in zip((s.data for s in left.addressable_shards),
                  (s.data for s in right.addressable_shards), strict=True))

# The compiled step, of shapes alone.
def compiled(devices):
  shape = jax.ShapeDtypeStruct
  own = Examples(shape((160000, 16), jnp.float32), *2 * [shape((160000,), jnp.int32)])
  config = dataclasses.replace(CONFIG, shards=64 if devices else None, batch_size=32768)
  program = DpSgdProgram.on(devices, MODEL, LOSS, own, config, None)
  begun = jax.eval_shape(lambda: begin(program, Given(
    jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), own), config, KEY)))
  feed = jax.eval_shape(lambda b: jax.tree.map(
    lambda leaf: leaf[0], program.feed(b.source, b.inputs, 0, 1)), begun)
  if devices:
    over = lambda spec: lambda one: shape(one.shape, one.dtype,
                                          sharding=NamedSharding(devices, spec))
    begun = jax.tree.map(over(P()), begun)
    begun = begun._replace(inputs=begun.inputs._replace(people=jax.tree.map(over(P("data")), own)))
    feed = jax.tree.map(over(P()), feed)._replace(
      batch=jax.tree.map(over(P("data")), feed.batch))
  done = jax.jit(program.step).lower(begun.state, feed, begun.inputs).compile()
  return done.cost_analysis()["flops"], done.as_text()

(whole, _), (part, text) = compiled(None), compiled(eight)
found["share"] = part / whole
kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
calls = re.findall(rf"= (.*?) ({kinds})(?:-start)?\\(", text)
found["collectives"] = [kind for _, kind in calls]
sizes = [np.prod([int(d) for d in dims.split(",") if d]) for dims in
         re.findall(r"f32\\[([\\d,]*)\\]", calls[0][0])]
found["summed"] = int(sum(sizes)), sum(leaf.size for leaf in jax.tree.leaves(
  jax.eval_shape(MODEL.init, KEY, jax.ShapeDtypeStruct((16,), jnp.float32))))

# Members of an ensemble read one copy of the people, not one for each device.
members = _ensembles._mesh_of(jax.devices())
held = jnp.ones((64, 16))
found["copies"] = [
  len({piece.data.unsafe_buffer_pointer() for piece in placed.addressable_shards} - {start})
  for start, placed in (
    (held.unsafe_buffer_pointer(), _ensembles._shared(held, members)),
    (None, _ensembles._dealt(held, np.arange(64), members)))]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def eight(on_devices):
  return on_devices(EIGHT, 8, flags=quick_compile.FLAGS)


@pytest.mark.slow
def test_one_device_or_eight_train_the_same_model(eight):
  assert eight["learned"][1] < 0.7 * eight["learned"][0]
  assert eight["plain"] < 1e-6  # parameters and trace of 203 people, after 40 steps


@pytest.mark.slow
def test_people_on_disk_train_what_people_in_memory_do(eight):
  """With the same shards, on one device and on eight, to the last bit."""
  assert eight["from a source"] == [0.0, 0.0]


@pytest.mark.slow
def test_any_layout_trains_the_same_model_and_is_kept(eight):
  """Adaptive and group bounds, views, chunks, a running mean, Adam, parameters spread."""
  assert eight["rich"] < 2e-6
  assert all(eight["kept"])
  assert eight["as it is"]


@pytest.mark.slow
def test_noise_is_added_once_to_the_sum_of_all_devices(eight):
  """Of eight noises the deviation would be sqrt(8) times as large."""
  assert eight["same noise"] == 0.0
  deviation, count = eight["noise"]
  expected = np.sqrt(40) * 1.5 * 2.0 * 3.0 / 30  # steps, z, C, learning rate, batch size
  assert abs(deviation / expected - 1) < 6 / np.sqrt(2 * count)


@pytest.mark.slow
def test_devices_divide_the_work_and_exchange_one_sum(eight):
  assert eight["share"] < 1.1 / 8
  assert eight["collectives"] == ["all-reduce"]
  summed, parameters = eight["summed"]
  assert summed == parameters + 5  # and five figures of the trace


@pytest.mark.slow
def test_devices_share_the_people_of_an_ensemble(eight):
  """The array of the caller for all of them; and of members, every device its own."""
  assert eight["copies"] == [0, 8]


@pytest.mark.slow
def test_noise_by_leaf_has_the_same_bits():
  value = {"a": np.ones((3, 5, 2), np.float32), "b": np.zeros(5000, np.float32), "c": np.float32(2)}
  drawn = [
    noise.gaussian(value, sigma=0.3, key=jax.random.key(2), by_leaf=by_leaf)
    for by_leaf in (False, True)
  ]
  for name in value:
    np.testing.assert_array_equal(drawn[0][name], drawn[1][name])


def test_a_mesh_that_cannot_share_is_refused(people):
  model, loss, key = models.logistic(3), models.cross_entropy, jax.random.key(0)
  one = Mesh(np.array(jax.devices()[:1]), ("data",))

  def run(config, mesh=one, own=people):
    return training.dp_sgd(model, loss, own, config, key=key, mesh=mesh)

  with pytest.raises(ArgumentError, match=r"the config has none; pass DpSgdConfig\(shards=64\)"):
    run(dataclasses.replace(CONFIG, shards=None))
  with pytest.raises(ArgumentError, match="shards=61 must be at least 1 and at most 60"):
    run(dataclasses.replace(CONFIG, shards=61))
  with pytest.raises(ArgumentError, match=r"mesh='gpu' is not a jax.sharding.Mesh"):
    run(CONFIG, mesh="gpu")
  with pytest.raises(ArgumentError, match="cannot run inside jit"):
    jax.jit(lambda own: run(CONFIG, own=own).params)(people)


def test_the_event_names_the_shards():
  event = CONFIG.event(60)
  assert (event.shards, event.dataset_size) == (16, 60)
  assert event.max_batch == CONFIG.sampler(60).max_batch


@pytest.mark.slow
def test_the_examples_of_the_page_run():
  pages.run("docs/scaling.md", blocks=2)
