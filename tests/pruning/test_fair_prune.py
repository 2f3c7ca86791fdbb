"""Fair pruning: masks hold, gaps shrink, factors are what they are called."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, ZOO, moved, people
from jaxfair import analysis, checks, models, pruning, training, tree
from jaxfair.types import Examples

LOSS = models.cross_entropy


def unequal():
  """Two groups whose label depends on x in opposite ways; one is small."""
  rng = np.random.default_rng(0)
  group = (np.arange(120) >= 100).astype(np.int32)
  x = rng.normal(size=(120, 3)).astype(np.float32)
  y = (x[:, 0] * np.where(group, -1, 1) + 0.5 * x[:, 1] > 0).astype(np.int32)
  return Examples(x, y, group)


PEOPLE = unequal()
MODEL = models.mlp((8,), 2)
STAGE = training.LagrangianConfig(
  learning_rate=0.02, rounds=10, steps_per_round=10, batch_size=None,
  dual_rate=1.0,
)  # fmt: skip
CONFIG = pruning.FairPruneConfig(
  rates=(0.3, 0.7), fair="never", train=STAGE, tune=STAGE
)


@pytest.fixture(scope="module")
def never():
  return pruning.fair_prune(MODEL, LOSS, PEOPLE, CONFIG, num_groups=2, key=KEY)


def gaps(params):
  found = pruning.look_many(MODEL, LOSS, params, PEOPLE, num_groups=2)
  return np.abs(found.loss.group[:, 0] - found.loss.group[:, 1])


def test_pruned_weights_stay_zero_at_every_rate(never):
  for keep, leaf in zip(
    jax.tree.leaves(never.masks), jax.tree.leaves(never.params), strict=True
  ):
    assert np.all(np.asarray(leaf)[~np.asarray(keep)] == 0)
  zeros = [pruning.sparsity(tree.take(never.params, i)).kept for i in (0, 1)]
  # 3 x 8 + 8 x 2 = 40 weights; 12 or 28 are gone, the biases stay.
  assert zeros == [10 + 40 - 12, 10 + 40 - 28]


def test_equal_losses_after_pruning_shrink_the_gap_of_losses(never):
  config = dataclasses.replace(CONFIG, fair="after")
  fair = pruning.fair_prune(
    MODEL, LOSS, PEOPLE, config, num_groups=2, key=KEY, dense=never.dense
  )
  jax.tree.map(np.testing.assert_array_equal, fair.masks, never.masks)
  assert np.all(gaps(never.params) > 0.3)
  assert np.all(gaps(fair.params) < 0.5 * gaps(never.params))


def test_the_full_constraint_is_made_of_the_factors():
  model, some = ZOO["tanh"], people()
  params = moved(model, some)
  constraint = pruning.full(model, LOSS, 3, steps=35)
  measure = jax.jit(constraint)
  found = measure(params, some)
  hessians = analysis.group_hessians(model, LOSS, params, some, num_groups=3)
  gradients = analysis.group_gradients(model, LOSS, params, some, num_groups=3)
  norms = np.asarray(jax.vmap(tree.norm)(gradients.group))
  tops = np.linalg.eigvalsh(np.asarray(hessians.group[:2], np.float64))[:, -1]
  top = np.linalg.eigvalsh(np.asarray(hessians.population, np.float64))[-1]
  everybody = float(tree.norm(gradients.population))
  np.testing.assert_allclose(
    found.value[:2], np.abs(norms[:2] - everybody), rtol=1e-3
  )
  np.testing.assert_allclose(found.value[3:5], np.abs(tops - top), rtol=1e-3)
  np.testing.assert_array_equal(found.value[jnp.array([2, 5])], 0)  # empty
  np.testing.assert_array_equal(
    found.people[:3], np.bincount(some.group, minlength=3)
  )

  # Its gradient, along a direction, against differences of the values.
  rng = np.random.default_rng(1)
  way = jax.tree.map(
    lambda leaf: np.float32(rng.normal(size=leaf.shape)), params
  )
  step = 2e-3
  sides = [
    measure(tree.add(params, tree.scale(sign * step, way)), some).value
    for sign in (1, -1)
  ]
  slope = jax.jit(jax.jacrev(lambda p: constraint(p, some).value))(params)
  along = sum(
    np.tensordot(s, w, axes=w.ndim)
    for s, w in zip(jax.tree.leaves(slope), jax.tree.leaves(way), strict=True)
  )
  np.testing.assert_allclose(
    along, (sides[0] - sides[1]) / (2 * step), rtol=0.02, atol=2e-3
  )


def test_what_cannot_be_done_is_refused():
  with pytest.raises(checks.ArgumentError, match="fair='sometimes'"):
    pruning.FairPruneConfig(fair="sometimes")
  with pytest.raises(checks.ArgumentError, match="must be in"):
    pruning.FairPruneConfig(rates=(1.0,))
  with pytest.raises(checks.ArgumentError, match="trained already"):
    pruning.fair_prune(
      MODEL, LOSS, PEOPLE, pruning.FairPruneConfig(fair="both"), num_groups=2,
      key=KEY, dense={},
    )  # fmt: skip
