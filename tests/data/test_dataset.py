"""What a Dataset refuses, and what it counts."""

import dataclasses

import numpy as np
import pytest

from jaxfair.checks import ArgumentError
from jaxfair.data._dataset import Dataset
from jaxfair.types import Examples


def make(**changes):
  x = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]], np.float32)
  fields = {
    "name": "toy",
    "examples": Examples(x, np.array([0, 1, 1]), np.array([2, 0, 0])),
    "class_names": ("no", "yes"),
    "group_names": ("a", "b", "c"),
    "feature_names": ("u", "v"),
    "columns": ("u", "v"),
  }
  return Dataset(**{**fields, **changes})


def test_counts_are_static_and_sizes_are_named():
  toy = make()
  assert (toy.num_classes, toy.num_groups, toy.size) == (2, 3, 3)
  assert toy.class_sizes == {"no": 1, "yes": 2}
  assert toy.group_sizes == {"a": 2, "b": 0, "c": 1}


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"class_names": ("one",)}, "y has ids from 0 to 1, outside 0..0"),
    ({"group_names": ("a", "b")}, "group has ids"),
    ({"group_names": ("a", "b", "b")}, "names must differ"),
    ({"feature_names": ("u",)}, "name each feature once"),
    ({"unit": np.zeros(2)}, "unit needs one entry"),
    ({"test_rows": np.zeros(4, bool)}, "test_rows needs one entry"),
  ],
)
def test_what_does_not_fit_is_refused(changes, message):
  with pytest.raises(ArgumentError, match=message):
    make(**changes)


def test_unequal_lengths_and_float_labels_are_refused():
  x, y, group = make().examples
  with pytest.raises(ArgumentError, match="one row per person"):
    make(examples=Examples(x, y[:2], group))
  with pytest.raises(ArgumentError, match="not integer ids"):
    make(examples=Examples(x, y.astype(float), group))


def test_infinite_features_are_refused_but_gaps_are_not():
  x, y, group = make().examples
  with pytest.raises(ArgumentError, match="infinite"):
    make(examples=Examples(np.full_like(x, np.inf), y, group))


def test_frozen():
  with pytest.raises(dataclasses.FrozenInstanceError):
    make().name = "other"
