"""A part of a source, against the same part of arrays in memory."""

import numpy as np
import pytest

from jaxfair import data
from jaxfair.data._source_views import SourceView


@pytest.mark.parametrize("left_out", [[], [0], [2, 3, 9], [0, 1, 8, 9], [4]])
def test_rows_of_those_who_are_left(left_out):
  x, y = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10, dtype=np.int32)
  rows = np.array(left_out, np.int64)
  view = SourceView(data.open_source(x, y), rows, lambda x: 2 * x, "double")
  assert view.size == 10 - len(left_out)
  order = np.random.default_rng(0).permutation(view.size)
  found = view.take(order)
  np.testing.assert_array_equal(found.y, np.delete(y, rows)[order])
  np.testing.assert_array_equal(found.x, 2 * np.delete(x, rows, axis=0)[order])


def test_the_fingerprint_tells_views_apart():
  source = data.open_source(np.zeros((3, 2), np.float32), np.zeros(3, np.int32))
  views = [SourceView(source, np.zeros(0, np.int64), np.abs, told) for told in "aab"]
  first, same, other = (view.fingerprint() for view in views)
  assert first == same != other
