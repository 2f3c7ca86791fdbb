"""Students: hard labels, soft labels, some labels, many seeds."""

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest

from jaxfair import checks, models, pate, training, tree
from jaxfair.models import _losses
from jaxfair.pate import _student
from jaxfair.training import _ensembles
from jaxfair.types import Examples

N, C = 40, 3
MODEL = models.logistic(C)
KEYS = jax.random.split(jax.random.key(2), 4)
CONFIG = training.FitConfig(
  learning_rate=0.2, steps=300, batch_size=None, weight_decay=0.02, optimizer=optax.sgd
)


@pytest.fixture
def x():
  return np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)


@pytest.fixture
def labels():
  return np.random.default_rng(1).integers(0, C, N).astype(np.int32)


def train(x, labels, config=CONFIG, keys=KEYS, loss=models.cross_entropy):
  return pate.train_student(MODEL, loss, x, labels, config, keys=keys).params


def same(a, b, **tolerance):
  tolerance = {"rtol": 1e-5, "atol": 1e-6} | tolerance
  for ours, theirs in zip(*map(jax.tree.leaves, (a, b)), strict=True):
    np.testing.assert_allclose(ours, theirs, **tolerance)


def one_hot(labels):
  return np.eye(C, dtype=np.float32)[labels]


def test_with_all_labels_it_is_a_plain_fit(x, labels):
  people = Examples(x, labels, np.zeros(N, np.int32))
  expected = training.fit_many(MODEL, models.cross_entropy, people, CONFIG, keys=KEYS)
  same(train(x, labels), expected.params, rtol=0, atol=0)


def test_one_hot_weights_are_hard_labels(x, labels):
  same(train(x, one_hot(labels)), train(x, labels))


def test_weights_are_the_derivative_s_weights(x):
  """One step of descent against the gradient written out by hand."""
  weights = np.random.default_rng(3).normal(size=(N, C)).astype(np.float32)
  config = dataclasses.replace(CONFIG, steps=1)
  params = tree.take(train(x, weights, config), 0)
  # At zero the softmax is 1/C: d/dz of -sum_c a_c log p_c is p sum(a) - a.
  slope = weights.sum(axis=1, keepdims=True) / C - weights
  np.testing.assert_allclose(params["w"], -0.2 * x.T @ slope / N, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(params["b"], -0.2 * slope.mean(axis=0), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_unanswered_queries_are_left_out(x, labels):
  known = np.arange(N) % 3 != 0
  masked = np.where(known, labels, pate.NO_ANSWER)
  same(train(x, masked), train(x[known], labels[known]))
  # A mask for each student: the same mean, by weights instead.
  many = np.stack([masked, labels, masked, np.where(known, -1, labels)])
  found = train(x, many)
  for i, rows in ((0, known), (1, known | True), (3, ~known)):
    alone = train(x[rows], labels[rows])
    same(tree.take(found, i), tree.take(alone, i))


def test_every_student_may_have_its_own_labels(x, labels):
  many = np.stack([np.roll(labels, i) for i in range(4)])
  found = train(x, many)
  for i in (1, 3):
    same(tree.take(found, i), tree.take(train(x, many[i]), i))


@pytest.mark.slow
def test_other_losses_take_weights_too(x):
  """sum_c a_c l(f, c), for a loss without a soft form of its own."""
  weights = np.random.default_rng(4).dirichlet(np.ones(C), N)
  weights = weights.astype(np.float32)
  logits = np.random.default_rng(5).normal(size=(N, C)).astype(np.float32)
  for loss in (_losses.squared, _losses.ramp):
    expected = sum(weights[:, c] * np.asarray(loss(logits, np.full(N, c))) for c in range(C))
    found = _student.weighted(loss)(logits, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
  assert _student.weighted(_losses.ramp) == _student.weighted(_losses.ramp)


@pytest.mark.slow
def test_lambda_is_half_the_weight_decay(x, labels):
  """The optimum of (1/n) sum l + lambda ||theta||^2 has slope -2 lambda."""
  lam = 0.3
  config = dataclasses.replace(CONFIG, weight_decay=2 * lam)
  params = tree.take(train(x, labels, config), 0)

  def mean_loss(p):
    return models.cross_entropy(MODEL.apply(p, x), labels).mean()

  slope = jax.grad(mean_loss)(params)
  same(slope, tree.scale(-2 * lam, params), atol=1e-5)


def test_other_labels_compile_nothing(x, labels):
  many = functools.partial(train, x)
  many(np.stack([labels] * 4))
  size = _ensembles._mapped._cache_size()
  many(np.stack([labels[::-1]] * 4))
  assert _ensembles._mapped._cache_size() == size


@pytest.mark.parametrize(
  ("change", "told"),
  [
    (lambda y: y[:-1], r"labels has shape \(39,\) for 40 examples and 4 keys"),
    (lambda y: np.stack([y] * 3), r"labels has shape \(3, 40\)"),
    (lambda y: one_hot(y)[:, :2], "weights for 2 classes, but the model has 3"),
    (lambda y: y + 1, "labels has ids from 1 to 3"),
    (lambda y: y * 0 - 1, "no query was answered"),
  ],
)
def test_what_is_no_label_is_refused(x, labels, change, told):
  with pytest.raises(checks.ArgumentError, match=told):
    train(x, change(labels))
