"""Plain training against gradient descent written out in NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from jaxfair import checks, models, tree
from jaxfair.models import _losses
from jaxfair.training import FitConfig, _batches, fit
from jaxfair.training._program import train_scan
from jaxfair.types import Examples, Model

KEY = jax.random.key(0)
SGD = FitConfig(learning_rate=0.3, steps=12, batch_size=None, optimizer=optax.sgd)


def close(a, b, **tolerance):
  for ours, theirs in zip(*map(jax.tree.leaves, (a, b)), strict=True):
    np.testing.assert_allclose(ours, theirs, **tolerance)


class Softmax:
  """Softmax regression in float64, written out."""

  def __init__(self, people, num_classes=3):
    self.x = people.x.astype(np.float64)
    self.one_hot = np.eye(num_classes)[people.y]

  def loss_and_gradient(self, params, rows):
    x, one_hot = self.x[rows], self.one_hot[rows]
    logits = x @ params["w"] + params["b"]
    shifted = logits - logits.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    off = (np.exp(logs) - one_hot) / len(rows)
    loss = -(logs * one_hot).sum(1).mean()
    return loss, {"w": x.T @ off, "b": off.sum(0)}

  def descend(self, params, all_rows, rate, decay=0.0, proximity=0.0, at=None):
    losses, norms = [], []
    for rows in all_rows:
      loss, gradient = self.loss_and_gradient(params, rows)
      for name in params:
        gradient[name] = gradient[name] + decay * params[name]
        if proximity:
          gradient[name] += proximity * (params[name] - at[name])
      losses.append(loss)
      norms.append(np.sqrt(sum((g**2).sum() for g in gradient.values())))
      params = {name: params[name] - rate * gradient[name] for name in params}
    return params, losses, norms


def zeros(d=4, num_classes=3):
  return {"w": np.zeros((d, num_classes)), "b": np.zeros(num_classes)}


def test_full_batches_are_gradient_descent(people):
  found = fit(models.logistic(3), models.cross_entropy, people, SGD, key=KEY)
  everyone = [np.arange(people.size)] * 12
  params, losses, norms = Softmax(people).descend(zeros(), everyone, 0.3)
  close(found.params, params, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(found.trace.loss, losses, rtol=1e-5)
  np.testing.assert_allclose(found.trace.grad_norm, norms, rtol=1e-4)


@pytest.mark.slow
def test_mini_batches_are_gradient_descent_on_their_rows(people):
  config = dataclasses.replace(SGD, batch_size=16)
  found = fit(models.logistic(3), models.cross_entropy, people, config, key=KEY)
  key, size = jax.random.fold_in(KEY, 1), people.size
  shuffles = _batches.shuffles_for(size, 16, 12, key=key)
  rows = _batches.batch_rows(shuffles, size, 16, 12)
  params, losses, _ = Softmax(people).descend(zeros(), np.asarray(rows), 0.3)
  close(found.params, params, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(found.trace.loss, losses, rtol=1e-5)


def test_regularizers_are_gradient_descent_on_the_stated_objective(people):
  anchor = {"w": np.full((4, 3), 0.5, np.float32), "b": np.arange(3.0)}
  config = dataclasses.replace(SGD, weight_decay=0.2, proximity=0.4)
  found = fit(models.logistic(3), models.cross_entropy, people, config, key=KEY, anchor=anchor)
  everyone = [np.arange(people.size)] * 12
  params, losses, norms = Softmax(people).descend(zeros(), everyone, 0.3, 0.2, 0.4, anchor)
  close(found.params, params, rtol=1e-5, atol=1e-6)
  # The trace holds the loss alone, and the gradient with everything.
  np.testing.assert_allclose(found.trace.loss, losses, rtol=1e-5)
  np.testing.assert_allclose(found.trace.grad_norm, norms, rtol=1e-4)


def test_an_anchor_without_proximity_changes_nothing(people):
  def train(**extra):
    return fit(models.logistic(3), models.cross_entropy, people, SGD, key=KEY, **extra).params

  close(train(anchor=tree.scale(3.0, zeros())), train(), rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_one_step_of_a_flat_loss_is_the_regularizers_alone(people):
  def flat(logits, y):
    return 0.0 * logits[:, 0]

  start = {"w": jnp.full((4, 3), 2.0), "b": jnp.ones(3)}
  anchor = {"w": jnp.full((4, 3), -1.0), "b": jnp.zeros(3)}
  config = FitConfig(
    learning_rate=0.1, weight_decay=0.5, proximity=2.0, steps=1, optimizer=optax.sgd, batch_size=8
  )
  found = fit(
    models.logistic(3), flat, people, config, key=KEY, initial=start, anchor=anchor
  ).params
  # theta - 0.1 (0.5 theta + 2 (theta - anchor))
  np.testing.assert_allclose(found["w"], 2 - 0.1 * (1 + 6), rtol=1e-6)
  np.testing.assert_allclose(found["b"], 1 - 0.1 * (0.5 + 2), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [16, None])
def test_both_loops_agree(people, batch_size):
  config = dataclasses.replace(SGD, batch_size=batch_size)
  scan, step = (
    fit(
      models.logistic(3),
      models.cross_entropy,
      people,
      dataclasses.replace(config, loop=loop),
      key=KEY,
    )
    for loop in ("scan", "step")
  )
  close(scan, step, rtol=1e-5, atol=1e-6)


CONVOLUTION = Model(
  lambda key, x: jax.random.normal(key, (3, 3, 1, 2)),
  lambda kernel, x: jax.lax.conv(
    jnp.moveaxis(x, -1, 1), jnp.moveaxis(kernel, (2, 3), (1, 0)), (2, 2), "SAME"
  ).mean((2, 3)),
)


@pytest.mark.slow
def test_a_convolution_is_trained_by_the_loop_that_suits_it():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(12, 8, 8, 1)).astype(np.float32)
  y = np.arange(12, dtype=np.int32) % 2
  before = train_scan._cache_size()
  found = fit(
    CONVOLUTION, models.cross_entropy, Examples(x, y, y), FitConfig(steps=3, batch_size=4), key=KEY
  )
  assert train_scan._cache_size() == before
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


@pytest.mark.slow
def test_poisson_batches_are_divided_by_their_expected_size():
  """With loss = the only logit and x = 1, a step moves b by -count / B."""
  n, batch, runs = 50, 10, 400
  people = Examples(np.ones((n, 1), np.float32), np.zeros(n, np.int32), np.zeros(n, np.int32))
  config = FitConfig(
    learning_rate=1.0, steps=1, batch_size=batch, sampling="poisson", optimizer=optax.sgd
  )
  model = models.logistic(1)

  def moved(key):
    def loss(logits, y):
      return logits[:, 0]

    return -fit(model, loss, people, config, key=key).params["b"][0]

  counts = batch * jax.vmap(moved)(jax.random.split(KEY, runs))
  np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
  counts = np.round(counts).astype(int)
  assert len(set(counts.tolist())) > 5
  # Binomial(runs n, B / n): false alarm 1e-7 on either side.
  low, high = stats.binom.ppf([1e-7, 1 - 1e-7], runs * n, batch / n)
  assert low <= counts.sum() <= high
  spread = counts.var(ddof=1) / (batch * (1 - batch / n))
  low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], runs - 1) / (runs - 1)
  assert 0.9 * low <= spread <= 1.1 * high


@pytest.mark.slow
def test_poisson_at_rate_one_is_the_full_batch(people):
  config = dataclasses.replace(SGD, steps=5)
  full, poisson = (
    fit(models.logistic(3), models.cross_entropy, people, c, key=KEY)
    for c in (config, dataclasses.replace(config, batch_size=people.size, sampling="poisson"))
  )
  close(full, poisson, rtol=1e-5, atol=1e-6)


LINEAR = Model(lambda key, x: jax.random.normal(key, (x.size, 3)), lambda w, x: x @ w)


@pytest.mark.slow
def test_training_starts_where_it_is_told_or_where_the_key_says(people):
  still = dataclasses.replace(SGD, learning_rate=1e-12)
  drawn = fit(LINEAR, models.cross_entropy, people, still, key=KEY).params
  own = LINEAR.init(jax.random.fold_in(KEY, 0), people.x[0])
  close(drawn, own, atol=1e-8)
  found = fit(LINEAR, models.cross_entropy, people, still, key=KEY, initial=2 * own).params
  close(found, 2 * own, atol=1e-8)


def decaying(rate):
  return optax.sgd(optax.exponential_decay(rate, 50, 0.5))


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [optax.adam, decaying])
def test_any_optimizer_learns(people, optimizer):
  config = FitConfig(learning_rate=0.1, steps=80, batch_size=None, optimizer=optimizer)
  found = fit(models.logistic(3), models.cross_entropy, people, config, key=KEY)
  assert found.trace.loss.shape == found.trace.grad_norm.shape == (80,)
  assert found.trace.loss[-1] < 0.8 * found.trace.loss[0]


def test_other_numbers_of_the_same_shape_compile_nothing(make_people):
  def train(seed, **changes):
    return fit(
      models.logistic(3),
      models.cross_entropy,
      make_people(seed=seed),
      dataclasses.replace(SGD, **changes),
      key=jax.random.key(seed),
    )

  train(0)
  size = train_scan._cache_size()
  train(1, learning_rate=0.7, weight_decay=0.1)
  train(2, learning_rate=0.1)
  assert train_scan._cache_size() == size
  train(0, steps=4)
  assert train_scan._cache_size() == size + 1  # or nothing is counted


@pytest.mark.slow
def test_one_person_can_be_trained_on(make_people):
  config = FitConfig(steps=3, batch_size=1)
  found = fit(models.logistic(3), models.cross_entropy, make_people(1), config, key=KEY)
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_soft_and_real_targets_are_not_class_ids(people):
  soft = people._replace(y=np.full((people.size, 3), 1 / 3, np.float32))
  real = people._replace(y=np.linspace(-5, 5, people.size, dtype=np.float32))
  config = FitConfig(batch_size=8)
  config.check(models.logistic(3), models.soft_cross_entropy, soft)
  config.check(models.logistic(1), _losses.squared, real)


@pytest.mark.parametrize(
  ("config", "told"),
  [
    (FitConfig(batch_size=61), r"batch_size=61 .* most 60; batch_size=None"),
    (FitConfig(batch_size=0), "batch_size=0 must be at least 1"),
    (FitConfig(batch_size=2.5), "batch_size=2.5 must be a whole number"),
    (FitConfig(steps=0), "steps=0 must be at least 1"),
    (FitConfig(learning_rate=0.0), "learning_rate=0.0 must be above 0"),
    (FitConfig(learning_rate=np.nan), "learning_rate=nan must be above 0"),
    (FitConfig(weight_decay=-1), "weight_decay=-1 must be 0 or above"),
    (FitConfig(proximity=0.1), "proximity needs a center; pass anchor="),
    (FitConfig(sampling="all"), "use one of shuffle, poisson"),
    (FitConfig(loop="fast"), "use one of auto, scan, step"),
  ],
)
def test_impossible_settings_are_refused(people, config, told):
  if config.batch_size == 256:
    config = dataclasses.replace(config, batch_size=8)
  with pytest.raises(checks.ArgumentError, match=told):
    fit(models.logistic(3), models.cross_entropy, people, config, key=KEY)


@pytest.mark.slow
def test_adam_reaches_scikit_learn_s_accuracy_on_adult(data_root):
  from sklearn.exceptions import ConvergenceWarning
  from sklearn.neural_network import MLPClassifier

  from jaxfair import data

  prepared = data.prepare(data.load("adult", group="sex", root=data_root), (0.75, 0.25), key=KEY)
  train, test = prepared.parts
  epochs, batch = 6, 256
  theirs = MLPClassifier((64, 64), batch_size=batch, max_iter=epochs, random_state=0, alpha=0.0)
  with pytest.warns(ConvergenceWarning):
    theirs.fit(train.x, train.y)
  config = FitConfig(learning_rate=1e-3, steps=epochs * (train.size // batch), batch_size=batch)
  model = models.mlp((64, 64), 2)
  ours = fit(model, models.cross_entropy, train, config, key=KEY)
  predicted = np.argmax(model.apply(ours.params, test.x), -1)
  accuracy = np.mean(predicted == test.y)
  assert accuracy > 0.83
  assert abs(accuracy - theirs.score(test.x, test.y)) < 0.01
