"""Settings whose frontier is easy to see."""

import numpy as np
import pytest

from jaxfair import frontier


@pytest.fixture
def four():
  """Three settings nobody beats, and one that the first beats; 3 seeds."""
  means = np.array(
    [[1.0, 0.10, 0.80, 1.0], [1.0, 0.05, 0.78, 0.9], [3.0, 0.12, 0.88, 1.0], [1.0, 0.11, 0.79, 1.0]]
  )
  moves = np.array([-0.01, 0.0, 0.01])
  values = np.repeat(means[:, None], 3, axis=1)
  values[:, :, 2] += moves
  return frontier.points(values)
