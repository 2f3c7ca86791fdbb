"""The list of named sets, which of them are on disk, and whether they are intact."""

import dataclasses
import pathlib

from jaxfair.data import _loading
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import DataError, PathLike
from jaxfair.data._loading import Opened
from jaxfair.data._origins import Manual
from jaxfair.data._sets.addresses import ORIGINS
from jaxfair.data._spec import Spec


@dataclasses.dataclass(frozen=True)
class Entry:
  """One line of the catalog.

  Attributes:
    name: what `load` takes.
    source: title, license, origin, cautions.
    paths: where its files lie; None if they are not here.
    rows: number of rows.
    classes: rows per class of the default label.
    labels: what can be predicted; the first is the default.
    groups: what people can be grouped by; the first is the default.
    group_sizes: rows per group, for the definitions whose sizes are known.
    how: how to get it.
  """

  name: str
  source: Provenance
  paths: tuple[pathlib.Path, ...] | None
  rows: int
  classes: tuple[int, ...]
  labels: tuple[str, ...]
  groups: tuple[str, ...]
  group_sizes: dict[str, tuple[int, ...]]
  how: str

  @property
  def available(self) -> bool:
    """Whether `load` would find it."""
    return self.paths is not None


@dataclasses.dataclass(frozen=True)
class Description(Entry):
  """An entry and, for a set that is here, the names behind its numbers.

  Attributes:
    class_names: of the default label.
    group_names: rows of every group by name, for every group definition;
      empty if the set is not here.
  """

  class_names: tuple[str, ...] = ()
  group_names: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Check:
  """One thing that was verified."""

  what: str
  expected: object
  found: object
  ok: bool


def catalog(root: PathLike | None = None) -> list[Entry]:
  """Every named data set, downloaded or not; opens no file."""
  return [_entry(spec, root) for spec in _loading.SPECS.values()]


def describe(name: str) -> Description:
  """Describes one named data set; reads it if it is on disk."""
  spec = _loading.find_spec(name)
  entry = _entry(spec, None)
  fields = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)}
  if not entry.available:
    return Description(**fields)
  table = _loading.open_set(spec, None).raw.table
  label = spec.label_rule(None)
  chosen = {group: spec.group_rule(group, label) for group in entry.groups}
  return Description(
    **fields,
    class_names=label.assign(table).names,
    group_names={
      group: dict(zip(rule.assign(table).names, _loading.count(rule, table), strict=True))
      for group, rule in chosen.items()
    },
  )


def check(name: str, *, root: PathLike | None = None) -> list[Check]:
  """Verifies one set: checksums, that it loads, and its known figures.

  Raises:
    DataError: the set is not here.
  """
  spec = _loading.find_spec(name)
  if _loading.locate(spec, root) is None:
    raise _loading.not_found(spec, root)
  try:
    opened = _loading.open_set(spec, root)
  except DataError as error:
    return [Check("files", "as known", str(error), False)]
  verified = [
    Check(str(path), "as known", "as known", True) for path in opened.files.paths.values()
  ]
  return verified + _figures(spec, opened)


def _figures(spec: Spec, opened: Opened) -> list[Check]:
  table = opened.raw.table
  expected = _loading.facts_of(spec, opened.form)
  label = spec.label_rule(None)
  found = [_compare("rows per class", expected.classes, _loading.count(label, table))]
  found += [
    _compare(
      f"rows per group, {group}", sizes, _loading.count(spec.group_rule(group, label), table)
    )
    for group, sizes in expected.groups.items()
  ]
  found += [
    _compare(figure.what, figure.expected, figure.compute(table)) for figure in expected.figures
  ]
  return found


def _compare(what: str, expected: object, found: object) -> Check:
  return Check(what, expected, found, expected == found)


def _entry(spec: Spec, root: PathLike | None) -> Entry:
  located = _loading.locate(spec, root)
  form = spec.forms[0] if located is None else located[0]
  facts = _loading.facts_of(spec, form)
  return Entry(
    name=spec.name,
    source=spec.source,
    paths=None if located is None else tuple(located[1].paths.values()),
    rows=sum(facts.classes),
    classes=facts.classes,
    labels=tuple(spec.labels),
    groups=spec.group_choices,
    group_sizes=dict(facts.groups),
    how=_how(spec.name),
  )


def _how(name: str) -> str:
  origins = ORIGINS.get(_loading.base_name(name), ())
  if not origins:
    return "comes with jaxfair"
  if isinstance(origins[0], Manual):
    return f"by hand from {origins[0].where}"
  return f"`jaxfair data fetch {_loading.base_name(name)}` ({origins[0]})"
