"""Colors that agree with the label to a known degree."""

import jax
import numpy as np
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import _colored

KEY = jax.random.key(4)
Z = 5.5  # two-sided false alarm below 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("num_groups", [2, 3, 6])
@pytest.mark.parametrize("agreement", [0.0, 0.75, 1.0])
def test_colors_agree_as_often_as_asked(num_groups, agreement):
  size = 60_000
  y = np.arange(size) % 10
  group = _colored.draw_colors(y, 10, agreement=agreement, num_groups=num_groups, key=KEY)
  favorite = y * num_groups // 10
  for steps in range(num_groups):
    share = (group == (favorite + steps) % num_groups).mean()
    expected = (1 - agreement) / (num_groups - 1) if steps else agreement
    error = Z * np.sqrt(max(expected * (1 - expected), 1e-12) / size)
    assert abs(share - expected) <= error


def test_agreement_of_one_in_k_makes_color_independent_of_the_label():
  y = np.arange(60_000) % 10
  group = _colored.draw_colors(y, 10, agreement=0.5, num_groups=2, key=KEY)
  rates = group.reshape(-1, 10).mean(0)
  assert np.abs(rates - 0.5).max() < Z * np.sqrt(0.25 / 6000)


@pytest.mark.slow
def test_named_sets_have_the_disparity_of_the_paper():
  """Gamma(z, k) of the true labels is 0.10 for agreement 0.75."""
  digits = data.load("colored_digits")
  _, y, group = digits.examples
  gaps = [abs((y[group == 0] == k).mean() - (y[group == 1] == k).mean()) for k in range(10)]
  # The mean of ten gaps of about 900 people a side.
  assert abs(np.mean(gaps) - 0.10) < Z * np.sqrt(2 * 0.1 / 900 / 10)
  assert digits.group_names == ("red", "green")


def test_painting_keeps_the_image_in_one_channel():
  gray = np.arange(8, dtype=np.uint8).reshape(2, 2, 2, 1)
  painted = _colored.paint(gray, np.array([1, 3]))
  assert painted.dtype == np.uint8
  np.testing.assert_array_equal(painted[0, ..., 1], gray[0, ..., 0])
  assert painted[0, ..., [0, 2]].max() == 0
  np.testing.assert_array_equal(painted[1, ..., 0], gray[1, ..., 0])
  np.testing.assert_array_equal(painted[1, ..., 1], gray[1, ..., 0])


def test_colored_digits_need_no_file_and_are_always_the_same(toy):
  first, again = (data.load("colored_digits").examples for _ in range(2))
  np.testing.assert_array_equal(first.group, again.group)
  gray = data.load("digits").examples.x
  np.testing.assert_array_equal(first.x.max(-1, keepdims=True), gray)


def test_color_paints_any_gray_set():
  made = data.color(data.load("digits"), agreement=1.0, num_groups=3, key=KEY)
  x, y, group = made.examples
  assert made.name == "colored_digits"
  assert x.shape == (1797, 8, 8, 3)
  np.testing.assert_array_equal(group, y * 3 // 10)
  assert made.group_names == ("red", "green", "blue")


def test_what_cannot_be_colored_is_refused():
  digits = data.load("digits")
  with pytest.raises(ArgumentError, match=r"agreement=1\.2"):
    data.color(digits, agreement=1.2, key=KEY)
  with pytest.raises(ArgumentError, match="num_groups=9"):
    data.color(digits, agreement=0.5, num_groups=9, key=KEY)
  with pytest.raises(ArgumentError, match="only gray images"):
    data.color(data.load("colored_digits"), agreement=0.5, key=KEY)
  with pytest.raises(ArgumentError, match="key must be"):
    data.color(digits, agreement=0.5, key=None)
