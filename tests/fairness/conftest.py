"""Random people for the fairness tests."""

from typing import NamedTuple

import numpy as np
import pytest


class People(NamedTuple):
  y_true: np.ndarray
  y_pred: np.ndarray
  group: np.ndarray
  weight: np.ndarray


def make_people(seed, shares=(0.5, 0.3, 0.2), num_classes=2, n=400):
  """Predictions that are right more often in some groups than in others."""
  rng = np.random.default_rng(seed)
  group = rng.choice(len(shares), size=n, p=np.array(shares) / sum(shares))
  y_true = rng.integers(0, num_classes, n)
  y_true = np.where(rng.random(n) < 0.2 * group, 0, y_true)
  guess = rng.integers(0, num_classes, n)
  y_pred = np.where(rng.random(n) < 0.8 - 0.2 * group, y_true, guess)
  return People(y_true, y_pred, group, rng.exponential(size=n))


@pytest.fixture
def people():
  return make_people
