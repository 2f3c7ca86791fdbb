"""From a data set to parts a model can train on: split, fill, scale."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax
import numpy as np

from jaxfair import checks
from jaxfair.data._dataset import Dataset
from jaxfair.data._scaling import Scale, Scaler, fit_scaler
from jaxfair.data._splitting import shuffled, split_rows
from jaxfair.types import Examples, Key

OFFICIAL = "official"


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
  """Parts ready for training.

  Attributes:
    parts: finite float32 features; the first part is the training part.
    scaler: what was fitted on the first part and applied to all.
    dataset: what the parts were made of; names and counts are there.
  """

  parts: tuple[Examples, ...]
  scaler: Scaler
  dataset: Dataset

  @property
  def train(self) -> Examples:
    """The first part."""
    return self.parts[0]

  @property
  def test(self) -> Examples:
    """The last part."""
    return self.parts[-1]


def prepare(
  dataset: Dataset,
  fractions: Sequence[float] | Literal["official"] = (0.75, 0.25),
  *,
  key: Key,
  scale: Scale = "standard",
) -> Prepared:
  """Splits a data set, fits the scaler on the first part, applies it to all.

  Args:
    dataset: what `load`, `from_frame` or a generator gave.
    fractions: sizes of the parts (see `split`), or "official" for the
      publisher's training and test parts. Rows of one person stay together
      where the set knows them.
    key: used once.
    scale: "standard", "minmax" or "none" (see `fit_scaler`).

  Returns:
    The parts, with gaps filled; every feature is finite.
  """
  checks.key("key", key)
  if isinstance(fractions, str):
    checks.one_of("fractions", fractions, (OFFICIAL,))
    rows = _official(dataset, key)
  else:
    rows = split_rows(dataset.size, fractions, key=key, unit=dataset.unit)
  parts = [dataset.examples.take(part) for part in rows]
  scaler = fit_scaler(parts[0].x, scale)
  scaled = tuple(part._replace(x=scaler.apply(part.x)) for part in parts)
  for part in scaled:
    checks.finite("x", part.x)
  return Prepared(scaled, scaler, dataset)


def _official(dataset: Dataset, key: jax.Array) -> tuple[np.ndarray, ...]:
  if dataset.test_rows is None:
    raise checks.ArgumentError(
      f"{dataset.name} has no official test part; pass fractions=(0.75, 0.25)"
    )
  order = shuffled(key, dataset.size)
  test = dataset.test_rows[order]
  return order[~test], order[test]
