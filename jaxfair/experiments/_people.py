"""The `[data]` table of a config: a named set, or your own CSV file."""

import contextlib
import contextvars
import dataclasses
import functools
import hashlib
import math
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxfair import accounting, checks, data, models
from jaxfair.data import _identity, _loading
from jaxfair.data._streamed_encoder import fit_encoder
from jaxfair.experiments._stored_people import open_stored
from jaxfair.models import _extractors

USUAL = "adult"
STAND_IN = "colored_digits"  # needs no file
OF_A_FILE = (
  "positive",
  "threshold",
  "multiclass",
  "bins",
  "drop",
  "categorical",
  "ranges",
  "unit",
  "min_group_size",
)


@dataclasses.dataclass(frozen=True)
class People:
  """Which people a study is about.

  Attributes:
    name: a named set (`jaxfair data list`); for your own file what to call
      it, the file's name by default.
    group: which groups to compare; the set's usual ones by default.
    label: what to predict, for sets that offer several.
    source: a folder of `data.write_source` instead, whose people stay on disk: for releases by
      methods that read them batch by batch.
    csv: your own file instead of a named set; then `label` and `group` name
      its columns ("sex*race" for intersections). What follows is about it.
    positive: value of the label that counts as class 1.
    threshold: class 1 is a numeric label above this.
    multiclass: a label of more than two values gives one class for each.
    bins: edges that cut a group column of numbers into ranges.
    drop: columns to leave out.
    categorical: columns of numbers that are codes.
    ranges: bounds of columns of numbers that are known without looking at the people, such as
      "age=17:90".
    unit: column that identifies the person; splits keep a person's rows together.
    min_group_size: smaller groups are refused.
    stand_in: use digits that come with jaxfair if a named set cannot be loaded.
    features: an extractor of features that take the place of images, such as
      "efficientnet_lite0", "scattering" or "moment_scattering"; see `models.extractor`.
  """

  name: str = USUAL
  group: str | None = None
  label: str | None = None
  csv: str | None = None
  source: str | None = None
  positive: str | float | None = None
  threshold: float | None = None
  multiclass: bool = False
  bins: tuple[float, ...] = ()
  drop: tuple[str, ...] = ()
  categorical: tuple[str, ...] = ()
  ranges: tuple[str, ...] = ()
  unit: str | None = None
  min_group_size: int = 2
  stand_in: bool = False
  features: str | None = None

  def __post_init__(self) -> None:
    if self.features is not None:
      checks.one_of("features", self.features, _extractors.EXTRACTORS)
      checks.require(
        self.csv is None, f"features={self.features!r} needs images, which a CSV file does not have"
      )
    if self.source is not None:
      given = {f.name for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
      more = sorted(given - {"source", "name"})
      checks.require(
        not more, f"source={self.source!r} already determines {', '.join(more)}; leave it out"
      )
      return
    if self.csv is not None:
      checks.require(
        self.label is not None and self.group is not None,
        f"csv={self.csv!r} needs label and group: the names of its columns",
      )
      checks.require(
        not self.bins or "*" not in str(self.group),
        f"bins={list(self.bins)} cut one column, not {self.group!r}; cut it in the file first",
      )
      dict(map(_range, self.ranges))
      return
    checks.one_of("name", self.name, _loading.names())
    for only in OF_A_FILE:
      value = getattr(self, only)
      checks.require(
        value == getattr(type(self), only),
        f"{only}={value!r} applies to your own file; set csv, or leave it out",
      )


def set_name(people: People) -> str:
  """What a set is called in cells and rows."""
  own = people.csv
  if people.source is not None and people.name == USUAL:
    own = people.source
  return people.name if own is None else pathlib.Path(own).stem


def load_people(config: People) -> tuple[data.Dataset, str]:
  """Loads the people of a config, fetching them if need be.

  Returns:
    The data set, and something the reader must be told ("" for nothing).
  """
  checks.require(
    config.source is None,
    f"the people of {config.source} stay on disk, and this reads all of them at once; release a "
    "model by `jaxfair train` or `jaxfair release`, or name a file",
  )
  try:
    version = os.stat(config.csv).st_mtime_ns if config.csv else 0
  except OSError:  # the loader says so better
    version = 0
  loaded, tell = _load(config, version), _WATCHING.get()
  if tell is not None and config.csv is None:
    tell(_described(config), loaded.digest)
  return loaded.people, loaded.note


def dataset_ledger(config: People) -> accounting.DatasetLedger:
  """The ledger of everything that was ever released from these people."""
  if config.source is not None:
    stored = open_stored(config.source)
    return accounting.DatasetLedger.of(stored.identity, name=set_name(config))
  people, _ = load_people(config)
  if config.csv is None:
    identity = _identity.named_identity(people.name)  # of the stand-in, if it is one
  else:
    identity = data.csv_identity(config.csv)
  return accounting.DatasetLedger.of(identity, name=people.name)


@contextlib.contextmanager
def watched(tell: Callable[[str, str], Any]) -> Iterator[None]:
  """Reports every named set that is loaded in the context, with its digest.

  The digest is as private as the people are.
  """
  token = _WATCHING.set(tell)
  try:
    yield
  finally:
    _WATCHING.reset(token)


_WATCHING: contextvars.ContextVar[Callable[[str, str], Any] | None] = contextvars.ContextVar(
  "watching", default=None
)


@dataclasses.dataclass(frozen=True)
class _Loaded:
  """What was loaded for a config, or the stand-in for it."""

  people: data.Dataset
  note: str

  @functools.cached_property
  def digest(self) -> str:
    """SHA-256 of all that trainings and splits read."""
    own = self.people
    digest = hashlib.sha256(repr((own.name, own.feature_names)).encode())
    digest.update(repr((own.class_names, own.group_names)).encode())
    for array in (*own.examples, own.unit, own.test_rows):
      if array is not None:
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _described(config: People) -> str:
  told = {"label": config.label, "group": config.group, "features": config.features}
  chosen = [f"{name} {value}" for name, value in told.items() if value]
  return ", ".join([config.name, *chosen])


@functools.lru_cache(maxsize=2)
def _load(config: People, version: int) -> _Loaded:
  """Loads once for all cells, and again when a file has changed."""
  del version
  found = _found(config)
  if config.features is None:
    return found
  return _Loaded(models.embed(found.people, models.extractor(config.features)), found.note)


def _found(config: People) -> _Loaded:
  """The people as they were published, or the stand-in."""
  if config.csv is not None:
    return _Loaded(_own(config), "")
  load = functools.partial(data.load, config.name, label=config.label, group=config.group)
  try:
    return _Loaded(load(), "")
  except data.DataError as missing:
    if not config.stand_in:
      raise
    try:
      data.fetch(config.name)
      return _Loaded(load(), "")
    except data.DataError as unreachable:
      told = f"{missing}; fetching it failed, too: {unreachable}"
      note = (
        f"{config.name} could not be loaded, so these results are on the "
        f"stand-in {STAND_IN} that comes with jaxfair. ({told})"
      )
      return _Loaded(data.load(STAND_IN), note)


def _range(text: str) -> tuple[str, tuple[float, float]]:
  """`("age", (17.0, 90.0))` of "age=17:90"."""
  name, _, bounds = text.rpartition("=")
  try:
    low, high = map(float, bounds.split(":"))
  except ValueError:
    low, high = 0.0, math.nan
  checks.require(
    bool(name) and math.isfinite(high - low),
    f"range {checks.shown(text)} must be a column and two numbers, such as age=17:90",
  )
  checks.require(
    low < high, f"range {checks.shown(text)} must be increasing: write {name}={high:g}:{low:g}"
  )
  return name, (low, high)


def _own(config: People) -> data.Dataset:
  assert config.csv is not None
  name = None if config.name == USUAL else config.name
  return data.from_csv(config.csv, unit=config.unit, name=name, **_options(config))


def fit_streamed(config: People) -> data.Encoder:
  """The encoder of the people of a file that may be larger than memory."""
  assert config.csv is not None
  return fit_encoder(pathlib.Path(config.csv), **_options(config))


def _options(config: People) -> dict[str, Any]:
  """How the columns of a user's own file are read."""
  assert config.group is not None
  return {
    "label": config.label,
    "group": tuple(config.group.split("*")),
    "positive": config.positive,
    "threshold": config.threshold,
    "multiclass": config.multiclass,
    "bins": {config.group: config.bins} if config.bins else None,
    "drop": config.drop,
    "categorical": config.categorical,
    "ranges": dict(map(_range, config.ranges)),
    "min_group_size": config.min_group_size,
  }
