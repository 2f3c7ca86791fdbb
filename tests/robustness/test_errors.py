"""Errors by group, counted by hand and from attacks."""

import jax
import numpy as np
import pytest

from jaxfair import checks, models, robustness
from jaxfair.robustness import _attack_many, _errors
from jaxfair.types import Examples

WRONG = np.array([1, 0, 0, 0, 1, 0], bool)
REACHED = np.array([[0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0]], bool)
GROUP = np.array([0, 0, 0, 1, 1, 1])


@pytest.mark.slow
def test_by_hand():
  found = _errors.errors_of(WRONG, REACHED, GROUP, num_groups=3)
  np.testing.assert_allclose(found.natural.group, [1 / 3, 1 / 3, np.nan], rtol=1e-6)
  assert float(found.natural.population) == pytest.approx(1 / 3)
  np.testing.assert_allclose(
    found.boundary.group, [[0, 0, np.nan], [1 / 3, 1 / 3, np.nan]], rtol=1e-6
  )
  np.testing.assert_allclose(found.robust.population, [1 / 3, 2 / 3], rtol=1e-6)
  assert float(found.violation) == pytest.approx(0.0, abs=1e-7)


def test_the_violation_is_the_largest_gap():
  found = _errors.errors_of(np.array([1, 1, 0, 0, 0, 0]), REACHED, GROUP, num_groups=2)
  assert float(found.violation) == pytest.approx(1 / 3)


@pytest.fixture(scope="module")
def linear():
  rng = np.random.default_rng(0)
  model = models.logistic(3)
  params = {"w": rng.normal(size=(5, 3)).astype(np.float32), "b": np.zeros(3, np.float32)}
  x = rng.normal(size=(300, 5)).astype(np.float32)
  y = np.asarray(models.predict(model, params, x)).copy()
  y[:60] = (y[:60] + 1) % 3
  return model, params, Examples(x, y, (np.arange(300) % 2).astype(np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("ball", [robustness.LINF, robustness.L2])
def test_attacks_find_the_exact_errors_of_a_linear_model(linear, ball):
  model, params, people = linear
  epsilons = (0.0, 0.2, 0.5)
  # A linear model's distance to the boundary: gaps of logits over dual norms of slopes.
  logits = people.x @ params["w"]
  best = logits.argmax(axis=1)
  slopes = params["w"].T[best][:, None] - params["w"].T
  ahead = logits.max(axis=1, keepdims=True) - logits
  length = np.linalg.norm(slopes, ball.dual, axis=2)
  away = np.divide(ahead, length, out=np.full_like(ahead, np.inf), where=length > 0).min(axis=1)
  reached = away < np.array(epsilons)[:, None]
  exact = _errors.errors_of(best != people.y, reached, people.group, num_groups=2)
  how = robustness.pgd(ball, input_range=(-30.0, 30.0), steps=20)
  found = robustness.attack(
    model,
    params,
    people,
    how,
    epsilons=epsilons,
    key=jax.random.key(0),
    loss=robustness.negative_margin,
  )
  counted = _errors.attack_errors(model, params, people, found, num_groups=2)
  np.testing.assert_allclose(counted.natural.group, exact.natural.group)
  # The nearest boundary need not be the attack's class of the moment.
  slack = 2 / 150
  assert (counted.robust.group <= exact.robust.group + 1e-6).all()
  assert (counted.robust.group >= exact.robust.group - slack).all()
  whole = counted.natural.group + counted.boundary.group
  np.testing.assert_allclose(counted.robust.group, whole, atol=1e-6)
  assert float(exact.natural.population) == pytest.approx(0.2)


def test_other_people_than_the_attacked_are_refused(linear):
  model, params, people = linear
  nobody = _attack_many.Attacked(*3 * [np.zeros((1, 7))])
  with pytest.raises(checks.ArgumentError, match="that were attacked"):
    _errors.attack_errors(model, params, people, nobody, num_groups=2)


def test_group_ids_beyond_the_groups_are_refused():
  with pytest.raises(checks.ArgumentError, match="group has ids"):
    _errors.errors_of(WRONG, REACHED, GROUP, num_groups=1)
