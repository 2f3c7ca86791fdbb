"""`load`: a named data set from the files a user has."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from jaxfair import checks
from jaxfair.data import _colored
from jaxfair.data import _files as files
from jaxfair.data._dataset import Dataset
from jaxfair.data._files import DataError, Files, PathLike
from jaxfair.data._origins import Manual
from jaxfair.data._rules import LEFT_OUT, Rule
from jaxfair.data._sets import (
  celeba,
  districts,
  faces,
  images,
  section203,
  tabular,
  uci_people,
  uci_things,
)
from jaxfair.data._sets.addresses import ORIGINS
from jaxfair.data._spec import Facts, Form, Raw, Spec, assemble
from jaxfair.data._tables import Table

SPECS: Mapping[str, Spec] = {
  spec.name: spec
  for family in (
    uci_people,
    uci_things,
    tabular,
    celeba,
    images,
    _colored,
    faces,
    districts,
    section203,
  )
  for spec in family.SPECS
}


@dataclasses.dataclass(frozen=True)
class Opened:
  """A set that was found: in which form, where, and its content."""

  form: Form
  files: Files
  raw: Raw


def names() -> tuple[str, ...]:
  """Every name that `load` takes."""
  return tuple(SPECS)


def load(
  name: str,
  *,
  label: str | None = None,
  group: str | None = None,
  root: PathLike | None = None,
  keep_group_features: bool = False,
) -> Dataset:
  """Loads a named data set.

  Files are looked for in `root`, then in $JAXFAIR_DATA, then in the user's
  cache, where `jaxfair data fetch NAME` puts them. Each is verified against
  its checksum before anything is read from it.

  Args:
    name: one of `names()`.
    label: what to predict, for sets that offer several; `describe(name)`
      lists them.
    group: how people are grouped: one definition ("sex"), an intersection
      ("sex*race"), "label" (the class is the group) or "all" (one group).
      The default is the group the papers use.
    root: a folder of data sets, or the folder of this very set.
    keep_group_features: leave the columns that make the group among the
      features. By default the model does not see the group.

  Returns:
    The data set, with missing numbers as NaN; `prepare` splits, fills and
    scales it.
  """
  spec = find_spec(name)
  label_rule = spec.label_rule(label)
  group_rule = spec.group_rule(group, label_rule)
  return assemble(
    name,
    open_set(spec, root).raw,
    label=label_rule,
    group=group_rule,
    source=spec.source,
    drop=spec.drop,
    unit=spec.unit,
    keep_group_features=keep_group_features,
  )


def find_spec(name: str) -> Spec:
  """What is known about a named set."""
  checks.one_of("name", name, SPECS)
  return SPECS[name]


def locate(spec: Spec, root: PathLike | None = None) -> tuple[Form, Files] | None:
  """The form in which the set is there, without reading it; None if not."""
  for place in files.places(spec.folders, root):
    for form in spec.forms:
      paths = files.find(form.files, place)
      if paths is not None:
        return form, Files(form.files, paths, remedy(spec.name))
  return None


def open_set(spec: Spec, root: PathLike | None = None) -> Opened:
  """Finds, verifies and reads the files of a set."""
  located = locate(spec, root)
  if located is None:
    raise not_found(spec, root)
  form, found = located
  opened = Opened(form, found, form.read(found))
  _verify(spec, opened)
  return opened


def not_found(spec: Spec, root: PathLike | None = None) -> DataError:
  """The error that says where a set was looked for and how to get it."""
  looked = ", ".join(str(base) for base in files.roots(root))
  wanted = " or ".join(form.files[0].name for form in spec.forms)
  return DataError(
    f"{spec.name} was not found: looked for {spec.folders[0]}/ with {wanted} in "
    f"{looked}; {remedy(spec.name)}"
  )


def facts_of(spec: Spec, form: Form) -> Facts:
  """What the set must look like in this form."""
  return spec.facts if form.facts is None else form.facts


def count(rule: Rule, table: Table) -> tuple[int, ...]:
  """Rows per id of a rule."""
  ids, found = rule.assign(table)
  inside = ids[ids != LEFT_OUT].astype(np.int64)
  return tuple(np.bincount(inside, minlength=len(found)).tolist())


def remedy(name: str) -> str:
  """Instructions for getting the set (again)."""
  base = base_name(name)
  origins = ORIGINS.get(base, ())
  if origins and isinstance(origins[0], Manual):
    return f"get it from {origins[0].where}"
  return f"get it with `jaxfair data fetch {base}`"


def base_name(name: str) -> str:
  """The set whose files a colored set is made of; else the name itself."""
  return name.removeprefix("colored_")


def _verify(spec: Spec, opened: Opened) -> None:
  """Raises if the content does not have the known figures of the set.

  For files without a known checksum this is what tells a truncated copy.
  """
  expected = facts_of(spec, opened.form).classes
  found = count(spec.label_rule(None), opened.raw.table)
  if found != expected:
    where = ", ".join(str(path) for path in opened.files.paths.values())
    raise DataError(
      f"{where} holds {found} rows per class where {spec.name} has {expected}: "
      f"it is incomplete or another version; {remedy(spec.name)}"
    )
