"""The `[data]` table of a config: a named set, or your own CSV file."""

import dataclasses
import functools

from jaxfair import checks, data

STAND_IN = "coloured_digits"  # needs no file


@dataclasses.dataclass(frozen=True)
class People:
  """Which people a study is about.

  Attributes:
    name: a named set (`jaxfair data list`), or what to call your own.
    group: which groups to compare; the set's usual ones by default.
    csv: your own file instead of a named set; then `label` and `group` name
      its columns.
    label: column to predict.
    positive: value of the label that counts as class 1.
    threshold: class 1 is a numeric label above this.
    drop: columns to leave out.
    categorical: columns of numbers that are codes.
    stand_in: use digits that come with jaxfair if the set cannot be had.
  """

  name: str = "adult"
  group: str | None = None
  csv: str | None = None
  label: str | None = None
  positive: str | float | None = None
  threshold: float | None = None
  drop: tuple[str, ...] = ()
  categorical: tuple[str, ...] = ()
  stand_in: bool = False

  def __post_init__(self) -> None:
    if self.csv is not None:
      checks.require(
        self.label is not None and self.group is not None,
        f"csv={self.csv!r} needs label and group: the names of its columns",
      )
    elif self.name not in data.names():
      raise checks.ArgumentError(
        f"name={self.name!r} is not known; "
        f"{checks.options(self.name, data.names())}"
      )


@functools.lru_cache(maxsize=8)
def load_people(config: People) -> tuple[data.Dataset, str]:
  """Loads the people of a config, fetching them if need be.

  Returns:
    The data set, and something the reader must be told ("" for nothing).
  """
  if config.csv is not None:
    assert config.label is not None
    dataset = data.from_csv(
      config.csv,
      label=config.label,
      group=tuple((config.group or "").split("*")),
      positive=config.positive,
      threshold=config.threshold,
      drop=config.drop,
      categorical=config.categorical,
    )
    return dataset, ""
  try:
    return data.load(config.name, group=config.group), ""
  except data.DataError as missing:
    if not config.stand_in:
      raise
    try:
      data.fetch(config.name)
      return data.load(config.name, group=config.group), ""
    except data.DataError as unreachable:
      told = f"{missing} Fetching it failed, too: {unreachable}"
      note = (
        f"{config.name} could not be had, so these results are on the "
        f"stand-in {STAND_IN} that comes with jaxfair. ({told})"
      )
      return data.load(STAND_IN), note
