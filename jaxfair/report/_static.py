"""Figures as PNG files, for papers and slides; only where matplotlib is installed."""

import importlib.util
import math
import pathlib
import textwrap
import warnings
from typing import Any

import numpy as np

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.report import _series

PANEL = (4.6, 3.4)  # inches
BAR = 0.2  # inches a group of bars needs at least
MARKERS = ("o", "s", "D", "^", "x", "P", "*")


def can_draw() -> bool:
  """Whether matplotlib is installed, which draws the PNG files (extra `figures`)."""
  return importlib.util.find_spec("matplotlib") is not None


def save(figure: Figure, table: Table, path: pathlib.Path) -> bool:
  """Draws a figure into a PNG file; False if the table has nothing for it."""
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure as Canvas

  figure = _series.settled(figure, table)
  found = _series.panels(figure, table)
  if not found:
    return False
  across = _series.columns(len(found))
  down = math.ceil(len(found) / across)
  places = max(len({*_positions(panel)}) for panel in found)
  wide = PANEL[0] if figure.mark != "bar" else max(PANEL[0], BAR * places)
  canvas = Canvas(figsize=(wide * across, PANEL[1] * down + 0.5), layout="constrained")
  FigureCanvasAgg(canvas)
  axes = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True)
  for axis, panel in zip(axes.flat, found, strict=False):
    _draw(figure, axis, panel)
  ends = _series.view(figure, found)
  if ends is not None:
    axes.flat[0].set_ylim(*ends)  # of all: they share it
  for axis in axes.flat[len(found) :]:
    axis.set_visible(False)
  # Panels above an empty place have their own numbers below.
  for axis in axes.flat[max(0, len(found) - across) : len(found)]:
    axis.tick_params(axis="x", which="both", labelbottom=True)
  canvas.suptitle(_text(figure.title, 40 * across), fontsize=12, x=0.02, ha="left")
  if figure.color:
    # Each series once, also those that some panels lack.
    drawn: dict[str, Any] = {}
    for axis in axes.flat:
      handles, names = axis.get_legend_handles_labels()
      drawn |= dict(zip(names, handles, strict=True))
    canvas.legend(
      list(drawn.values()),
      list(drawn),
      frameon=False,
      title=_text(_series.words(figure.color)),
      loc="outside right center",
      fontsize=9,
    )
  with warnings.catch_warnings():  # names in scripts that the font lacks; the page has them
    warnings.filterwarnings("ignore", message="Glyph .* missing from font")
    canvas.savefig(path, dpi=150)
  return True


def _text(text: str, width: int = 24, lines: int = 3) -> str:
  """The name as it is, in a few short lines.

  Matplotlib reads $...$ as a formula, and leaves out what begins with "_".
  """
  wrapped = textwrap.wrap(text, width, max_lines=lines, placeholder=" ...")
  shown = "\n".join(wrapped).replace("$", r"\$")
  return f" {shown}" if shown.startswith("_") else shown


def _positions(panel: _series.Panel) -> list[Any]:
  return [x for one in panel.series for x in one.x]


def _draw(figure: Figure, axis: object, panel: _series.Panel) -> None:
  from matplotlib.axes import Axes

  assert isinstance(axis, Axes)
  if figure.mark == "bar":
    _bars(axis, panel)
  for one in panel.series:
    marker = MARKERS[one.order % len(MARKERS)]
    if figure.mark == "line":
      axis.plot(one.x, one.y, color=one.color, marker=marker, label=_text(one.name))
      axis.fill_between(one.x, one.low, one.high, color=one.color, alpha=0.2)
      if len(one.x) == 1:  # a band would have no width
        axis.vlines(one.x, one.low, one.high, color=one.color)
    elif figure.mark == "point":
      axis.scatter(one.x, one.y, color=one.color, marker=marker, alpha=0.7, label=_text(one.name))
  if figure.log_x:
    axis.set_xscale("log")
    _plain_ticks(axis.xaxis)
  elif figure.mark != "bar" and all(np.asarray(one.x).dtype.kind in "if" for one in panel.series):
    axis.locator_params(axis="x", nbins=5)  # more would overlap in a panel
  elif figure.mark == "line":
    _turn(axis, _positions(panel))
  if figure.log_y:
    axis.set_yscale("log")
  if figure.reference is not None:
    axis.axhline(figure.reference, color="gray", linewidth=1, linestyle=":")
  axis.set_xlabel(_text(_series.axis_title(figure, "x")))
  axis.set_ylabel(_text(_series.axis_title(figure, "y")))
  axis.set_title(_text(panel.title), fontsize=10, loc="left")
  axis.spines[["top", "right"]].set_visible(False)
  axis.grid(axis="y", alpha=0.3)


def _plain_ticks(axis: Any) -> None:
  """Plain numbers: over one decade, powers of ten are too few or overlap."""
  from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

  low, high = axis.get_view_interval()
  if 0 < low < high < 1000 * low:
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _bars(axis: object, panel: _series.Panel) -> None:
  from matplotlib.axes import Axes

  assert isinstance(axis, Axes)
  names = list(dict.fromkeys(_positions(panel)))
  width = 0.8 / len(panel.series)
  for i, one in enumerate(panel.series):
    places = np.array([names.index(x) for x in one.x])
    places = places + (i - (len(panel.series) - 1) / 2) * width
    ends = np.nan_to_num(np.abs(np.stack([one.y - one.low, one.high - one.y])))
    axis.bar(
      places,
      one.y,
      width * 0.92,
      yerr=ends,
      capsize=3,
      color=one.color,
      label=_text(one.name),
      error_kw={"linewidth": 1},
    )
  axis.set_xticks(range(len(names)), [_text(name, 30, 1) for name in names])
  _turn(axis, names)


def _turn(axis: Any, names: list[Any]) -> None:
  """Turns names below an axis if they would touch."""
  if len(names) * max(len(str(name)) for name in names) > 40:
    axis.tick_params("x", rotation=90, labelsize=8)
