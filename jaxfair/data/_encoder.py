"""How a table of people becomes features, class ids and group ids.

An `Encoder` is plain data: it is fitted once, written down with a model, and
encodes people who come later to the same bits, in another process.
"""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxfair import _schema, checks
from jaxfair.data import _tables
from jaxfair.data._columns import Categorical, Numeric, bounds, encode_columns, features
from jaxfair.data._files import PathLike
from jaxfair.data._reading import Layout, read_file
from jaxfair.data._rules import LEFT_OUT, MISSING_NAME, Rule
from jaxfair.data._tables import Table


class Encoded(NamedTuple):
  """People as arrays.

  Attributes:
    x: [n, d] float32; missing numbers are NaN unless their column says otherwise.
    y: [n] int32 class ids; None if they were not asked for.
    group: [n] int32 group ids, -1 for a group that the encoder does not know; None if they were
      not asked for.
  """

  x: np.ndarray
  y: np.ndarray | None
  group: np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Encoder:
  """How a table becomes features, class ids and group ids.

  Attributes:
    columns: the columns that features are made of, in order.
    label: how the class follows from its column.
    group: how the group follows from its columns.
    layout: format of the file that it was fitted on; None if that was not a text file.
  """

  columns: tuple[Numeric | Categorical, ...]
  label: Rule
  group: Rule
  layout: Layout | None = None

  @property
  def class_names(self) -> tuple[str, ...]:
    """The name of class id 0, 1, ..."""
    return self.label.names

  @property
  def group_names(self) -> tuple[str, ...]:
    """The name of group id 0, 1, ..."""
    return self.group.names

  @property
  def feature_names(self) -> tuple[str, ...]:
    """[d] "age", or "job=teacher" for a category."""
    return tuple(name for column in self.columns for name in features(column))

  @property
  def feature_columns(self) -> tuple[str, ...]:
    """[d] the column behind each feature."""
    return tuple(column.name for column in self.columns for _ in features(column))

  @property
  def text_columns(self) -> tuple[str, ...]:
    """Columns whose cells are compared as text, even where they look like numbers."""
    words = [column.name for column in self.columns if isinstance(column, Categorical)]
    return tuple(dict.fromkeys((*words, *self.label.text_columns, *self.group.text_columns)))

  def read(self, path: PathLike, **options: Any) -> Table:
    """Reads a file of people to encode.

    Args:
      path: CSV, Excel or Parquet. Separator and encoding of a text file are detected; if the
        separator is that of the file that the encoder was fitted on, so is the decimal sign.
      **options: what `read_table` takes.
    """
    columns = [column.name for column in self.columns]
    table, _ = read_file(
      pathlib.Path(path),
      like=self.layout,
      needed=[*columns, *self.label.columns, *self.group.columns],
      **{"text": self.text_columns, **options},
    )
    return table

  def encode(self, table: object, *, need_label: bool = False, need_group: bool = False) -> Encoded:
    """Encodes people, who may be new.

    Args:
      table: a pandas or polars frame, or a mapping of names to columns. Columns that the encoder
        does not know are ignored. `notes` says what it could not place.
      need_label: also encode the label; a missing or unknown label is an error.
      need_group: also encode the group; an unknown group gets the id -1.

    Returns:
      `(x, y, group)`; y and group are None unless asked for.

    Raises:
      ArgumentError: if columns are missing, or a numeric column has text.
    """
    found = self._table(table, need_label=need_label, need_group=need_group)
    y = self.label.ids(found).astype(np.int32) if need_label else None
    if y is not None:
      _require_classes(y, found, self.label)
    group = self.group.ids(found).astype(np.int32) if need_group else None
    return Encoded(encode_columns(self.columns, found, _tables.num_rows(table)), y, group)

  def notes(self, table: object) -> tuple[str, ...]:
    """Notes for the reader of predictions: counts of cells that `encode` could not place."""
    found = self._table(table)
    told = []
    for column in self.columns:
      values = found[column.name]
      if isinstance(column, Categorical):
        words, codes = _tables.levels(values)
        strange = [word not in column.values for word in words]
        rows = np.bincount(codes, minlength=len(words))[strange].sum() if words else 0
        if rows:
          first = words[strange.index(True)] or MISSING_NAME
          told.append(
            f"{rows} rows have a value of {column.name!r} that the model has not seen (such as "
            f"{checks.shown(first)}); none of its categories is set for them"
          )
      elif column.low is not None or column.high is not None:
        low, high = bounds(column)
        rows = int(((values < low) | (values > high)).sum())
        if rows:
          told.append(
            f"{rows} rows have {column.name!r} outside [{low:g}, {high:g}]; the nearest bound "
            "was used"
          )
    return tuple(told)

  def assumed_public(self) -> tuple[str, ...]:
    """Sentences on what the encoding reveals about the people without being charged."""
    told = []
    for origin, how in (
      ("declared", "declared by the user, without looking at the people"),
      ("given", "taken from another table, which is public"),
      ("data", "taken from the private people themselves and assumed public"),
    ):
      ranges = [c.name for c in self.columns if isinstance(c, Numeric) and c.low is not None]
      for what, names in (
        ("range", [c.name for c in self.columns if c.origin == origin and c.name in ranges]),
        (
          "set of categories",
          [c.name for c in self.columns if c.origin == origin and isinstance(c, Categorical)],
        ),
      ):
        if names:
          told.append(f"the {what} of {', '.join(names)} was {how}")
    classes = ", ".join(self.label.columns)
    groups = ", ".join(self.group.columns)
    told.append(
      f"the names and kinds of the columns, the names of the classes ({classes})"
      + (f" and of the groups ({groups})" if groups else "")
      + " were assumed public"
    )
    if self.layout is not None:
      # One cell may decide it: a letter that is not ASCII, a number with a comma.
      told.append(
        "how the file is written (separator, decimal sign, encoding of characters) was assumed "
        "public"
      )
    return tuple(told)

  def given(self) -> "Encoder":
    """The encoder for other people than those it was fitted on, who assume it public."""
    columns = tuple(
      dataclasses.replace(column, origin="given") if column.origin == "data" else column
      for column in self.columns
    )
    return dataclasses.replace(self, columns=columns)

  def to_record(self) -> dict[str, Any]:
    """The encoder as plain JSON values."""
    record = json.loads(json.dumps(dataclasses.asdict(self), allow_nan=False))
    assert isinstance(record, dict)
    return record

  @classmethod
  def from_record(cls, record: Mapping[str, Any]) -> "Encoder":
    """The encoder that `to_record` wrote.

    Raises:
      ArgumentError: for anything else, naming the key that is wrong.
    """
    return _schema.build(cls, record, where="encoder.")

  def _table(self, table: object, *, need_label: bool = False, need_group: bool = False) -> Table:
    wanted = [column.name for column in self.columns]
    wanted += self.label.columns if need_label else ()
    wanted += self.group.columns if need_group else ()
    return _tables.select(table, tuple(dict.fromkeys(wanted)), text=self.text_columns)


def _require_classes(y: np.ndarray, table: Table, label: Rule) -> None:
  missing = np.zeros(len(y), bool)
  for name in label.columns:
    missing |= _tables.unknown(table[name])
  told = ", ".join(label.columns)
  checks.require(
    not missing.any(),
    f"label {told!r} is missing in {int(missing.sum())} rows (the first is data row "
    f"{int(missing.argmax()) + 1}); drop these rows first",
  )
  strange = y == LEFT_OUT
  checks.require(
    not strange.any(),
    f"label {told!r} is none of the classes {', '.join(label.names)} in {int(strange.sum())} rows "
    f"(the first is data row {int(strange.argmax()) + 1}); drop these rows, or fix their labels",
  )
