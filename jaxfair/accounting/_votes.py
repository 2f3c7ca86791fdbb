"""Checks of vote counts, before any arithmetic starts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks


def vote_table(counts: ArrayLike) -> np.ndarray:
  """[n, classes] int64 counts, each row the votes of the same k teachers."""
  table = np.asarray(counts)
  checks.require(
    table.ndim == 2 and table.shape[1] >= 2,
    f"counts has shape {table.shape}; pass [queries, classes] with at least two classes",
  )
  checks.require(
    table.dtype.kind in "iuf",
    f"counts holds {table.dtype} values, not numbers of votes; count the "
    "votes for each class first",
  )
  if table.dtype.kind == "f":
    whole = np.isfinite(table) & (table == np.floor(table))
    _rows(
      "counts",
      ~whole,
      "is not a whole number of votes; the cost of noisy or normalized histograms is unknown",
    )
  table = table.astype(np.int64)
  _rows("counts", table < 0, "is negative; count the votes for each class")
  teachers = table.sum(axis=1)
  if table.shape[0]:
    checks.require(
      bool(np.all(teachers == teachers[0])),
      f"counts has rows of {teachers.min()} to {teachers.max()} votes; every "
      "teacher votes once on every query, so all rows must have the same sum",
    )
    checks.require(int(teachers[0]) > 0, "counts are all zero; at least one teacher votes")
  return table


def noise_sigma(sigma: Any, *, name: str = "sigma") -> float:
  """A positive standard deviation, as one float."""
  checks.require(np.ndim(sigma) == 0, f"{name} must be one number")
  checks.positive(name, sigma, "without noise there is no privacy guarantee")
  return float(sigma)


def vote_threshold(threshold: float, sigma: Any, teachers: int) -> float:
  """A finite threshold that some vote could reach."""
  checks.number("threshold", threshold)
  checks.require(
    not (np.ndim(sigma) == 0 and sigma == 0 and threshold > teachers),
    f"threshold={threshold:g} is above the {teachers} teachers and sigma=0 "
    f"adds no noise: no query could be answered; use at most {teachers}",
  )
  return float(threshold)


def renyi_orders(orders: Sequence[float] | np.ndarray) -> np.ndarray:
  """[orders] float64, each above 1."""
  array = np.asarray(orders, dtype=np.float64)
  checks.require(
    array.ndim == 1 and array.size > 0,
    f"orders has shape {array.shape}; pass a list of orders, such as accounting.DEFAULT_ORDERS",
  )
  checks.number("orders", array, low=1.0, open_low=True)
  return array


def _rows(name: str, bad: np.ndarray, what: str) -> None:
  if bad.any():
    row, column = np.unravel_index(int(bad.argmax()), bad.shape)
    raise checks.ArgumentError(f"{name}[{row}, {column}] {what} ({int(bad.sum())} such entries)")
