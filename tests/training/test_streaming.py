"""Training on a source gives the bits of training on the same people in memory."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxfair import checks, data, models, training
from jaxfair.training import _checkpoints, _group_rules, _streaming
from jaxfair.types import Examples

MODEL, LOSS = models.logistic(2), models.cross_entropy


@pytest.fixture(scope="module")
def people():
  draw = np.random.default_rng(0)
  x = draw.normal(size=(500, 6)).astype(np.float32)
  y = (x[:, 0] + draw.normal(size=500) > 0).astype(np.int32)
  return Examples(x, y, (x[:, 1] > 0).astype(np.int32))


class Counting:
  """A source that writes down what is asked of it."""

  def __init__(self, people):
    self.people, self.asked = people, []

  @property
  def size(self):
    return self.people.size

  def take(self, rows):
    self.asked.append(rows)
    return self.people.take(rows)

  def fingerprint(self):
    return "counting"


def same(first, second):
  for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
    np.testing.assert_array_equal(one, other)


CONFIGS = {
  "plain": training.DpSgdConfig(steps=12, batch_size=30),
  "step": training.DpSgdConfig(steps=7, batch_size=30, loop="step"),
  "chunks": training.DpSgdConfig(
    steps=5,
    batch_size=30,
    chunk_size=16,
    augment=lambda x, key: x * 2,
    views=2,
    average=0.9,
    bands=3,
  ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
  ("name", "room"), [("plain", _streaming.BYTES), ("plain", 6000), ("step", 6000), ("chunks", 6000)]
)
def test_dp_sgd_gives_the_same_bits(people, monkeypatch, name, room):
  monkeypatch.setattr(_streaming, "BYTES", room)  # a block of all steps, or of one or two
  broken = people._replace(x=np.where(np.arange(500)[:, None] % 9 == 0, np.nan, people.x))
  found = [
    training.dp_sgd(MODEL, LOSS, given, CONFIGS[name], key=jax.random.key(3))
    for given in (broken, data.open_source(*broken))
  ]
  same(*found)
  assert found[1].trace.num_nonfinite.sum() > 0
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found[1].params))


@pytest.mark.slow
def test_only_people_of_the_sample_are_read(people):
  source = Counting(people)
  config = training.DpSgdConfig(steps=6, batch_size=20)
  found = training.dp_sgd(MODEL, LOSS, source, config, key=jax.random.key(1))
  shape, *read = source.asked
  assert shape.tolist() == [0]
  assert sum(map(len, read)) == found.trace.batch.sum()


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_fit_gives_the_same_bits(people, sampling):
  config = training.FitConfig(steps=20, batch_size=40, sampling=sampling)
  found = [
    training.fit(MODEL, LOSS, given, config, key=jax.random.key(0))
    for given in (people, data.open_source(*people))
  ]
  same(*found)


@pytest.mark.slow
def test_a_budget_is_trained_to_and_continued(people, tmp_path):
  config = training.DpSgdConfig(steps=20, batch_size=30)
  budget = {"epsilon": 3.0, "delta": 1e-5, "key": jax.random.key(0)}

  class StoppedError(Exception):
    pass

  def stop(done, total):
    if done == 10:
      raise StoppedError

  source, folder = data.open_source(*people), tmp_path / "run"
  with pytest.raises(StoppedError):
    training.train_to_budget(MODEL, LOSS, source, config, folder=folder, progress=stop, **budget)
  other = data.open_source(people.x, 1 - people.y, people.group)
  with pytest.raises(_checkpoints.CheckpointError, match="other data"):
    training.train_to_budget(MODEL, LOSS, other, config, folder=folder, **budget)
  continued = training.train_to_budget(MODEL, LOSS, source, config, folder=folder, **budget)
  whole = training.train_to_budget(MODEL, LOSS, people, config, **budget)
  same(continued.params, whole.params)
  same(continued.trace, whole.trace)
  assert continued.guarantee == whole.guarantee
  written = json.loads((folder / "private" / "run.json").read_text())
  assert source.fingerprint() not in json.dumps(written)  # it is kept under the training's key


def test_refused(people):
  source = Counting(people)
  with pytest.raises(checks.ArgumentError, match="reads all people at once; pass Examples"):
    training.lagrangian(MODEL, LOSS, source, training.LagrangianConfig(), key=jax.random.key(0))
  with pytest.raises(checks.ArgumentError, match="give a Source a batch_size"):
    training.fit(MODEL, LOSS, source, training.FitConfig(batch_size=None), key=jax.random.key(0))
  config = training.DpSgdConfig(batch_size=501)
  with pytest.raises(checks.ArgumentError, match="batch_size=501 must be"):
    training.dp_sgd(MODEL, LOSS, source, config, key=jax.random.key(0))
  config = training.DpSgdConfig(group_rule=_group_rules.GroupClip(2))
  with pytest.raises(checks.ArgumentError, match="leave group_rule out for a Source"):
    training.dp_sgd(MODEL, LOSS, source, config, key=jax.random.key(0))
  broken = Counting(people._replace(x=np.full_like(people.x, np.nan)))
  few = training.FitConfig(steps=2, batch_size=10)
  with pytest.raises(checks.ArgumentError, match="NaN or infinite"):
    training.fit(MODEL, LOSS, broken, few, key=jax.random.key(0))


@pytest.mark.slow
def test_a_number_beyond_float32_breaks_one_record_and_is_told_nobody(people):
  """A warning would come in the step that draws the person."""
  wide = people.x.astype(np.float64)
  wide[3] = 1e300
  config, key = training.DpSgdConfig(steps=4, batch_size=250), jax.random.key(0)
  fitted = training.dp_sgd(MODEL, LOSS, Counting(people._replace(x=wide)), config, key=key)
  broken = np.where(wide == 1e300, np.inf, people.x)
  whole = training.dp_sgd(MODEL, LOSS, people._replace(x=broken), config, key=key)
  same(fitted, whole)
  assert fitted.trace.num_nonfinite.sum() > 0


def test_errors_of_a_source_arrive(people):
  class Broken(Counting):
    def take(self, rows):
      if len(self.asked) == 2:
        raise OSError("the disk is gone")
      return super().take(rows)

  config = dataclasses.replace(CONFIGS["plain"], steps=2000)
  with pytest.raises(OSError, match="the disk is gone"):
    training.dp_sgd(MODEL, LOSS, Broken(people), config, key=jax.random.key(0))


@pytest.mark.parametrize("shape", [(1, 6), (6,), (2, 6)])
def test_a_source_that_gives_other_rows_than_it_is_asked_for_is_refused(people, shape):
  """One row would be copied to the places of all who were drawn."""

  class Lying(Counting):
    def take(self, rows):
      found = super().take(rows)
      return found._replace(x=np.ones(shape, np.float32)) if len(rows) > 2 else found

  config = training.DpSgdConfig(steps=2, batch_size=30)
  with pytest.raises(checks.ArgumentError, match="must give one row of shape") as refused:
    training.dp_sgd(MODEL, LOSS, Lying(people), config, key=jax.random.key(0))
  assert "30" not in str(refused.value)
