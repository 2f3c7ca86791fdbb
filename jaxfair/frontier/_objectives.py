"""Objectives, and settings measured in them over seeds."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from jaxfair import checks, fairness
from jaxfair.types import ArrayLike

Better: TypeAlias = Literal["low", "high"]
Missing: TypeAlias = Literal["refuse", "drop"]


class Objective(NamedTuple):
  """One axis of a frontier.

  Attributes:
    name: as tables have it.
    better: whether low or high values are wanted.
    least: no value is below; ends of intervals are not, either.
    most: no value is above.
  """

  name: str
  better: Better
  least: float = -np.inf
  most: float = np.inf


OBJECTIVES = (
  Objective("epsilon", "low", least=0.0),
  Objective("gap", "low", least=-1.0, most=1.0),
  Objective("accuracy", "high", least=0.0, most=1.0),
  Objective("coverage", "high", least=0.0, most=1.0),
)


class Points(NamedTuple):
  """Settings, each measured on the same seeds.

  Attributes:
    values: [n, s, d] settings, seeds, objectives; without NaN.
    objectives: what the last axis holds.
    rows: [n] which rows of the given array these are.
    dropped: how many settings were left out because a seed had no value.
  """

  values: np.ndarray
  objectives: tuple[Objective, ...]
  rows: np.ndarray
  dropped: int

  @property
  def names(self) -> tuple[str, ...]:
    """Of the objectives."""
    return tuple(objective.name for objective in self.objectives)

  @property
  def better(self) -> tuple[Better, ...]:
    """Directions of the objectives."""
    return tuple(objective.better for objective in self.objectives)

  @property
  def means(self) -> np.ndarray:
    """[n, d] means over seeds; what is equal in all seeds stays that number."""
    first, moved = centered(self.values)
    return first + moved.mean(axis=1)

  def column(self, name: str) -> int:
    """Which of the objectives has this name."""
    checks.one_of("objective", name, self.names)
    return self.names.index(name)


def points(
  values: ArrayLike, objectives: Sequence[Objective] = OBJECTIVES, *, missing: Missing = "refuse"
) -> Points:
  """Checks measured settings and turns them into `Points`.

  Args:
    values: [n, s, d] settings, seeds, objectives; or [n, d] for one seed.
    objectives: d of them.
    missing: what to do with a setting that has NaN in some seed. It is not
      measured as the others are, so it is refused, or dropped and counted.
  """
  array = np.asarray(values, np.float64)
  array = array[:, None] if array.ndim == 2 else array
  checks.require(
    array.ndim == 3 and array.shape[-1] == len(objectives) > 0,
    f"values has shape {np.shape(values)}; pass (settings, seeds, "
    f"{len(objectives)}), the last axis for "
    f"{', '.join(o.name for o in objectives)}",
  )
  for objective in objectives:
    checks.one_of("better", objective.better, ("low", "high"))
  rows, dropped = known_rows(array.reshape(len(array), -1), missing)
  kept = array[rows]
  infinite = np.isinf(kept)
  checks.require(
    bool((infinite.all(axis=1) == infinite.any(axis=1)).all()),
    "values are infinite in some seeds of a setting and finite in others, so "
    "it has no mean; split it into two settings",
  )
  return Points(kept, tuple(objectives), rows, dropped)


def known_rows(values: np.ndarray, missing: Missing) -> tuple[np.ndarray, int]:
  """Numbers of the rows without NaN, and how many there are with."""
  checks.one_of("missing", missing, ("refuse", "drop"))
  known = ~np.isnan(values).any(axis=1)
  dropped = int((~known).sum())
  checks.require(
    not dropped or missing == "drop",
    f'values has {dropped} rows with NaN; pass missing="drop" to leave them out, and say so',
  )
  return np.flatnonzero(known), dropped


def costs(values: np.ndarray, better: Sequence[Better]) -> np.ndarray:
  """The values with signs such that less is better everywhere."""
  return values * np.where(np.array(better) == "high", -1.0, 1.0)


def centered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """[n, d] values of the first seed, and [n, s, d] what seeds differ by.

  An objective that is the same in all seeds, such as epsilon, differs by 0
  exactly. Means and draws of it are then equal wherever the values are, and
  no rounding decides who dominates whom.
  """
  first = values[:, :1]
  moved = np.zeros_like(values)
  np.subtract(values, first, out=moved, where=values != first)
  return first[:, 0], moved


def bounds(points: Points, *, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
  """[n, d] ends of Student's intervals of the means over seeds.

  Args:
    points: with at least two seeds; with one the ends are NaN.
    level: two-sided coverage.
  """
  first, moved = centered(points.values)
  found = fairness.seed_interval(moved, axis=1, level=level)
  least = [objective.least for objective in points.objectives]
  most = [objective.most for objective in points.objectives]
  # A mean outside its own range is the caller's; its interval stays around it.
  low = np.maximum(first + found.low, np.minimum(least, points.means))
  high = np.minimum(first + found.high, np.maximum(most, points.means))
  return low, high
