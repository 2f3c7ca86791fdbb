"""Scores as votes: what one person can move, what the noise is, what it costs."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair import accounting, auditing, checks, data
from jaxfair.accounting import Budget
from jaxfair.pate import _scores
from jaxfair.pate._public_space import public_space
from jaxfair.privacy.exact import seeded
from jaxfair.types import Examples

CLASSES = 3


def people(size, seed, features=4):
  rng = np.random.default_rng(seed)
  y = rng.integers(0, CLASSES, size).astype(np.int32)
  x = rng.normal(size=(size, features)) + 2 * (np.arange(features) == y[:, None])
  return Examples(x.astype(np.float32), y, np.zeros(size, np.int32))


PUBLIC = public_space(people(30, 1).x, shrinkage=3.0)


def votes_of(private, teachers=4):
  parts = data.partition(private, teachers, key=jax.random.key(0))
  return _scores.score_votes(parts, PUBLIC, num_classes=CLASSES)


def test_scores_are_those_of_nearest_class_means():
  """One teacher, by hand: products of whitened rows with centered class means."""
  own, asked = people(12, 2), people(30, 1)
  x = asked.x.astype(np.float64)
  values, axes = np.linalg.eigh(np.cov(x.T, bias=True))
  whiten = axes / np.sqrt(values + 3.0 * values.sum() / 30)
  means = np.stack([own.x[own.y == c].astype(np.float64).mean(axis=0) for c in range(CLASSES)])
  scores = (x - x.mean(axis=0)) @ whiten @ ((means - means.mean(axis=0)) @ whiten).T
  expected = _scores.LENGTH * scores / np.linalg.norm(scores)
  np.testing.assert_allclose(votes_of(own, 1), expected, atol=1.5)


def test_one_person_moves_one_teacher_by_twice_its_length():
  """Any two people in the place of one, and how near to the bound the worst pair comes."""
  private, bound, found = people(40, 3), 2 * _scores.LENGTH, []
  for row in range(0, 40, 5):
    seen = []
    for x, y in ((1e6, 0), (-1e6, 0), (np.nan, 2), (np.inf, 0), (1e38, 1), (1e-40, 2)):
      other = private._replace(x=private.x.copy(), y=private.y.copy())
      other.x[row], other.y[row] = x, y
      seen.append(votes_of(other).astype(object))
    found += [math.isqrt(int(((one - two) ** 2).sum())) for one in seen for two in seen]
  assert max(found) <= bound
  assert max(found) > 0.999 * bound  # no slack


@pytest.mark.parametrize("scale", [5e-324, 1e-170, 1e170, 1.7e308])
def test_tiny_and_huge_scores_have_length_one(scale):
  steps = _scores._unit_vector(scale * np.array([[1.0, -1.0], [0.0, 1.0]])).astype(object)
  assert 0.999 * _scores.LENGTH**2 < (steps**2).sum() <= _scores.LENGTH**2


def test_every_teacher_has_length_one_at_most():
  for seed in range(20):
    steps = votes_of(people(12, seed), 1).astype(object)
    assert 0.999 * _scores.LENGTH**2 < (steps**2).sum() <= _scores.LENGTH**2


def test_a_vector_that_is_too_long_contributes_nothing(monkeypatch):
  monkeypatch.setattr(np.linalg, "norm", lambda values: 1.0)
  assert not _scores._unit_vector(np.ones((2, 3))).any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_contributes_nothing(value):
  private = people(40, 4)
  broken = private._replace(x=private.x.copy())
  broken.x[7] = value
  parts = data.partition(broken, 4, key=jax.random.key(0))
  bad = np.flatnonzero(~np.isfinite(parts.x).all(axis=(1, 2)))
  rest = np.setdiff1d(np.arange(4), bad)
  assert len(bad) == 1
  good = _scores.score_votes(jax.tree.map(lambda a: a[rest], parts), PUBLIC, num_classes=CLASSES)
  np.testing.assert_array_equal(votes_of(broken), good)


def test_a_part_of_one_class_contributes_nothing():
  private = people(12, 5)
  assert not votes_of(private._replace(y=np.ones(12, np.int32)), 1).any()


def test_noise_has_its_law():
  """Both noises are those that the price is computed from."""
  noise, size = _scores.ScoreNoise(1.5), 20_000
  found = noise.release(np.zeros((size, 1), np.int64), np.full(size, 7), source=seeded(0))
  a = _scores.COUNT_SHARE
  expected = {
    "scores": 2 * 1.5 / math.sqrt(1 - a),
    "class_counts": math.sqrt(2) * 1.5 / math.sqrt(a),
  }
  for name, sigma in expected.items():
    values = getattr(found, name).ravel() - (7 if name == "class_counts" else 0)
    assert values.std() == pytest.approx(sigma, rel=6 / math.sqrt(2 * size))
    assert stats.kstest(values / sigma, "norm").pvalue > 1e-6


def test_the_price_is_that_of_both_noises_together():
  """Neighbors at the bound of both parts, in units of the noise: 1 / z apart."""
  noise = _scores.ScoreNoise(1.3)
  scores = 2 * _scores.LENGTH / noise.sigma_scores
  counts = math.sqrt(2) * _scores.COUNT / noise.sigma_counts
  assert math.hypot(scores, counts) <= 1 / 1.3
  assert math.hypot(scores, counts) == pytest.approx(1 / 1.3, rel=1e-6)
  event = noise.event(1000, 2)
  exact = accounting.composed_guarantee([accounting.Gaussian(1.3)], delta=1e-5)
  told = accounting.composed_guarantee([event], delta=1e-5)
  assert exact.epsilon <= told.epsilon <= exact.epsilon * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_noise_is_the_least_within_the_budget(epsilon):
  noise = _scores.score_noise(Budget(epsilon, 1e-5), 500, 2)
  less = dataclasses.replace(noise, noise_multiplier=noise.noise_multiplier / 1.005)
  spent, more = (
    accounting.composed_guarantee(
      [one.event(500, 2)], delta=1e-5, relation=accounting.Relation.REPLACE_ONE
    ).epsilon
    for one in (noise, less)
  )
  assert spent <= epsilon < more


def test_too_small_an_epsilon_is_refused():
  with pytest.raises(checks.ArgumentError, match=r"epsilon=0\.0001 is too small"):
    _scores.score_noise(Budget(1e-4, 1e-9), 10, 2)


def test_an_attack_on_the_worst_pair_stays_below_the_price():
  """Votes and counts as far apart as any neighbors: the best test's lower bound on epsilon."""
  noise, runs = _scores.ScoreNoise(0.8), 4000
  ends = ((_scores.LENGTH, 1), (-_scores.LENGTH, 0))
  statistics = []
  for seed, (vote, person) in enumerate(ends):
    votes = np.full((runs, 1), vote, np.int64)
    counts = np.stack([np.full(runs, person), np.full(runs, 1 - person)])
    seen = noise.release(votes, counts.ravel(), source=seeded(seed))
    one, two = seen.class_counts.reshape(2, runs)
    a = _scores.COUNT_SHARE
    statistics.append(seen.scores[:, 0] * (1 - a) / 2 + (one - two) * a / 2)
  told = accounting.composed_guarantee([noise.event(1, 2)], delta=1e-3).epsilon
  found = auditing.epsilon_lower_bound(
    *reversed(statistics), delta=1e-3, confidence=0.999, method="gaussian"
  )
  assert 0.6 * told < found.epsilon <= told
