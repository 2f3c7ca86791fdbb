"""Checks on the gap of excess risks: does a remedy close it?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair.studies.claims import Check
from jaxfair.studies.resampled import resampled

RISKS = ("excess_risk", "excess_risk_of_all")


def gap_shrinks(
  setting: str,
  before: Any,
  after: Any,
  *,
  by: Sequence[str] = ("data",),
  where: Mapping[str, Any] | None = None,
  at_least: float = 0.75,
) -> Check:
  """In enough comparisons the worst gap is smaller after than before.

  The gap of a group is |R_a - R| with means over seeds; the worst group's
  counts.

  Args:
    setting: column that tells before from after.
    before: its value without the remedy.
    after: its value with it.
    by: columns that name a comparison.
    where: keeps only rows with these values.
    at_least: share of the comparisons.
  """

  def statistic(labels: Any, *risks: np.ndarray) -> np.ndarray:
    ratios = _ratios(labels, *risks, before=before, after=after)
    share: np.ndarray = np.mean(ratios < 1, axis=0)
    return share

  return resampled(
    f"share of {_words(by)} whose gap is smaller with {setting} {after}",
    statistic, values=RISKS, points=(*by, setting, "group"), where=where,
    at_least=at_least,
  )  # fmt: skip


def gap_ratio(
  setting: str,
  before: Any,
  after: Any,
  *,
  by: Sequence[str] = ("data",),
  where: Mapping[str, Any] | None = None,
  below: float = 1.0,
) -> Check:
  """The gap after over the gap before, as a geometric mean; see above."""

  def statistic(labels: Any, *risks: np.ndarray) -> np.ndarray:
    ratios = _ratios(labels, *risks, before=before, after=after)
    mean: np.ndarray = np.exp(np.mean(np.log(ratios), axis=0))
    return mean

  return resampled(
    f"gap with {setting} {after} over that with {before}, geometric mean over "
    f"{_words(by)}",
    statistic, values=RISKS, points=(*by, setting, "group"), where=where,
    below=below,
  )  # fmt: skip


def worst_gaps(
  labels: Sequence[tuple[Any, ...]], risk: np.ndarray, of_all: np.ndarray
) -> dict[tuple[Any, ...], np.ndarray]:
  """max_a |R_a - R| for every label without its last column, the group."""
  gaps = np.abs(risk - of_all)
  rows: dict[tuple[Any, ...], list[int]] = {}
  for i, label in enumerate(labels):
    rows.setdefault(label[:-1], []).append(i)
  return {name: gaps[own].max(axis=0) for name, own in rows.items()}


def _ratios(
  labels: Sequence[tuple[Any, ...]], *risks: np.ndarray, before: Any, after: Any
) -> np.ndarray:
  gaps = worst_gaps(labels, *risks)
  names = dict.fromkeys(name[:-1] for name in gaps)
  return np.array([gaps[*name, after] / gaps[*name, before] for name in names])


def _words(columns: Sequence[str]) -> str:
  return " and ".join({"data": "data sets"}.get(c, f"{c}s") for c in columns)
