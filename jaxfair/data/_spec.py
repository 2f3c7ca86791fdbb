"""What is known about a named set, and how a table becomes a Dataset."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.data import _files as files
from jaxfair.data import _rules, _tables
from jaxfair.data._columns import encode_columns, fit_columns
from jaxfair.data._dataset import Dataset, Provenance
from jaxfair.data._encoder import Encoder
from jaxfair.data._reading import Layout
from jaxfair.data._rules import Rule
from jaxfair.data._tables import Table
from jaxfair.types import Examples

LABEL_GROUP = "label"
ONE_GROUP = "all"


class Raw(NamedTuple):
  """A set as read from its files, before labels and groups are chosen.

  Attributes:
    table: what is known about each row.
    images: [n, h, w, c], uint8 or float32 in [0, 1], where rows are images.
    test_rows: [n] whether the row belongs to the official test part.
    row_names: [n] names of the rows.
  """

  table: Table
  images: np.ndarray | None = None
  test_rows: np.ndarray | None = None
  row_names: np.ndarray | None = None


class Figure(NamedTuple):
  """A number that the table must give."""

  what: str
  compute: Callable[[Table], float]
  expected: float


@dataclasses.dataclass(frozen=True)
class Facts:
  """What a set must look like once it is loaded.

  Attributes:
    classes: rows per class of the default label.
    groups: rows per group, for the group definitions that are listed.
    figures: further numbers of its table.
  """

  classes: tuple[int, ...]
  groups: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
  figures: tuple[Figure, ...] = ()


class Form(NamedTuple):
  """One way in which a set lies on disk.

  Attributes:
    files: what has to be there.
    read: reads it.
    facts: what the loaded set must look like, where this form holds another
      selection than the others.
  """

  files: tuple[files.Wanted, ...]
  read: Callable[[files.Files], Raw]
  facts: Facts | None = None


@dataclasses.dataclass(frozen=True)
class Spec:
  """A named data set, declared.

  Attributes:
    name: what `load` takes.
    source: license, origin, cautions.
    folders: names of its folder under a root; the first is where fetch writes.
    forms: the ways it may lie on disk, the preferred one first.
    labels: what can be predicted; the first is the default.
    groups: what people can be grouped by; the first is the default.
    facts: what the loaded set must look like.
    drop: columns that are never features (ids, and what gives away the label).
    unit: the column that tells one person's rows from another's.
  """

  name: str
  source: Provenance
  folders: tuple[str, ...]
  forms: tuple[Form, ...]
  labels: Mapping[str, Rule]
  groups: Mapping[str, Rule]
  facts: Facts
  drop: tuple[str, ...] = ()
  unit: str | None = None

  @property
  def group_choices(self) -> tuple[str, ...]:
    """Everything `group=` takes, without the intersections."""
    return tuple(dict.fromkeys((*self.groups, LABEL_GROUP, ONE_GROUP)))

  def label_rule(self, label: str | None) -> Rule:
    """The rule of the named label (default: the first)."""
    label = next(iter(self.labels)) if label is None else label
    checks.one_of("label", label, self.labels)
    return self.labels[label]

  def group_rule(self, group: str | None, label: Rule) -> Rule:
    """The rule of a group definition, or of an intersection "sex*race"."""
    group = self.group_choices[0] if group is None else group
    named = {ONE_GROUP: _rules.everyone(), LABEL_GROUP: label, **self.groups}
    parts = [part.strip() for part in group.split("*")]
    for part in parts:
      checks.one_of("group", part, self.group_choices)
    chosen = [named[part] for part in parts]
    return chosen[0] if len(chosen) == 1 else _rules.cross(chosen)


def assemble(
  name: str,
  raw: Raw,
  *,
  label: Rule,
  group: Rule,
  source: Provenance,
  drop: Collection[str] = (),
  unit: str | None = None,
  keep_group_features: bool = False,
  ranges: Mapping[str, tuple[float, float]] | None = None,
  categories: Mapping[str, Sequence[str]] | None = None,
  layout: Layout | None = None,
) -> Dataset:
  """Makes a Dataset of a table (or of images and what is known about them).

  The columns that make the group are left out of the features unless
  `keep_group_features`; those that make the label always are.
  """
  label, group = label.fit(raw.table), group.fit(raw.table)
  classes, groups = label.ids(raw.table), group.ids(raw.table)
  inside = (classes != _rules.LEFT_OUT) & (groups != _rules.LEFT_OUT)
  rows: Any = slice(None) if inside.all() else np.flatnonzero(inside)
  table = _tables.take(raw.table, rows)
  hidden = {*drop, *label.hidden_columns, *([unit] if unit else [])}
  if not keep_group_features:
    hidden.update(group.hidden_columns)
  encoder = None
  if raw.images is None:
    kept = [column for column in table if column not in hidden]
    columns = fit_columns(table, kept, ranges=ranges, categories=categories)
    encoder = Encoder(columns, label, group, layout)
    x = encode_columns(columns, table, int(inside.sum()))
  else:
    x = _pixels(raw.images[rows])
  return Dataset(
    name=name,
    examples=Examples(x, classes[rows].astype(np.int32), groups[rows].astype(np.int32)),
    class_names=label.names,
    group_names=group.names,
    feature_names=encoder.feature_names if encoder else (),
    columns=encoder.feature_columns if encoder else (),
    encoder=encoder,
    source=source,
    unit=_ids(table[unit]) if unit else None,
    test_rows=None if raw.test_rows is None else raw.test_rows[rows],
    row_names=None if raw.row_names is None else raw.row_names[rows],
  )


def _pixels(images: np.ndarray) -> np.ndarray:
  pixels = images.astype(np.float32)
  if images.dtype == np.uint8:
    pixels /= 255
  return pixels


def _ids(values: np.ndarray) -> np.ndarray:
  return _tables.levels(values).codes.astype(np.int32)
