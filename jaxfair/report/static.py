"""Figures as PNG files, for papers and slides."""

import math
import pathlib

import numpy as np

from jaxfair.report import series
from jaxfair.studies import Figure, Table

PANEL = (4.6, 3.4)  # inches
MARKERS = ("o", "s", "D", "^", "x", "P", "*")


def save(figure: Figure, table: Table, path: pathlib.Path) -> bool:
  """Draws a figure into a PNG file; False if the table has nothing for it."""
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure as Canvas

  found = series.panels(figure, table)
  if not found:
    return False
  across = min(len(found), 3)
  down = math.ceil(len(found) / across)
  canvas = Canvas(
    figsize=(PANEL[0] * across, PANEL[1] * down + 0.5), layout="constrained"
  )
  FigureCanvasAgg(canvas)
  axes = canvas.subplots(down, across, squeeze=False)
  for axis, panel in zip(axes.flat, found, strict=False):
    _draw(figure, axis, panel)
  for axis in axes.flat[len(found) :]:
    axis.set_visible(False)
  canvas.suptitle(figure.title, fontsize=12, x=0.02, ha="left")
  handles, names = axes.flat[0].get_legend_handles_labels()
  if figure.colour:
    title = series.words(figure.colour)
    canvas.legend(
      handles, names, title=title, loc="outside right upper", frameon=False
    )
  canvas.savefig(path, dpi=150)
  return True


def _draw(figure: Figure, axis: object, panel: series.Panel) -> None:
  from matplotlib.axes import Axes

  assert isinstance(axis, Axes)
  if figure.mark == "bar":
    _bars(axis, panel)
  for one in panel.series:
    marker = MARKERS[one.order % len(MARKERS)]
    if figure.mark == "line":
      axis.plot(one.x, one.y, color=one.colour, marker=marker, label=one.name)
      axis.fill_between(one.x, one.low, one.high, color=one.colour, alpha=0.2)
    elif figure.mark == "point":
      axis.scatter(one.x, one.y, color=one.colour, marker=marker, alpha=0.7,
                   label=one.name)  # fmt: skip
  if figure.log_x:
    axis.set_xscale("log")
  if figure.log_y:
    axis.set_yscale("log")
  if figure.reference is not None:
    axis.axhline(figure.reference, color="grey", linewidth=1, linestyle=":")
  axis.set_xlabel(series.axis_title(figure, "x"))
  axis.set_ylabel(series.axis_title(figure, "y"))
  axis.set_title(panel.title, fontsize=10, loc="left")
  axis.spines[["top", "right"]].set_visible(False)
  axis.grid(axis="y", alpha=0.3)


def _bars(axis: object, panel: series.Panel) -> None:
  from matplotlib.axes import Axes

  assert isinstance(axis, Axes)
  names = list(dict.fromkeys(x for one in panel.series for x in one.x))
  width = 0.8 / len(panel.series)
  for i, one in enumerate(panel.series):
    places = np.array([names.index(x) for x in one.x])
    places = places + (i - (len(panel.series) - 1) / 2) * width
    ends = np.nan_to_num(np.abs(np.stack([one.y - one.low, one.high - one.y])))
    axis.bar(places, one.y, width * 0.92, yerr=ends, capsize=3, label=one.name,
             color=one.colour, error_kw={"linewidth": 1})  # fmt: skip
  axis.set_xticks(range(len(names)), names)
