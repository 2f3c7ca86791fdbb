"""Excess risk by hand, against Theorem 3.1, and its intervals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import checks, models, tree
from jaxfair.analysis import excess_risk, hessian_trace, predicted_excess
from jaxfair.analysis._excess_risk import _folded
from jaxfair.fairness._intervals import Interval
from jaxfair.privacy import noise

PEOPLE = people()
MODEL = models.logistic(3)


def around(params, sigma, count):
  keys = jax.random.split(KEY, count)
  return jax.vmap(lambda k: noise.gaussian(params, sigma=sigma, key=k))(keys)


@pytest.mark.slow
def test_by_hand():
  optimum = moved(MODEL, PEOPLE)
  private = around(optimum, 0.3, 5)
  found = excess_risk(MODEL, models.cross_entropy, private, optimum, PEOPLE, num_groups=2)

  def losses(p):
    return np.asarray(models.cross_entropy(MODEL.apply(p, PEOPLE.x), PEOPLE.y), np.float64)

  each = np.stack([losses(tree.take(private, i)) for i in range(5)])
  excess = each - losses(optimum)
  own = excess[:, PEOPLE.group == 1].mean(axis=1)
  everybody = excess.mean(axis=1)
  np.testing.assert_allclose(found.loss.per_training.group[:, 1], own, rtol=1e-3, atol=1e-6)
  np.testing.assert_allclose(found.loss.group.estimate[1], own.mean(), rtol=1e-3)
  np.testing.assert_allclose(found.loss.gap.estimate[1], abs((own - everybody).mean()), rtol=1e-3)
  half = 2.776445 * own.std(ddof=1) / np.sqrt(5)
  np.testing.assert_allclose(found.loss.group.high[1], own.mean() + half, rtol=1e-3)
  wrong = np.argmax(MODEL.apply(tree.take(private, 0), PEOPLE.x), 1) != PEOPLE.y
  before = np.argmax(MODEL.apply(optimum, PEOPLE.x), 1) != PEOPLE.y
  np.testing.assert_allclose(
    found.zero_one.per_training.population[0], wrong.mean() - before.mean(), atol=1e-6
  )


@pytest.mark.slow
def test_small_noise_costs_what_the_trace_says():
  optimum = moved(MODEL, PEOPLE)
  sigma = 0.02
  # Both signs of every noise: what is odd in it, the slope, cancels.
  pairs = around(optimum, sigma, 4000)
  mirrored = jax.tree.map(lambda o, p: 2 * o - p, optimum, pairs)
  private = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), pairs, mirrored)
  found = excess_risk(
    MODEL, models.cross_entropy, private, optimum, PEOPLE, num_groups=2
  ).loss.per_training
  both = (found.group[:4000] + found.group[4000:]) / 2
  mean, error = both.mean(axis=0), both.std(axis=0) / np.sqrt(4000)
  trace = hessian_trace(MODEL, models.cross_entropy, optimum, PEOPLE, num_groups=2).traces
  expected = np.asarray(predicted_excess(trace, sigma=sigma).group)
  # The fourth order is sigma^2 of the second, times at most a few dozen.
  assert np.all(np.abs(mean - expected) < 5.5 * error + 0.02 * expected)


def test_gaps_are_folded_at_zero():
  signed = Interval(
    np.array([1.0, -2.0, 0.5]), np.array([0.5, -3.0, -1.0]), np.array([1.5, -1.0, 2.0]), 0.95, 0
  )
  found = _folded(signed)
  np.testing.assert_array_equal(found.estimate, [1.0, 2.0, 0.5])
  np.testing.assert_array_equal(found.low, [0.5, 1.0, 0.0])
  np.testing.assert_array_equal(found.high, [1.5, 3.0, 2.0])


def test_one_optimum_per_training():
  optimum = moved(MODEL, PEOPLE)
  same = tree.stack([optimum] * 4)
  found = excess_risk(MODEL, models.cross_entropy, same, same, PEOPLE, num_groups=2).loss
  np.testing.assert_array_equal(found.gap.low, 0.0)
  np.testing.assert_array_equal(found.group.estimate, 0.0)


def test_refuses_parameters_that_do_not_fit():
  optimum = moved(MODEL, PEOPLE)
  with pytest.raises(checks.ArgumentError, match="one leading axis"):
    excess_risk(
      MODEL,
      models.cross_entropy,
      tree.stack([tree.stack([optimum])]),
      optimum,
      PEOPLE,
      num_groups=2,
    )
  with pytest.raises(checks.ArgumentError, match="different trees"):
    excess_risk(MODEL, models.cross_entropy, {"w": optimum["w"]}, optimum, PEOPLE, num_groups=2)
