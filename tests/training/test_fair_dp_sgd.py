"""FairDP-SGD in both places, and calibration on public people."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, fairness, models, training, tree
from jaxfair.fairness import _confusion
from jaxfair.privacy._sampling import Batch
from jaxfair.training._dp_sgd import DpSgdInputs, DpSgdProgram, DpSgdState, Feed
from jaxfair.types import Examples

MODEL = models.logistic(2)
LOSS = models.cross_entropy
CONFIG = training.DpSgdConfig(learning_rate=0.5, steps=60, batch_size=100, noise_multiplier=0.5)


@functools.cache
def people():
  """Groups that differ in the first feature, which also tells the class."""
  rng = np.random.default_rng(0)
  group = rng.integers(0, 2, 400)
  y = (rng.random(400) < 0.3 + 0.4 * group).astype(np.int32)
  x = rng.normal(size=(400, 3)).astype(np.float32)
  x[:, 0] += 2 * group - 1
  x[:, 1] += 1.5 * y - 0.75
  return Examples(x, y, group.astype(np.int32))


def penalty(**changes):
  own = people()
  return training.parity_penalty(MODEL, own.x, own.group, num_groups=2, **changes)


def gap(params):
  labels = MODEL.apply(params, people().x).argmax(-1)
  counts = _confusion.prediction_counts(
    labels, sensitive_features=people().group, num_groups=2, num_classes=2
  )
  return float(fairness.demographic_disparity(counts).max())


@pytest.mark.slow
def test_a_larger_weight_narrows_the_gap_in_one_sweep():
  own = people()

  def train(lam):
    return training.fair_dp_sgd(
      MODEL,
      LOSS,
      own,
      CONFIG,
      public_x=own.x,
      public_group=own.group,
      num_groups=2,
      lam=lam,
      key=jax.random.key(1),
    ).params

  found = jax.vmap(train)(jnp.array([0.0, 1.0, 3.0]))
  gaps = [gap(tree.take(found, i)) for i in range(3)]
  assert gaps[0] > 0.2
  assert gaps[2] < gaps[0] - 0.1


@functools.partial(jax.jit, static_argnames=("placement",))
def one_step(params, own, lam, placement):
  """The clipped sum that a step takes: where it was minus where it goes."""
  config = training.DpSgdConfig(
    learning_rate=1.0,
    noise_multiplier=0.0,
    batch_size=1,
    steps=1,
    l2_clip=0.1,
    penalties=(penalty(lam=lam, placement=placement),),
    optimizer=optax.sgd,
  )
  state = DpSgdState(params, config.optimizer(1.0).init(params), jnp.array(0.1))
  key = jax.random.key(0)
  everybody = jnp.ones(8, bool)
  feed = Feed(Batch(jnp.arange(8), everybody), key, key, key, key)
  after, _ = DpSgdProgram(MODEL, LOSS).step(state, feed, DpSgdInputs(own, config))
  return tree.subtract(params, after.params)


@pytest.mark.slow
def test_both_places_add_what_they_say():
  own = Examples(*(jnp.asarray(leaf[:8]) for leaf in people()))
  params = {"w": jnp.array([[0.5, -0.5], [0.2, 0.1], [0, 0]]), "b": jnp.ones(2)}
  slope, grads = jax.tree.map(np.asarray, pieces(params, own))
  for lam in (0.0, 5.0):
    shift = {name: lam * value for name, value in slope.items()}
    assert lam == 0 or norm(shift) > 0.5
    inside = {name: 0 * value for name, value in slope.items()}
    after = dict(shift)
    for i in range(8):
      mine = {name: value[i] for name, value in grads.items()}
      moved = {name: mine[name] + shift[name] for name in mine}
      for total, part in ((after, mine), (inside, moved)):
        for name in total:
          total[name] = total[name] + part[name] * min(1, 0.1 / norm(part))
    for placement, expected in (("inside", inside), ("after", after)):
      found = one_step(params, own, lam, placement)
      for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-5)


@jax.jit
def pieces(params, own):
  """The penalty's slope, and each person's gradient."""
  slope = jax.grad(lambda p: penalty().value(p, people().x, people().group))

  def gradient(x, y):
    return jax.grad(lambda p: LOSS(MODEL.apply(p, x[None]), y[None])[0])(params)

  return slope(params), jax.vmap(gradient)(own.x, own.y)


def norm(arrays):
  return float(np.sqrt(sum((a**2).sum() for a in arrays.values())))


def test_both_places_have_the_event_of_dp_sgd():
  for placement in ("after", "inside"):
    config = dataclasses.replace(CONFIG, penalties=(penalty(lam=1.0, placement=placement),))
    assert config.event(400) == CONFIG.event(400)


@pytest.mark.slow
def test_calibration_narrows_the_gap_and_keeps_the_model_close():
  own = people()
  config = training.FitConfig(steps=150, batch_size=None, learning_rate=0.05)
  before = training.fit(MODEL, LOSS, own, config, key=jax.random.key(0)).params
  after = training.calibrate_fairness(
    MODEL,
    before,
    own.x,
    own.group,
    num_groups=2,
    lam=2.0,
    steps=150,
    learning_rate=0.05,
    key=jax.random.key(0),
  ).params
  assert gap(after) < 0.5 * gap(before)
  still = training.calibrate_fairness(
    MODEL,
    before,
    own.x,
    own.group,
    num_groups=2,
    lam=0.0,
    steps=150,
    learning_rate=0.05,
    key=jax.random.key(0),
  ).params
  # Its own soft predictions are a minimum of the cross-entropy to them.
  assert tree.norm(tree.subtract(still, before)) < 0.02 * tree.norm(before)


@pytest.mark.slow
def test_a_penalty_narrows_the_gap_of_its_own_notion():
  # By equal opportunity the groups differ; half of the people are public.
  own = people()

  def train(lam):
    return training.fair_dp_sgd(
      MODEL,
      LOSS,
      own,
      CONFIG,
      public_x=own.x,
      public_group=own.group,
      public_labels=own.y,
      notion="equal_opportunity",
      num_groups=2,
      lam=lam,
      sample=200,
      key=jax.random.key(1),
    ).params

  found = jax.vmap(train)(jnp.array([0.0, 3.0]))
  guesses = [MODEL.apply(tree.take(found, i), own.x).argmax(-1) for i in range(2)]
  gaps = [
    float(fairness.equal_opportunity_difference(own.y, guess, sensitive_features=own.group))
    for guess in guesses
  ]
  assert gaps[0] > 0.15
  assert gaps[1] < gaps[0] - 0.1
  assert (guesses[1] == own.y).mean() > max(own.y.mean(), 1 - own.y.mean()) + 0.05


def test_people_of_a_penalty_have_labels_only_where_they_are_read():
  own = people()
  assert repr(penalty(labels=own.y).people) == repr(penalty().people)
  odds = [repr(penalty(labels=y, notion="equalized_odds").people) for y in (own.y, 1 - own.y)]
  assert len({repr(penalty().people), *odds}) == 3
  with pytest.raises(checks.ArgumentError, match="there are none; give them, or use notion="):
    penalty(notion="equalized_odds")
  with pytest.raises(checks.ArgumentError, match="true labels has ids from 1 to 2"):
    penalty(notion="equalized_odds", labels=own.y + 1)


def test_a_sharp_penalty_compares_decisions():
  params = {"w": np.array([[0.0, 0.7], [0.0, -0.4], [0.0, 0.1]], np.float32), "b": np.zeros(2)}
  own = people()
  soft, sharp = (
    float(penalty(sharpness=by, temperature=1e-4).value(params, own.x, own.group))
    for by in (1.0, 1e5)
  )
  assert sharp == pytest.approx(gap(params), abs=1e-3)
  assert abs(soft - gap(params)) > 0.02
  with pytest.raises(checks.ArgumentError, match="sharpness"):
    penalty(sharpness=0.0)


def test_wrong_penalties_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"lam=-1.0 must be 0 or above"):
    penalty(lam=-1.0)
  with pytest.raises(checks.ArgumentError, match="use one of after, inside"):
    penalty(placement="before")
  config = dataclasses.replace(CONFIG, penalties=(penalty(),))
  with pytest.raises(checks.ArgumentError, match="made for another model"):
    training.dp_sgd(models.logistic(3), LOSS, people(), config, key=jax.random.key(0))
