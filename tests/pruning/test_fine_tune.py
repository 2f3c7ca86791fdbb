"""Fine-tuning moves what is kept and nothing else."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import models, pruning, training
from jaxfair.training._program import descend, train_scan

PEOPLE = people(n=32)
MODEL = models.mlp((6,), 3)
LOSS = models.cross_entropy
START = moved(MODEL, PEOPLE)
CONFIG = training.FitConfig(learning_rate=0.1, weight_decay=0.01, steps=8, batch_size=16)
SGD = functools.partial(optax.sgd, momentum=0.9)


@pytest.fixture(scope="module")
def tuned():
  masks = pruning.magnitude_masks(START, 0.6)
  fit = pruning.fine_tune(MODEL, LOSS, PEOPLE, CONFIG, params=START, masks=masks, key=KEY)
  return masks, fit


@pytest.mark.slow
def test_what_was_removed_stays_zero_and_the_rest_moves(tuned):
  masks, fit = tuned
  for name, leaf in jax.tree_util.tree_leaves_with_path(fit.params):
    keep = functools.reduce(lambda t, k: t[k.key], name, masks)
    start = functools.reduce(lambda t, k: t[k.key], name, START)
    assert np.all(np.asarray(leaf)[~np.asarray(keep)] == 0)
    assert np.all((np.asarray(leaf) != np.asarray(start))[np.asarray(keep)])


@pytest.mark.slow
def test_without_a_mask_it_is_plain_training():
  whole = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), START)
  held = pruning.fine_tune(MODEL, LOSS, PEOPLE, CONFIG, params=START, masks=whole, key=KEY)
  plain = training.fit(MODEL, LOSS, PEOPLE, CONFIG, key=KEY, initial=START)
  # Another program, which may round its sums in another order.
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), held.params, plain.params
  )


@pytest.mark.slow
def test_the_kept_weights_follow_the_gradient_of_the_pruned_network():
  config = training.FitConfig(learning_rate=0.5, steps=1, batch_size=None, optimizer=SGD)
  masks = pruning.magnitude_masks(START, 0.6)
  fit = pruning.fine_tune(MODEL, LOSS, PEOPLE, config, params=START, masks=masks, key=KEY)
  pruned = pruning.apply_masks(START, masks)
  slope = jax.jit(jax.grad(lambda p: jnp.mean(LOSS(MODEL.apply(p, PEOPLE.x), PEOPLE.y))))(pruned)
  expected = jax.tree.map(
    lambda p, g, keep: np.where(keep, np.asarray(p) - 0.5 * np.asarray(g), 0.0),
    pruned,
    slope,
    masks,
  )
  for found, wanted in zip(jax.tree.leaves(fit.params), jax.tree.leaves(expected), strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_optimizers_neither_move_nor_see_what_is_gone():
  params = {"w": jnp.float32([[0.0, 2.0]])}
  gradient = {"w": jnp.float32([[100.0, 3.0]])}

  def shifting(rate):
    return optax.chain(
      optax.clip_by_global_norm(rate),
      optax.stateless(lambda u, p: jax.tree.map(lambda g: g + 1.0, u)),
    )

  config = training.FitConfig(learning_rate=6.0, optimizer=shifting)
  mask = {"w": jnp.array([[False, True]])}
  after, _ = descend(config, gradient, shifting(6.0).init(params), params, mask=mask)
  np.testing.assert_allclose(after["w"], [[0.0, 6.0]])


@pytest.mark.slow
def test_private_training_keeps_a_mask():
  masks = pruning.magnitude_masks(START, 0.6)
  config = training.DpSgdConfig(steps=3, batch_size=8)
  fit = training.dp_sgd(MODEL, LOSS, PEOPLE, config, key=KEY, initial=START, mask=masks)
  pruned = pruning.apply_masks(fit.params, masks)
  jax.tree.map(np.testing.assert_array_equal, fit.params, pruned)


def test_one_program_serves_every_mask():
  train_scan.clear_cache()
  for rate in (0.3, 0.7):
    pruning.fine_tune(
      MODEL, LOSS, PEOPLE, CONFIG, params=START, masks=pruning.magnitude_masks(START, rate), key=KEY
    )
  assert train_scan._cache_size() == 1
