"""Images averaged over squares."""

import numpy as np
import pytest

from jaxfair import checks
from jaxfair.data._pooling import pool_images


def test_squares_of_pixels_are_averaged():
  x = np.arange(16.0, dtype=np.float32).reshape(1, 4, 4, 1)
  np.testing.assert_array_equal(pool_images(x, 2)[0, ..., 0], [[2.5, 4.5], [10.5, 12.5]])
  assert pool_images(x, 1) is x


@pytest.mark.parametrize(
  ("shape", "told"), [((1, 4, 4, 1), "pool=3 does not divide"), ((5, 9), "pool=3 needs images")]
)
def test_a_side_that_does_not_fit_is_refused(shape, told):
  with pytest.raises(checks.ArgumentError, match=told):
    pool_images(np.zeros(shape, np.float32), 3)
