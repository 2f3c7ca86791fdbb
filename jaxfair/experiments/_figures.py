"""Figures and tables of means, described by table columns.

    lines("risks: Excess risk along training", "excess_risk ~ step, role | data", zero=True)

A formula names columns: `y ~ x, color | facet` for a picture, `values ~ by` for a table. Rows that
agree in everything but the seed are repetitions: their mean is drawn with a 95% interval.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
  from jaxfair.experiments._table import Table

Where = Mapping[str, Any]
FORMULA = re.compile(r"(\w+) ~ (\w+)(?:, (\w+))?(?: \| (\w+))?")


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure, described by table columns; the report draws it.

  Attributes:
    name: file name, unique in the study.
    title: what one sees, as a sentence.
    x: column on the horizontal axis.
    y: column on the vertical axis.
    mark: bars, lines with a band, or points.
    color: column that tells the series apart.
    facet: column with one panel per value.
    caption: how to read it.
    x_title: axis title; the column's title in the study or its name in words by default.
    y_title: the same for the vertical axis.
    log_x: logarithmic horizontal axis.
    log_y: logarithmic vertical axis.
    where: keeps only rows with these values.
    reference: draws a horizontal line here, e.g. parity at 0.
  """

  name: str
  title: str
  x: str
  y: str
  mark: Literal["bar", "line", "point"] = "bar"
  color: str | None = None
  facet: str | None = None
  caption: str = ""
  x_title: str = ""
  y_title: str = ""
  log_x: bool = False
  log_y: bool = False
  where: Where = dataclasses.field(default_factory=dict)
  reference: float | None = None

  @property
  def columns(self) -> tuple[str, ...]:
    """The columns that it names, but for those of `where`."""
    return tuple(c for c in (self.x, self.y, self.color, self.facet) if c)


@dataclasses.dataclass(frozen=True)
class OwnFigure:
  """A figure that a function of the table draws, with matplotlib or plotly.

  Attributes:
    name: file name, unique in the study.
    title: what one sees, as a sentence.
    draw: `table -> figure`; None if the table has nothing for it.
    caption: how to read it.
  """

  name: str
  title: str
  draw: Callable[["Table"], Any]
  caption: str = ""

  @classmethod
  def of(cls, draw: Callable[["Table"], Any]) -> "OwnFigure":
    """A function as a figure: its name, the first line of its docstring, and the rest of it."""
    title, _, caption = (inspect.getdoc(draw) or draw.__name__).partition("\n")
    return cls(draw.__name__, title.rstrip("."), draw, " ".join(caption.split()))


@dataclasses.dataclass(frozen=True)
class Summary:
  """A table of means with their 95% intervals over repetitions.

  Attributes:
    title: what one reads off it.
    by: columns that name a line of the table.
    values: columns that are averaged.
    where: keeps only rows with these values.
  """

  title: str
  by: Sequence[str]
  values: Sequence[str]
  where: Where = dataclasses.field(default_factory=dict)

  @property
  def columns(self) -> tuple[str, ...]:
    """The columns that it names, but for those of `where`."""
    return (*self.by, *self.values)


def bars(told: str, formula: str, caption: str = "", **options: Any) -> Figure:
  """Bars; see `lines`."""
  return _figure("bar", told, formula, caption, **options)


def points(told: str, formula: str, caption: str = "", **options: Any) -> Figure:
  """Points; see `lines`."""
  return _figure("point", told, formula, caption, **options)


def lines(told: str, formula: str, caption: str = "", **options: Any) -> Figure:
  """Lines with a band.

  Args:
    told: "name: title".
    formula: "y ~ x, color | facet"; color and facet may be left out.
    caption: how to read it.
    **options: `log` ("x", "y" or "xy"), `zero` (a horizontal line at 0), `where` and what else
      a `Figure` has.
  """
  return _figure("line", told, formula, caption, **options)


def summary(title: str, formula: str, where: Where | None = None) -> Summary:
  """A table of means: `summary("By group", "accuracy, loss ~ method, group")`."""
  values, by = (tuple(side.split(", ")) for side in formula.split(" ~ "))
  return Summary(title, by, values, where or {})


def _figure(
  mark: Literal["bar", "line", "point"],
  told: str,
  formula: str,
  caption: str,
  *,
  log: str = "",
  zero: bool = False,
  **options: Any,
) -> Figure:
  (name, _, title), found = told.partition(": "), FORMULA.fullmatch(formula)
  if not title or found is None:
    raise ValueError(f'{told!r}, {formula!r}: write "name: title", "y ~ x, color | facet"')
  y, x, color, facet = found.groups()
  options = {"reference": 0.0 if zero else None} | options
  return Figure(
    name, title, x, y, mark, color, facet, caption, log_x="x" in log, log_y="y" in log, **options
  )
