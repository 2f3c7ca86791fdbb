"""Small people, and processes with several devices."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

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

  def run(code, count=8):
    flags = f"--xla_force_host_platform_device_count={count}"
    done = subprocess.run(
      [sys.executable, "-W", "error", "-c", code], capture_output=True,
      text=True, env=os.environ | {"XLA_FLAGS": flags}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

  return run
