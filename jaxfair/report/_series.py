"""Turns a figure's columns into panels, series and intervals."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.experiments._measures import seed_interval
from jaxfair.experiments._words import UNITS, label, words

# Okabe and Ito's colors: told apart with any kind of color vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7F00")
WIDEST_BAND = 1.5  # ranges of the means that bands may add on either side


class Series(NamedTuple):
  """One color of one panel.

  Attributes:
    name: value of the color column.
    color: from the palette; the same name has the same color everywhere.
    x: positions; names for bars, numbers otherwise.
    y: means, or single points.
    low: lower ends of the 95% intervals; NaN where there is none.
    high: upper ends.
    order: index of the series, for symbols and offsets.
  """

  name: str
  color: str
  x: list[Any]
  y: np.ndarray
  low: np.ndarray
  high: np.ndarray
  order: int


class Panel(NamedTuple):
  """One facet of a figure."""

  title: str
  series: list[Series]


def panels(figure: Figure, table: Table) -> list[Panel]:
  """The panels of a figure of this table; empty if the table lacks its columns."""
  needed = {figure.x, figure.y, figure.color, figure.facet, *figure.where}
  if any(name is not None and name not in table for name in needed):
    return []
  rows = _known(table.where(**figure.where), figure)
  if not len(rows):
    return []
  # In the order of the whole table, so that all figures of a page agree.
  names = table.unique(figure.color) if figure.color else [""]
  facets = rows.unique(figure.facet) if figure.facet else [""]
  found = []
  for facet in facets:
    part = rows.where(**{figure.facet: facet}) if figure.facet else rows
    series = []
    for order, name in enumerate(names):
      some = part.where(**{figure.color: name}) if figure.color else part
      if len(some):
        series.append(_series(figure, some, name, order))
    # A bare number does not say what it is the number of.
    named = words(figure.facet or "") + " " if isinstance(facet, float) else ""
    found.append(Panel(named + label(facet), series))
  return found


def settled(figure: Figure, table: Table) -> Figure:
  """The figure with its options settled for this table.

  Lines over a column with one value would stand on top of each other: they
  become points side by side, with the names of their colors below.
  """
  if figure.mark != "line" or figure.color is None:
    return figure
  if any(name not in table for name in (figure.x, *figure.where)):
    return figure
  values = table.where(**figure.where).unique(figure.x)
  if len(values) != 1:
    return figure
  title = f"{words(figure.color)} ({words(figure.x)} {label(values[0])})"
  return dataclasses.replace(figure, x=figure.color, x_title=title, log_x=False)


def view(figure: Figure, panels: list[Panel]) -> tuple[float, float] | None:
  """Ends of the y-axis where intervals would swamp the means; else None.

  Student's intervals of two seeds are huge. Lines then have most of the axis,
  and bands run out of it.
  """
  if figure.mark != "line" or figure.log_y:
    return None
  drawn = [one for panel in panels for one in panel.series]
  means = np.concatenate([one.y for one in drawn])
  ends = np.concatenate([np.r_[one.low, one.high] for one in drawn])
  ends = ends[np.isfinite(ends)]
  if figure.reference is not None:
    means = np.r_[means, figure.reference]
  low, high = float(means.min()), float(means.max())
  room = WIDEST_BAND * (high - low)
  if not len(ends) or room == 0:
    return None
  if ends.min() >= low - room and ends.max() <= high + room:
    return None
  return max(low - room, ends.min()), min(high + room, ends.max())


def columns(panels: int) -> int:
  """How many panels stand side by side."""
  return 2 if panels == 4 else min(panels, 3)


def axis_title(figure: Figure, which: str) -> str:
  """The given title, or the column's name in words with its unit."""
  title = figure.x_title if which == "x" else figure.y_title
  column = figure.x if which == "x" else figure.y
  return title or UNITS.get(column, words(column))


def _known(rows: Table, figure: Figure) -> Table:
  """The rows that can be drawn: those with finite numbers on the axes."""
  keep = np.ones(len(rows), dtype=bool)
  for column in (figure.y,) if figure.mark == "bar" else (figure.x, figure.y):
    values = rows[column]
    number = values.dtype.kind == "f"
    keep &= np.isfinite(values) if number else column == figure.x
  return rows.keep(keep)


def _series(figure: Figure, rows: Table, name: object, order: int) -> Series:
  color = PALETTE[order % len(PALETTE)]
  if figure.mark == "point":
    nothing = np.full(len(rows), np.nan)
    return Series(
      label(name), color, rows[figure.x].tolist(), rows[figure.y], nothing, nothing, order
    )
  positions, means, lows, highs = [], [], [], []
  for (position,), repeats in rows.split(figure.x):
    found = seed_interval(figure.y, repeats[figure.y])
    positions.append(position)
    means.append(found.estimate)
    lows.append(found.low)
    highs.append(found.high)
  if figure.mark == "line":
    by_x = np.argsort(np.array(positions))
  else:
    by_x = np.arange(len(positions))
  shown = [positions[i] for i in by_x]
  if figure.mark == "bar":
    shown = [label(p) for p in shown]
  return Series(
    label(name),
    color,
    shown,
    np.array(means)[by_x],
    np.array(lows)[by_x],
    np.array(highs)[by_x],
    order,
  )
