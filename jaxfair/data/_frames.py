"""Bring your own data: a frame or a CSV file, with the names of its columns."""

import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair import checks
from jaxfair.data import _rules, _tables
from jaxfair.data._column_checks import MAX_CODES, check_features
from jaxfair.data._dataset import Dataset, Provenance
from jaxfair.data._encoder import Encoder
from jaxfair.data._files import PathLike
from jaxfair.data._reading import Layout, read_file
from jaxfair.data._rules import Rule
from jaxfair.data._spec import Raw, assemble
from jaxfair.data._tables import Table
from jaxfair.types import Examples

MAX_CLASSES = 100
MAX_GROUPS = 50


def from_frame(
  frame: Any,
  *,
  label: str | None = None,
  group: str | Sequence[str] | None = None,
  positive: str | float | bool | None = None,
  threshold: float | None = None,
  multiclass: bool = False,
  bins: Mapping[str, Sequence[float]] | None = None,
  drop: Collection[str] = (),
  categorical: Collection[str] = (),
  ranges: Mapping[str, tuple[float, float]] | None = None,
  categories: Mapping[str, Sequence[str]] | None = None,
  unit: str | None = None,
  keep_group_features: bool = False,
  max_groups: int = MAX_GROUPS,
  min_group_size: int = 2,
  encoder: Encoder | None = None,
  layout: Layout | None = None,
  name: str = "own data",
  source: Provenance | None = None,
) -> Dataset:
  """Makes a data set from anything with named columns, in one call.

  Args:
    frame: a pandas or polars frame, a pyarrow table, or a mapping of names to columns.
    label: the column to predict.
    group: the column that says who belongs to which group; several for their
      intersections; () for one group of everyone.
    positive: the label's value that is class 1; every other is class 0.
    threshold: class 1 is a label above this number.
    multiclass: a label of more than two values gives one class for each.
    bins: column -> increasing edges, for numeric group columns, such as
      {"age": [25, 60]} for under 25, 25 to 60, and from 60 on.
    drop: columns that are not features: ids, names, anything that reveals the label.
    categorical: numeric columns that are codes; they become one-hot.
    ranges: column -> (low, high), bounds that are known without looking at
      the people; numbers outside become the nearest bound.
    categories: column -> values that are known without looking at the people;
      other values set no category. By default the values of the column.
    unit: the column that identifies the person; splits keep a person's rows together.
    keep_group_features: let the model see the columns that make the group.
    max_groups: more groups than this raise an error.
    min_group_size: groups of fewer people than this raise an error.
    encoder: of another data set, such as a public one; it encodes these people
      the same way, and replaces everything above but `unit`.
    layout: how the file that the frame was read from is written.
    name: what to call the set.
    source: license, origin and cautions.

  Returns:
    The data set. Text columns are one-hot; missing numbers stay NaN until `prepare`.
    Its `encoder` encodes new people.
  """
  source = source or Provenance(name, "yours", "brought by the user")
  if encoder is not None:
    given: dict[str, Any] = {"label": label, "group": group, "positive": positive}
    given |= {"threshold": threshold, "bins": bins, "drop": drop, "categorical": categorical}
    given |= {"ranges": ranges, "categories": categories}
    for option, value in given.items():
      checks.require(
        value is None or value == (),
        f"{option}={checks.shown(value)} is part of the encoder; pass one of the two",
      )
    return _encoded(frame, encoder, unit, name, source)
  if label is None or group is None:
    raise checks.ArgumentError(
      "label and group are needed: name the column to predict and the column of the groups "
      "(group=() for none)"
    )
  groups = (group,) if isinstance(group, str) else tuple(group)
  bins = dict(bins or {})
  known = _tables.frame_names(frame)
  for role, columns in (
    ("label", (label,)),
    ("group", groups),
    ("bins", bins),
    ("drop", drop),
    ("categorical", categorical),
    ("ranges", ranges or ()),
    ("categories", categories or ()),
    ("unit", () if unit is None else (unit,)),
  ):
    for column in columns:
      checks.require(column in known, _no_column(role, column, known))
      checks.require(
        role == "drop" or column not in drop,
        f"{role} {column!r} is also in drop; remove it from one of them",
      )
  checks.require(
    label not in groups,
    f"label {label!r} is also the group, so each group would hold one class; choose another column",
  )
  table = _tables.select(
    frame,
    [column for column in known if column not in drop],
    text={*categorical, *(categories or ())},
  )
  checks.require(_tables.size(table) > 0, "the table has no rows; a header alone is not enough")
  checks.require(
    set(bins) <= set(groups),
    f"bins={sorted(set(bins) - set(groups))} are not columns of group=, which bins split",
  )
  roles = {label, unit, *(() if keep_group_features else groups)}
  check_features(table, roles, {*(ranges or ()), *(categories or ())}, categorical)
  dataset = assemble(
    name,
    Raw(table),
    label=_label_rule(table, label, positive, threshold, multiclass),
    group=_group_rule(table, groups, bins, max_groups),
    source=source,
    unit=unit,
    keep_group_features=keep_group_features,
    ranges=ranges,
    categories=categories,
    layout=layout,
  )
  _check(dataset, label, groups, max_groups, min_group_size)
  return dataset


def from_csv(
  path: PathLike,
  *,
  separator: str | None = None,
  decimal: str | None = None,
  encoding: str | None = None,
  missing: Collection[str] = tuple(_tables.MISSING),
  name: str | None = None,
  **options: Any,
) -> Dataset:
  """Makes a data set from a file: CSV (plain or .gz), Excel or Parquet.

  Args:
    path: the file; its first line names the columns.
    separator: separator of cells; detected by default.
    decimal: "." or ","; detected by default.
    encoding: encoding of the characters; detected by default.
    missing: cells that mean "missing".
    name: what to call the set; default the file's name.
    **options: what `from_frame` takes: label, group, ...

  Returns:
    The data set.
  """
  path = pathlib.Path(path)
  encoder = options.get("encoder")
  text = set(options.get("categorical", ())) | set(options.get("categories") or ())
  text |= set(encoder.text_columns) if encoder else set()
  table, layout = read_file(
    path, separator=separator, decimal=decimal, encoding=encoding, missing=missing, text=text
  )
  try:
    return from_frame(table, name=name or path.name.split(".")[0], layout=layout, **options)
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None


def _encoded(
  frame: Any, encoder: Encoder, unit: str | None, name: str, source: Provenance
) -> Dataset:
  x, y, group = encoder.encode(frame, need_label=True, need_group=True)
  assert y is not None
  assert group is not None
  strange = group == _rules.LEFT_OUT
  checks.require(
    not strange.any(),
    f"group {', '.join(encoder.group.columns)!r} is none of {', '.join(encoder.group_names)} in "
    f"{int(strange.sum())} rows (the first is data row {int(strange.argmax()) + 1}); drop these "
    "rows",
  )
  units = None if unit is None else _tables.select(frame, [unit])[unit]
  return Dataset(
    name=name,
    examples=Examples(x, y, group),
    class_names=encoder.class_names,
    group_names=encoder.group_names,
    feature_names=encoder.feature_names,
    columns=encoder.feature_columns,
    source=source,
    unit=None if units is None else _tables.levels(units).codes.astype(np.int32),
    encoder=encoder.given(),
  )


def _label_rule(
  table: Table,
  label: str,
  positive: str | float | bool | None,
  threshold: float | None,
  multiclass: bool,
) -> Rule:
  values = table[label]
  unknown = _tables.unknown(values)
  checks.require(
    not unknown.any(),
    f"label {label!r} is missing in {int(unknown.sum())} rows (the first is "
    f"data row {int(unknown.argmax()) + 1}); drop these rows first",
  )
  checks.require(
    positive is None or threshold is None,
    "positive= and threshold= both define class 1; pass one of them",
  )
  if threshold is not None:
    return _rules.above(label, threshold)
  distinct = _tables.levels(values).words
  if positive is not None:
    value = _shown(positive)
    checks.require(
      value in distinct,
      f"positive={positive!r} is not a value of label {label!r}; "
      f"{checks.options(value, distinct[:MAX_CODES])}",
    )
    if len(distinct) == 2:
      other = next(word for word in distinct if word != value)
      return _rules.values(label, {other: other, value: value})
    return _rules.against(label, value, (f"not {value}", value))
  checks.require(
    not _tables.is_number(values) or len(distinct) <= MAX_CODES,
    f"label {label!r} has {len(distinct)} different numbers; pass threshold= to split it at a "
    "value, or positive= to name class 1",
  )
  checks.require(
    len(distinct) <= MAX_CLASSES,
    f"label {label!r} has {len(distinct)} different values; pass positive= to name class 1",
  )
  checks.require(
    multiclass or len(distinct) <= 2,
    f"label {label!r} has {len(distinct)} values ({', '.join(distinct[:5])}"
    f"{', ...' if len(distinct) > 5 else ''}); pass positive={distinct[0]!r} for one of them "
    "against the rest, or multiclass=True for one class per value",
  )
  return _rules.values(label)


def _group_rule(
  table: Table, groups: tuple[str, ...], bins: Mapping[str, Sequence[float]], max_groups: int
) -> Rule:
  if not groups:
    return _rules.everyone()
  parts = []
  for column in groups:
    if column in bins:
      rule = _rules.bins(column, bins[column])
      ids, names = rule.assign(table)
      empty = set(range(len(names))) - set(ids.tolist())
      checks.require(
        not empty,
        f"bins={tuple(bins[column])} of {column!r} leave the group "
        f"{names[min(empty, default=0)]!r} empty; move the edges",
      )
    else:
      rule = _rules.values(column)
      distinct = len(_tables.levels(table[column]).words)
      numbers = _tables.is_number(table[column])
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
  return parts[0] if len(parts) == 1 else _rules.cross(parts)


def _check(
  dataset: Dataset, label: str, groups: tuple[str, ...], max_groups: int, min_group_size: int
) -> None:
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
  require_group_sizes(dataset.group_sizes, groups, min_group_size)


def require_group_sizes(
  sizes: Mapping[str, int], groups: Sequence[str], min_group_size: int
) -> None:
  """Raises for a group of few people, of any number of groups with their sizes."""
  smallest, count = min(sizes.items(), key=lambda item: item[1], default=("", min_group_size))
  others = sum(size < min_group_size for size in sizes.values()) - 1
  also = f" (and {others} other groups have fewer than {min_group_size})" if others > 0 else ""
  checks.require(
    count >= min_group_size,
    f"group {smallest!r} of {', '.join(groups)} has {count} "
    f"{'person' if count == 1 else 'people'}{also}, and figures of so few people are unreliable "
    f"and reveal their records; merge it with another group, drop its rows, or pass "
    f"min_group_size={count}",
  )


def _no_column(role: str, column: str, known: Collection[str]) -> str:
  told = f"{role} {column!r} is not a column; {checks.options(column, known)}"
  if any(_tables.number(name) is not None for name in known):
    told += "; the first line must name the columns: add it if it is missing"
  return told


def _shown(value: str | float | bool) -> str:
  if isinstance(value, str):
    return value
  return str(_tables.words(np.array([value], np.float64))[0])
