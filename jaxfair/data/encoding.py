"""Columns to features: numbers stay, words become one-hot."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxfair.data.tables import Table

MISSING_NAME = "missing"


class Encoded(NamedTuple):
  """Features and where each came from.

  Attributes:
    x: [n, d] float32; missing numbers are NaN.
    names: [d] "age", or "job=teacher" for one-hot features.
    columns: [d] the original column of each feature.
  """

  x: np.ndarray
  names: tuple[str, ...]
  columns: tuple[str, ...]


def encode(table: Table, columns: Sequence[str], num_rows: int) -> Encoded:
  """Encodes columns: one feature per number, one per value of a text column.

  A missing word is a value of its own. A missing number stays NaN: what fills
  it is fitted on the training part only (`scaling.fit_scaler`). The list of
  values of a column is part of the schema and is taken from all rows.
  """
  blocks, names, origin = [], [], []
  for name in columns:
    values = table[name]
    if values.dtype.kind == "f":
      blocks.append(values.astype(np.float32)[:, None])
      names.append(name)
      origin.append(name)
    else:
      levels, ids = np.unique(values, return_inverse=True)
      blocks.append(np.eye(len(levels), dtype=np.float32)[ids])
      names += [f"{name}={level or MISSING_NAME}" for level in levels.tolist()]
      origin += [name] * len(levels)
  x = np.concatenate(blocks, axis=1) if blocks else np.zeros((num_rows, 0))
  return Encoded(x.astype(np.float32, copy=False), tuple(names), tuple(origin))
