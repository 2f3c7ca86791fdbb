"""One-hot encoding against scikit-learn's."""

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from jaxfair.data.encoding import encode


def test_agrees_with_scikit_learn():
  rng = np.random.default_rng(1)
  words = rng.choice(["b", "a", "", "c"], (40, 2))
  numbers = rng.normal(size=40)
  table = {"p": words[:, 0], "n": numbers, "q": words[:, 1]}
  encoded = encode(table, ["p", "q", "n"], 40)
  expected = OneHotEncoder(sparse_output=False).fit_transform(words)
  np.testing.assert_array_equal(encoded.x[:, :-1], expected)
  np.testing.assert_allclose(encoded.x[:, -1], numbers, rtol=1e-6)
  assert encoded.x.dtype == np.float32


def test_missing_words_are_a_value_and_missing_numbers_stay():
  table = {"w": np.array(["", "a"]), "n": np.array([np.nan, 2.0])}
  encoded = encode(table, ["w", "n"], 2)
  assert encoded.names == ("w=missing", "w=a", "n")
  assert encoded.columns == ("w", "w", "n")
  np.testing.assert_array_equal(encoded.x, [[1, 0, np.nan], [0, 1, 2]])


def test_no_column_gives_no_feature():
  assert encode({}, [], 3).x.shape == (3, 0)
