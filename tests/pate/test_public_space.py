"""Coordinates of public people, and the student in them."""

import numpy as np
import pytest

from jaxfair import checks, models
from jaxfair.pate._public_space import matching_constants, public_space, score_student


def features(size, count, seed=0):
  rng = np.random.default_rng(seed)
  return rng.normal(size=(size, count)) * np.linspace(1, 3, count) + 1.0


@pytest.mark.parametrize(("size", "count"), [(40, 5), (8, 20)])
def test_axes_are_those_of_the_singular_value_decomposition(size, count):
  x = features(size, count)
  space = public_space(x, shrinkage=2.0)
  left, values, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
  rank = min(size - 1, count)
  np.testing.assert_allclose(np.sort(space.variances)[::-1], values[:rank] ** 2 / size, rtol=1e-8)
  rows = (space.coordinates * np.sqrt(size * space.variances)) @ space.axes.T
  np.testing.assert_allclose(rows, x - x.mean(axis=0), atol=1e-8)
  assert space.shrinkage == pytest.approx(2.0 * np.sum(values**2) / size**2)
  # scores of the people's own directions are products in the shrunk coordinates
  z = (left[:, :rank] * values[:rank]) / np.sqrt(values[:rank] ** 2 / size + space.shrinkage)
  np.testing.assert_allclose((x - x.mean(axis=0)) @ space.scoring(), z @ z.T, atol=1e-8)


@pytest.mark.parametrize(("size", "count"), [(60, 5), (12, 20)])
def test_a_student_of_noiseless_linear_scores_is_that_function(size, count):
  x = features(size, count)
  space = public_space(x, shrinkage=0.5)
  # within the span of the people, since nothing can be learned outside it
  direction = (x - x.mean(axis=0)).T @ np.random.default_rng(1).normal(size=(size, 2))
  scores = (x - x.mean(axis=0)) @ direction
  student = score_student(scores, np.array([1.0, 1.0]), space)
  logits = np.asarray(models.logistic(2).apply(student, x.astype(np.float32)))
  wanted, found = scores[:, 0] - scores[:, 1], logits[:, 0] - logits[:, 1]
  assert np.corrcoef(wanted, found)[0, 1] > 0.999


def test_noise_is_smoothed_away():
  """With noise on 2,000 scores of five features the student is near the noiseless direction."""
  x = features(2000, 5)
  space = public_space(x, shrinkage=0.1)
  rng = np.random.default_rng(2)
  score = (x - x.mean(axis=0)) @ rng.normal(size=5)
  noise = 3 * score.std() * rng.normal(size=(2000, 2))
  student = score_student(np.stack([score, -score], axis=1) + noise, np.array([1, 1]), space)
  found = np.asarray(models.logistic(2).apply(student, x.astype(np.float32)))
  assert np.corrcoef(score, found[:, 0] - found[:, 1])[0, 1] > 0.98


@pytest.mark.parametrize("counts", [[300, 100], [100, 250, 50], [10, 20, 30, 40]])
def test_constants_give_every_class_its_share(counts):
  counts = np.array(counts, float)
  logits = np.random.default_rng(3).normal(size=(4000, len(counts)))
  chosen = np.argmax(logits + matching_constants(logits, counts), axis=1)
  found = np.bincount(chosen, minlength=len(counts)) / 4000
  np.testing.assert_allclose(found, counts / counts.sum(), atol=0.003)


def test_counts_below_zero_are_a_class_that_is_hardly_given():
  logits = np.random.default_rng(4).normal(size=(500, 2))
  chosen = np.argmax(logits + matching_constants(logits, np.array([-40.0, 900.0])), axis=1)
  assert (chosen == 0).sum() <= 2


def test_people_who_are_all_alike_are_refused():
  with pytest.raises(checks.ArgumentError, match="no variance"):
    public_space(np.ones((5, 3)), shrinkage=1.0)
