"""A data set: people, the names of what is known about them, its source."""

import dataclasses

import numpy as np

from jaxfair import checks
from jaxfair.data._encoder import Encoder
from jaxfair.types import Examples


@dataclasses.dataclass(frozen=True)
class Provenance:
  """Where data comes from and what to know before using it.

  Attributes:
    title: full name of the data set.
    license: terms of use, as far as they are known.
    origin: who published it.
    cautions: what a user has to know before trusting a result on it.
    sorted_by: what its rows are sorted by; adds a caution.
  """

  title: str
  license: str = "not stated"
  origin: str = ""
  cautions: tuple[str, ...] = ()
  sorted_by: str = ""

  def __post_init__(self) -> None:
    told = f"rows are sorted by {self.sorted_by}: draw subsets at random, never take the first rows"
    if self.sorted_by and told not in self.cautions:
      object.__setattr__(self, "cautions", (*self.cautions, told))


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """People with labels and groups, and the names behind the numbers.

  Attributes:
    name: short name, as `load` takes it.
    examples: NumPy arrays: x float32 (missing numbers are NaN until a scaler
      fills them; images are [n, h, w, c] in [0, 1]), y and group int32 ids.
    class_names: the name of class id 0, 1, ...
    group_names: the name of group id 0, 1, ...
    feature_names: the name of each encoded feature; empty for images.
    columns: the original column behind each feature; empty for images.
    source: license, origin, cautions.
    unit: [n] ids; rows with one id belong to one person and stay together.
    test_rows: [n] whether the publisher put the row into the test part.
    row_names: [n] names, where rows are places rather than people.
    encoder: how the features, classes and groups follow from a table, so that
      people who come later are encoded alike; None for images and generators.
  """

  name: str
  examples: Examples
  class_names: tuple[str, ...]
  group_names: tuple[str, ...]
  feature_names: tuple[str, ...] = ()
  columns: tuple[str, ...] = ()
  source: Provenance = Provenance("unnamed")
  unit: np.ndarray | None = None
  test_rows: np.ndarray | None = None
  row_names: np.ndarray | None = None
  encoder: Encoder | None = None

  def __post_init__(self) -> None:
    x, y, group = self.examples
    size = checks.same_length(x=x, y=y, group=group)
    checks.require(size > 0, f"{self.name} has no rows; load at least one")
    checks.ids("y", y, self.num_classes)
    checks.ids("group", group, self.num_groups)
    for names in (self.class_names, self.group_names):
      checks.require(len(set(names)) == len(names), f"names must differ, but are {names}")
    for title, extra in (
      ("unit", self.unit),
      ("test_rows", self.test_rows),
      ("row_names", self.row_names),
    ):
      checks.require(
        extra is None or len(extra) == size,
        f"{title} needs one entry for each of the {size} rows of {self.name}",
      )
    if np.ndim(x) == 2:
      checks.require(
        len(self.feature_names) == len(self.columns) == np.shape(x)[1],
        f"{self.name} has {np.shape(x)[1]} features but "
        f"{len(self.feature_names)} feature names and {len(self.columns)} "
        "columns; name each feature once",
      )
      checks.require(
        not np.isinf(x).any(), f"{self.name} has infinite features; leave such cells empty"
      )

  @property
  def num_classes(self) -> int:
    """Number of classes, a static int."""
    return len(self.class_names)

  @property
  def num_groups(self) -> int:
    """Number of groups, a static int."""
    return len(self.group_names)

  @property
  def size(self) -> int:
    """Number of rows."""
    return self.examples.size

  @property
  def class_sizes(self) -> dict[str, int]:
    """Rows per class."""
    return _sizes(self.examples.y, self.class_names)

  @property
  def group_sizes(self) -> dict[str, int]:
    """Rows per group."""
    return _sizes(self.examples.group, self.group_names)


def _sizes(ids: np.ndarray, names: tuple[str, ...]) -> dict[str, int]:
  counts = np.bincount(ids, minlength=len(names))
  return dict(zip(names, counts.tolist(), strict=True))
