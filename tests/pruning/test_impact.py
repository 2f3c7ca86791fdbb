"""Impact over rates against one rate, one group and one Hessian at a time."""

import jax
import numpy as np
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import analysis, checks, models, pruning, tree
from jaxfair.pruning import _group_profile
from jaxfair.types import Examples

PEOPLE = people(n=40)
MODEL = models.mlp((5,), 3, "tanh")
LOSS = models.cross_entropy
PARAMS = moved(MODEL, PEOPLE)
RATES = (0.0, 0.4, 0.8)
NAMES = _group_profile.NonPrivateProfile._fields


@pytest.fixture(scope="module")
def found():
  return pruning.impact(MODEL, LOSS, PARAMS, PEOPLE, num_groups=2, rates=RATES, key=KEY, steps=38)


def pruned_at(rate):
  return pruning.apply_masks(PARAMS, pruning.magnitude_masks(PARAMS, rate))


@pytest.mark.slow
def test_each_number_is_that_of_the_group_alone(found):
  params = pruned_at(RATES[2])
  slope = jax.jit(jax.grad(lambda p, w: w @ LOSS(MODEL.apply(p, PEOPLE.x), PEOPLE.y)))
  for a in range(2):
    own = PEOPLE.take(PEOPLE.group == a)
    logits = np.asarray(MODEL.apply(params, own.x), np.float64)
    chance = np.exp(logits - logits.max(1, keepdims=True))
    chance /= chance.sum(1, keepdims=True)
    ordered = np.sort(chance, axis=1)
    weights = np.float32((PEOPLE.group == a) / len(own.y))
    expected = {
      "loss": -np.log(chance[np.arange(len(own.y)), own.y]).mean(),
      "accuracy": (logits.argmax(1) == own.y).mean(),
      "distance": (ordered[:, -1] - ordered[:, -2]).mean(),
      "gradient_norm": tree.norm(slope(params, weights)),
    }
    for name, truth in expected.items():
      value = getattr(found.after, name).group[2, a]
      np.testing.assert_allclose(value, truth, rtol=1e-4)


@pytest.mark.slow
def test_the_top_eigenvalues_are_those_of_the_networks(found):
  alone = analysis.top_eigenvalue(
    MODEL, LOSS, pruned_at(RATES[2]), PEOPLE, num_groups=2, key=KEY, steps=38
  ).values
  np.testing.assert_allclose(found.after.top_eigenvalue.group[2], alone.group, rtol=1e-4)
  np.testing.assert_allclose(
    found.after.top_eigenvalue.group[0], found.before.top_eigenvalue.group, rtol=1e-5
  )


def test_nothing_removed_costs_nothing(found):
  assert found.removed[0] == 0
  assert found.moved[0] == 0
  np.testing.assert_allclose(found.excess_loss.group[0], 0, atol=1e-6)
  assert found.accuracy_cost.population[0] == 0


def test_the_gaps_are_differences_of_groups(found):
  excess = np.asarray(found.after.loss.group - found.before.loss.group)
  np.testing.assert_allclose(found.unfairness, np.abs(excess[:, 0] - excess[:, 1]), atol=1e-7)
  right = np.asarray(found.after.accuracy.group)
  np.testing.assert_allclose(found.accuracy_gap, np.abs(right[:, 0] - right[:, 1]), atol=1e-7)
  change = tree.subtract(pruned_at(0.8), PARAMS)
  np.testing.assert_allclose(found.moved[2], tree.norm(change), rtol=1e-6)
  gone = sum(np.count_nonzero(leaf == 0) for leaf in jax.tree.leaves(pruned_at(0.8)))
  assert found.removed[2] == pytest.approx(gone / tree.size(PARAMS))


@pytest.mark.slow
def test_it_may_be_traced_over_networks_and_an_empty_group_is_nan(found):
  both = tree.stack([PARAMS, tree.scale(2.0, PARAMS)])
  many = jax.jit(
    jax.vmap(lambda p: pruning.impact(MODEL, LOSS, p, PEOPLE, num_groups=3, rates=RATES))
  )(both)
  for a in range(2):
    np.testing.assert_allclose(
      many.excess_loss.group[0, :, a], found.excess_loss.group[:, a], rtol=1e-4, atol=1e-6
    )
  assert np.isnan(many.excess_loss.group[..., 2]).all()
  np.testing.assert_allclose(many.unfairness[0], found.unfairness, atol=1e-6)
  assert np.isnan(many.after.top_eigenvalue.group).all()  # not asked for


@pytest.mark.slow
def test_convolutions_in_chunks_are_the_same_numbers(monkeypatch):
  net = models.convnet(2, (models.Conv(3, stride=2),), ())
  rng = np.random.default_rng(0)
  images = Examples(
    rng.normal(size=(21, 6, 6, 1)).astype(np.float32),
    rng.integers(0, 2, 21).astype(np.int32),
    (np.arange(21) % 2).astype(np.int32),
  )
  params = moved(net, images)
  monkeypatch.setattr(pruning._group_profile, "CHUNK", 8)
  chunked = pruning.group_profile(net, LOSS, params, images, num_groups=2)
  monkeypatch.setattr(pruning._group_profile, "chunk_for", lambda *args: None)
  whole = pruning.group_profile(net, LOSS, params, images, num_groups=2)
  for name in NAMES[:-1]:
    np.testing.assert_allclose(getattr(chunked, name).group, getattr(whole, name).group, rtol=1e-3)


def test_curvature_of_one_person_is_refused():
  lonely = PEOPLE._replace(group=np.r_[1, np.zeros(39, np.int32)])
  with pytest.raises(checks.ArgumentError, match="at least 2"):
    pruning.group_profile(
      MODEL, LOSS, PARAMS, lonely._replace(group=lonely.group.astype(int)), num_groups=2, key=KEY
    )
  with pytest.raises(checks.ArgumentError, match="must be in"):
    pruning.impact(MODEL, LOSS, PARAMS, PEOPLE, num_groups=2, rates=(0.5, 1.0))


def test_networks_that_are_not_those_of_the_rates_are_refused():
  stacked = tree.stack([PARAMS, PARAMS])
  options = {"num_groups": 2, "rates": (0.5,)}
  with pytest.raises(checks.ArgumentError, match=r"in place of \(1, .* rates"):
    pruning.compare(MODEL, LOSS, PARAMS, stacked, PEOPLE, **options)
  with pytest.raises(checks.ArgumentError, match="after has the structure"):
    pruning.compare(MODEL, LOSS, PARAMS, {"w": 1}, PEOPLE, **options)
