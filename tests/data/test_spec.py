"""How a table or images become a Dataset."""

import numpy as np

from jaxfair.data import _rules
from jaxfair.data._dataset import Provenance
from jaxfair.data._spec import Raw, assemble


def test_bytes_become_pixels_between_0_and_1():
  images = np.array([0, 51, 255], np.uint8).reshape(3, 1, 1, 1)
  raw = Raw({"class": np.array([0.0, 1.0, 1.0])}, images)
  made = assemble(
    "toy", raw, label=_rules.values("class"), group=_rules.everyone(), source=Provenance("toy")
  )
  np.testing.assert_allclose(made.examples.x.ravel(), [0, 0.2, 1], rtol=1e-6)
  assert made.examples.x.dtype == np.float32
  assert made.feature_names == ()
  assert images.max() == 255


def test_rows_left_out_are_left_out_everywhere():
  raw = Raw(
    {
      "g": np.array(["a", "b", "z", "a"]),
      "y": np.array([0.0, 1.0, 1.0, 1.0]),
      "who": np.array([7.0, 7.0, 8.0, 9.0]),
      "v": np.arange(4.0),
    },
    test_rows=np.array([False, False, True, True]),
    row_names=np.array(["p", "q", "r", "s"]),
  )
  made = assemble(
    "toy",
    raw,
    label=_rules.values("y"),
    group=_rules.values("g", {"a": "A", "b": "B"}),
    source=Provenance("toy"),
    unit="who",
  )
  assert made.examples.x.ravel().tolist() == [0, 1, 3]
  assert made.examples.group.tolist() == [0, 1, 0]
  assert made.unit.tolist() == [0, 0, 1]
  assert made.test_rows.tolist() == [False, False, True]
  assert made.row_names.tolist() == ["p", "q", "s"]
