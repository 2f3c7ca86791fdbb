"""Small people, and processes with several devices."""

import numpy as np
import pytest

from helpers import subprocesses
from jaxfair.types import Examples


@pytest.fixture
def make_people():
  """Examples whose classes differ in the mean of their features."""

  def make(n=60, d=4, num_classes=3, num_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, num_classes, n).astype(np.int32)
    means = np.random.default_rng(9).normal(size=(num_classes, d))
    x = (means[y] + rng.normal(size=(n, d))).astype(np.float32)
    return Examples(x, y, rng.integers(0, num_groups, n).astype(np.int32))

  return make


@pytest.fixture
def people(make_people):
  return make_people()


@pytest.fixture(scope="session")
def on_devices():
  """Runs code in a process with so many devices; returns what it prints."""
  return subprocesses.on_devices
