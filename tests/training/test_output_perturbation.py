"""Output perturbation: sensitivity by brute force, noise, limits."""

import dataclasses
import math
import os
import sys

import jax
import numpy as np
import pytest

from helpers import bit_attack
from helpers.crowds import crowd
from jaxfair import accounting, checks, models
from jaxfair.models import _losses
from jaxfair.privacy import exact
from jaxfair.training import OutputPerturbationConfig, output_perturbation
from jaxfair.training._erm import SolveConfig, solve
from jaxfair.training._output_perturbation import perturbed
from jaxfair.types import Examples

CONFIG = OutputPerturbationConfig(weight_decay=0.1)


def people(count=50, seed=0, classes=2):
  return crowd(count, 3, classes=classes, scale=3, seed=seed)


def release(examples, config=CONFIG, seed=0, classes=2):
  return output_perturbation(
    models.logistic(classes), models.cross_entropy, examples, config, key=jax.random.key(seed)
  )


def leaves(value):
  return np.concatenate([np.ravel(v) for v in jax.tree.leaves(value)])


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_no_replacement_moves_the_optimum_further_than_the_sensitivity(classes):
  """Brute force over adversarial replacements: far, opposite, relabeled."""
  examples = people(12, classes=classes)
  optimum = leaves(release(examples, classes=classes).trace.params)
  bound = CONFIG.sensitivity(models.cross_entropy, 12)
  moved = []
  for x in (1e6 * np.eye(3)[0], -1e6 * np.ones(3), np.zeros(3)):
    for y in range(classes):
      for row in (0, 5):
        other = Examples(examples.x.copy(), examples.y.copy(), examples.group)
        other.x[row], other.y[row] = x, y
        found = leaves(release(other, classes=classes).trace.params)
        moved.append(np.linalg.norm(found - optimum))
  assert max(moved) <= bound
  assert max(moved) > 0.1 * bound  # the bound is not idle either


@pytest.mark.slow
def test_rows_beyond_the_ball_are_projected_into_it():
  """Else their gradients would exceed what the sensitivity counts on."""
  far = people(12)
  far = far._replace(x=far.x * 100)
  norms = np.linalg.norm(far.x, axis=1, keepdims=True)
  near = far._replace(x=far.x * (CONFIG.row_norm / norms))
  one, two = (leaves(release(who).trace.params) for who in (far, near))
  np.testing.assert_allclose(one, two, atol=1e-4)


def test_sensitivity_by_hand():
  config = OutputPerturbationConfig(weight_decay=0.5, row_norm=2.0, tolerance=1e-6)
  gradient = math.sqrt(2) * math.sqrt(5)
  expected = 2 * gradient / (100 * 0.5) + 2e-6 / 0.5 + 2 * 2**-24 * gradient / 0.5
  assert config.sensitivity(models.cross_entropy, 100) == pytest.approx(expected)


@pytest.mark.slow
def test_noise_is_the_analytic_gaussian():
  examples = people()
  found = release(examples)
  expected = accounting.gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=found.trace.sensitivity)
  # The grid, and the distance to the continuous law, cost next to nothing.
  assert expected <= found.trace.sigma <= expected * (1 + 1e-9)
  noise = (
    np.stack(
      [leaves(release(examples, seed=s).params) - leaves(found.trace.params) for s in range(60)]
    )
    / expected
  )
  count = noise.size
  assert abs(noise.mean()) < 6 / math.sqrt(count)
  assert abs(noise.std() - 1) < 6 / math.sqrt(2 * count)


def neighbors():
  """Two data sets that differ in one person."""
  examples = people(400)
  other = examples._replace(x=examples.x.copy(), y=examples.y.copy())
  other.x[0], other.y[0] = -examples.x[0], 1 - examples.y[0]
  return examples, other


@pytest.mark.slow
def test_released_bits_do_not_tell_who_was_there():
  """The observer is right about single releases of float noise, not of ours."""
  config = dataclasses.replace(CONFIG, epsilon=0.1)
  optima = [release(who, config).trace for who in neighbors()]
  values = [leaves(optimum.params) for optimum in optima]
  sigma = optima[0].sigma
  assert np.all(values[0] != values[1])
  sparse = bit_attack.of_sparse_noise(values, sigma, 100)
  assert bit_attack.wins(sparse, values, np.float32(sigma)) >= 190
  sources = [exact.seeded(seed) for seed in range(1000)]
  ours = [
    [leaves(perturbed(optimum.params, sigma=sigma, source=source)) for source in sources[i::2]]
    for i, optimum in enumerate(optima)
  ]
  assert bit_attack.at_chance(bit_attack.wins(ours, values, sigma), 1000)


def test_a_release_takes_its_bits_from_the_operating_system(monkeypatch):
  asked = []
  module = sys.modules["jaxfair.training._output_perturbation"]

  def counted(params, *, sigma, source):
    asked.append(source)
    return perturbed(params, sigma=sigma, source=source)

  monkeypatch.setattr(module, "perturbed", counted)
  first, second = (
    output_perturbation(models.logistic(2), models.cross_entropy, people()) for _ in range(2)
  )
  assert asked == [os.urandom, os.urandom]
  assert (leaves(first.params) != leaves(second.params)).all()
  np.testing.assert_array_equal(*map(leaves, (first[1][0], second[1][0])))
  same = leaves(release(people(), seed=3).params)
  np.testing.assert_array_equal(same, leaves(release(people(), seed=3).params))


def test_hardly_any_noise_is_the_solution():
  config = dataclasses.replace(CONFIG, epsilon=1e6)
  examples = people()
  norms = np.linalg.norm(examples.x, axis=1, keepdims=True)
  bounded = examples._replace(x=examples.x / np.maximum(norms, 1))
  solution = solve(
    models.logistic(2),
    models.cross_entropy,
    bounded,
    SolveConfig(weight_decay=0.1),
    key=jax.random.key(0),
  )
  found = release(examples, config)
  np.testing.assert_allclose(leaves(found.trace.params), leaves(solution.params), atol=1e-6)
  np.testing.assert_allclose(
    leaves(found.params), leaves(solution.params), atol=6 * found.trace.sigma
  )


def test_broken_rows_count_as_zero():
  examples = people()
  broken = examples._replace(x=examples.x.copy(), y=examples.y.copy())
  broken.x[3], broken.y[7] = np.nan, 9
  zeroed = examples._replace(x=examples.x.copy(), y=examples.y.copy())
  zeroed.x[[3, 7]], zeroed.y[[3, 7]] = 0, 0
  found = release(broken)
  assert found.trace.num_broken == 2
  np.testing.assert_allclose(leaves(found.params), leaves(release(zeroed).params), atol=1e-7)


@pytest.mark.parametrize(
  ("changes", "told"),
  [
    ({"epsilon": 0.0}, "epsilon=0.0"),
    ({"delta": 1.0}, "delta=1.0"),
    ({"weight_decay": 0.0}, "without it one person can move the optimum"),
    ({"row_norm": -1.0}, "row_norm=-1.0"),
  ],
)
def test_bad_settings_are_refused(changes, told):
  with pytest.raises(checks.ArgumentError) as caught:
    release(people(), dataclasses.replace(CONFIG, **changes))
  assert told in str(caught.value)


def test_unknown_losses_and_models_are_refused():
  with pytest.raises(checks.ArgumentError, match="logit_lipschitz"):
    output_perturbation(
      models.logistic(2), _losses.exponential, people(), CONFIG, key=jax.random.key(0)
    )
  with pytest.raises(checks.ArgumentError, match=r"models\.logistic"):
    output_perturbation(
      models.mlp((3,), 2), models.cross_entropy, people(), CONFIG, key=jax.random.key(0)
    )
