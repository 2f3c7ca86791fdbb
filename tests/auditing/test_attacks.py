"""The learned attack: what it sees, and that it is Fisher's discriminant."""

import numpy as np
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from jaxfair import checks
from jaxfair.auditing._attacks import discriminant

RUNS = 4000


def area(without, present):
  """Area under the curve of a learned attack, on runs it has not seen."""
  half = RUNS // 2
  score = discriminant(without[:half], present[:half])
  scores = np.concatenate([score(without[half:]), score(present[half:])])
  return roc_auc_score(np.repeat([0, 1], half), scores)


def draws(*, seed, d=5):
  return np.random.default_rng(seed).normal(size=(RUNS, d))


def test_it_is_the_linear_discriminant_of_its_features():
  a, b = draws(seed=0), draws(seed=1) @ np.diag([1, 1, 1.2, 1, 1]) + 0.2
  pooled = np.concatenate([a, b])

  def features(x):
    scaled = (x - pooled.mean(0)) / pooled.std(0)
    return np.concatenate([scaled, scaled**2, np.diff(x, axis=1) ** 2], axis=1)

  known = LinearDiscriminantAnalysis(solver="lsqr")
  known.fit(features(pooled), np.repeat([0, 1], RUNS))
  ours, theirs = discriminant(a, b)(pooled), features(pooled) @ known.coef_[0]
  # Correlations are shrunk by 16 / 8000.
  assert np.corrcoef(ours, theirs)[0, 1] > 0.999


def test_it_sees_a_shift_hidden_in_correlated_noise():
  """Single numbers tell next to nothing; their difference tells all."""
  common = 10 * draws(seed=2, d=1)
  a, b = common + draws(seed=3), 10 * draws(seed=4, d=1) + draws(seed=5)
  b[:, 0] += 2.0
  assert area(a, b) > 0.85


def test_it_sees_a_changed_variance():
  """As well as the sum of squares does, the best there is (an F ratio)."""
  best = stats.f.sf(1 / 1.5**2, 5, 5)
  assert area(draws(seed=6), 1.5 * draws(seed=7)) > best - 0.04


def test_it_sees_noise_that_was_used_twice():
  a = np.repeat(draws(seed=8, d=1), 2, axis=1)
  b = np.repeat(draws(seed=9, d=1), 2, axis=1)
  b[:, 1] += np.random.default_rng(0).choice([-0.1, 0.1], RUNS)
  assert area(a, b) > 0.999


def test_it_sees_outputs_that_are_not_finite():
  """Even where the other neighbor's are what stands in for them."""
  a, b = draws(seed=10), draws(seed=11)
  for part in (slice(RUNS // 4), slice(-RUNS // 4, None)):
    a[part], b[part] = 0.0, np.nan
  b[0], b[-1] = np.inf, -np.inf
  assert area(a, b) > 0.7
  assert np.isfinite(discriminant(a, b)(b)).all()


def test_it_sees_a_constant_that_differs():
  a, b = np.zeros((RUNS, 1)), np.ones((RUNS, 1))
  assert area(a, b) == 1.0


def test_equal_distributions_look_equal():
  """The area's deviation is sqrt(1 / (6 n)) = 0.009 at n = 2000 and 2000."""
  assert abs(area(draws(seed=12), draws(seed=13)) - 0.5) < 5.5 * 0.0092
  constant = np.ones((RUNS, 3))
  assert area(constant, constant) == 0.5


def test_too_many_numbers_are_refused():
  with pytest.raises(checks.ArgumentError, match="releases 1001 numbers"):
    discriminant(np.zeros((9, 1001)), np.zeros((9, 1001)))
