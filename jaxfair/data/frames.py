"""Bring your own data: a frame or a CSV file, with the names of its columns."""

import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data import rules, tables
from jaxfair.data.dataset import Dataset, Source
from jaxfair.data.files import PathLike, read_text
from jaxfair.data.rules import Rule
from jaxfair.data.spec import Raw, assemble
from jaxfair.data.tables import Table

MAX_CLASSES = 100
MAX_GROUPS = 50
# More numbers than this, and a column is a measurement rather than a code.
MAX_CODES = 20
# More words than this, and a column is a name or an id.
MAX_WORDS = 1000


def from_frame(
  frame: Any,
  *,
  label: str,
  group: str | Sequence[str],
  positive: str | float | bool | None = None,
  threshold: float | None = None,
  bins: Mapping[str, Sequence[float]] | None = None,
  drop: Collection[str] = (),
  categorical: Collection[str] = (),
  unit: str | None = None,
  keep_group_features: bool = False,
  max_groups: int = MAX_GROUPS,
  name: str = "own data",
  source: Source | None = None,
) -> Dataset:
  """Makes a data set of anything with named columns, in one call.

  Args:
    frame: a pandas or polars frame, or a mapping of names to columns.
    label: the column to predict.
    group: the column that says who belongs to which group; several for their
      intersections; () for one group of everyone.
    positive: the label's value that is class 1; every other is class 0.
    threshold: class 1 is a label above this number.
    bins: column -> rising edges, for groups made of numbers, such as
      {"age": [25, 60]} for under 25, 25 to 60, and from 60 on.
    drop: columns that are not features: ids, names, what gives the label away.
    categorical: columns of numbers that are codes; they become one-hot.
    unit: the column that tells whose row it is; splits keep it together.
    keep_group_features: let the model see the columns that make the group.
    max_groups: refuse more groups than this.
    name: what to call the set.
    source: licence, origin and cautions.

  Returns:
    The data set. Words are one-hot; missing numbers stay NaN until `prepare`.
  """
  table = _table(frame, categorical, drop)
  groups = (group,) if isinstance(group, str) else tuple(group)
  bins = dict(bins or {})
  for role, names in (
    ("label", (label,)),
    ("group", groups),
    ("bins", bins),
    ("categorical", categorical),
    ("unit", () if unit is None else (unit,)),
  ):
    for column in names:
      tables.column(table, column, role)
  checks.require(
    set(bins) <= set(groups),
    f"bins={sorted(set(bins) - set(groups))} are not columns of group=; bins "
    "cut the group's numbers",
  )
  _check_words(table, {label, *groups, unit})
  dataset = assemble(
    name,
    Raw(table),
    label=_label_rule(table, label, positive, threshold),
    group=_group_rule(table, groups, bins, max_groups),
    source=source or Source(name, "yours", "brought by the user"),
    unit=unit,
    keep_group_features=keep_group_features,
  )
  _check(dataset, label, groups, max_groups)
  return dataset


def from_csv(
  path: PathLike,
  *,
  label: str,
  group: str | Sequence[str],
  separator: str = ",",
  categorical: Collection[str] = (),
  missing: Collection[str] = tuple(tables.MISSING),
  encoding: str = "utf-8-sig",
  name: str | None = None,
  **options: Any,
) -> Dataset:
  """Makes a data set of a CSV file (plain or .gz) with a header line.

  Args:
    path: the file.
    label: the column to predict.
    group: the column, or columns, of the group.
    separator: what stands between two cells.
    categorical: columns of numbers that are codes.
    missing: cells that mean "not known".
    encoding: of the characters.
    name: what to call the set; default the file's name.
    **options: what `from_frame` takes besides.

  Returns:
    The data set.
  """
  path = pathlib.Path(path)
  text = read_text(path, encoding)
  try:
    table = tables.parse(text, separator=separator, categorical=categorical, missing=missing)
    return from_frame(
      table,
      label=label,
      group=group,
      categorical=categorical,
      name=name or path.name.split(".")[0],
      **options,
    )
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None


def _table(frame: Any, categorical: Collection[str], drop: Collection[str]) -> Table:
  names = list(frame.keys() if isinstance(frame, Mapping) else frame.columns)
  checks.require(bool(names), "frame has no columns; pass at least two")
  checks.require(len(set(names)) == len(names), "frame has columns of the same name; rename them")
  for name in drop:
    checks.require(name in names, f"drop {name!r} is not a column; {checks.options(name, names)}")
  table = {
    str(name): _column(str(name), frame[name], name in categorical)
    for name in names
    if name not in drop
  }
  checks.require(bool(table), "drop leaves no column")
  checks.same_length(**table)
  checks.require(tables.size(table) > 0, "frame has no rows")
  return table


def _check_words(table: Table, roles: Collection[str | None]) -> None:
  for name, values in table.items():
    if values.dtype.kind != "f" and name not in roles:
      distinct = len(np.unique(values))
      checks.require(
        distinct <= MAX_WORDS,
        f"column {name!r} has {distinct} different words, each of which would "
        "become a feature; name it in drop=, or make it coarser",
      )


def _column(name: str, values: Any, categorical: bool) -> np.ndarray:
  array = np.asarray(values)
  checks.require(
    array.ndim == 1, f"column {name!r} has shape {array.shape}; a column holds one value a row"
  )
  checks.require(
    array.dtype.kind not in "mM",
    f"column {name!r} holds dates; turn them into numbers, or name it in drop=",
  )
  if array.dtype.kind in "biuf":
    numbers = array.astype(np.float64)
    return tables.words(numbers) if categorical else numbers
  known = [_known(value) for value in array.tolist()]
  return tables.typed(np.array(known, dtype=np.str_), categorical)


def _known(value: Any) -> str:
  # None, NaN, pandas.NA and NaT are the values that do not equal themselves.
  try:
    missing = value is None or bool(value != value)
  except TypeError:
    missing = True
  if missing:
    return ""
  if isinstance(value, bool):
    return str(int(value))
  return str(value).strip()


def _label_rule(
  table: Table, label: str, positive: str | float | bool | None, threshold: float | None
) -> Rule:
  values = table[label]
  unknown = np.isnan(values) if values.dtype.kind == "f" else values == ""
  checks.require(
    not unknown.any(),
    f"label {label!r} is missing in {int(unknown.sum())} rows (the first is "
    f"row {int(unknown.argmax())}); drop these rows first",
  )
  checks.require(
    positive is None or threshold is None,
    "positive= and threshold= both define class 1; pass one of them",
  )
  if threshold is not None:
    return rules.above(label, threshold)
  found = tables.words(values)
  distinct = np.unique(found)
  if positive is not None:
    value = _shown(positive)
    checks.require(
      value in distinct,
      f"positive={positive!r} is not a value of label {label!r}; "
      f"{checks.options(value, distinct[:MAX_CODES].tolist())}",
    )
    return rules.against(label, value, (f"not {value}", value))
  checks.require(
    values.dtype.kind != "f" or len(distinct) <= MAX_CODES,
    f"label {label!r} has {len(distinct)} different numbers; pass threshold= "
    "to cut it in two, or positive= to name class 1",
  )
  checks.require(
    len(distinct) <= MAX_CLASSES,
    f"label {label!r} has {len(distinct)} different values; pass positive= to name class 1",
  )
  return rules.values(label)


def _group_rule(
  table: Table, groups: tuple[str, ...], bins: Mapping[str, Sequence[float]], max_groups: int
) -> Rule:
  if not groups:
    return rules.everyone()
  parts = []
  for column in groups:
    if column in bins:
      rule = rules.bins(column, bins[column])
      ids, names = rule.assign(table)
      empty = set(range(len(names))) - set(ids.tolist())
      checks.require(
        not empty,
        f"bins={tuple(bins[column])} of {column!r} leave the group "
        f"{names[min(empty, default=0)]!r} empty; move the edges",
      )
    else:
      rule = rules.values(column)
      distinct = len(np.unique(tables.words(table[column])))
      numbers = table[column].dtype.kind == "f"
      checks.require(
        distinct <= (min(MAX_CODES, max_groups) if numbers else max_groups),
        f"group {column!r} has {distinct} different values; pass "
        + (
          f"bins={{{column!r}: [edges]}} to cut it into ranges"
          if numbers
          else "a coarser column, or a larger max_groups"
        ),
      )
    parts.append(rule)
  return parts[0] if len(parts) == 1 else rules.cross(parts)


def _check(dataset: Dataset, label: str, groups: tuple[str, ...], max_groups: int) -> None:
  present = [name for name, count in dataset.class_sizes.items() if count]
  checks.require(
    len(present) > 1,
    f"label {label!r} has one class only ({', '.join(present)}); there is nothing to learn",
  )
  checks.require(
    dataset.num_groups <= max_groups,
    f"group={list(groups)} makes {dataset.num_groups} groups; use fewer "
    "columns, or a larger max_groups",
  )


def _shown(value: str | float | bool) -> str:
  if isinstance(value, str):
    return value
  return str(tables.words(np.array([value], np.float64))[0])
