"""The `[data]` table of a config: a named set, or your own CSV file."""

import dataclasses
import functools
import os
import pathlib

from jaxfair import checks, data

USUAL = "adult"
STAND_IN = "coloured_digits"  # needs no file
OF_A_FILE = ("positive", "threshold", "bins", "drop", "categorical", "unit")


@dataclasses.dataclass(frozen=True)
class People:
  """Which people a study is about.

  Attributes:
    name: a named set (`jaxfair data list`); for your own file what to call
      it, the file's name by default.
    group: which groups to compare; the set's usual ones by default.
    label: what to predict, for sets that offer several.
    csv: your own file instead of a named set; then `label` and `group` name
      its columns ("sex*race" for intersections). What follows is about it.
    positive: value of the label that counts as class 1.
    threshold: class 1 is a numeric label above this.
    bins: edges that cut a group column of numbers into ranges.
    drop: columns to leave out.
    categorical: columns of numbers that are codes.
    unit: column that tells whose row it is; splits keep a person together.
    stand_in: use digits that come with jaxfair if a named set cannot be had.
  """

  name: str = USUAL
  group: str | None = None
  label: str | None = None
  csv: str | None = None
  positive: str | float | None = None
  threshold: float | None = None
  bins: tuple[float, ...] = ()
  drop: tuple[str, ...] = ()
  categorical: tuple[str, ...] = ()
  unit: str | None = None
  stand_in: bool = False

  def __post_init__(self) -> None:
    if self.csv is not None:
      checks.require(
        self.label is not None and self.group is not None,
        f"csv={self.csv!r} needs label and group: the names of its columns",
      )
      checks.require(
        not self.bins or "*" not in str(self.group),
        f"bins={list(self.bins)} cut one column, not {self.group!r}; cut it in "
        "the file first",
      )
      return
    checks.one_of("name", self.name, data.names())
    for only in OF_A_FILE:
      value = getattr(self, only)
      checks.require(
        value in (None, ()),
        f"{only}={value!r} is about a file of your own; set csv, or leave it "
        "out",
      )


def set_name(people: People) -> str:
  """What a set is called in cells and rows."""
  return people.name if people.csv is None else pathlib.Path(people.csv).stem


def load_people(config: People) -> tuple[data.Dataset, str]:
  """Loads the people of a config, fetching them if need be.

  Returns:
    The data set, and something the reader must be told ("" for nothing).
  """
  try:
    version = os.stat(config.csv).st_mtime_ns if config.csv else 0
  except OSError:  # the loader says so better
    version = 0
  return _load(config, version)


@functools.lru_cache(maxsize=2)
def _load(config: People, version: int) -> tuple[data.Dataset, str]:
  """Loads once for all cells, and anew when a file has changed."""
  del version
  if config.csv is not None:
    return _own(config), ""
  load = functools.partial(
    data.load, config.name, label=config.label, group=config.group
  )
  try:
    return load(), ""
  except data.DataError as missing:
    if not config.stand_in:
      raise
    try:
      data.fetch(config.name)
      return load(), ""
    except data.DataError as unreachable:
      told = f"{missing}; fetching it failed, too: {unreachable}"
      note = (
        f"{config.name} could not be had, so these results are on the "
        f"stand-in {STAND_IN} that comes with jaxfair. ({told})"
      )
      return data.load(STAND_IN), note


def _own(config: People) -> data.Dataset:
  assert config.csv is not None
  assert config.label is not None
  assert config.group is not None
  try:
    return data.from_csv(
      config.csv,
      label=config.label,
      group=tuple(config.group.split("*")),
      positive=config.positive,
      threshold=config.threshold,
      bins={config.group: config.bins} if config.bins else None,
      drop=config.drop,
      categorical=config.categorical,
      unit=config.unit,
      name=None if config.name == USUAL else config.name,
    )
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{config.csv}: {error}") from None
