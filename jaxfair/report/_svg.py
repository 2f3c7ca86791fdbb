"""Figures for the page: SVG that scales to a phone, follows dark mode and needs no library.

Each panel is one SVG; the page's style sheet places panels side by side where there is room and
colors series by class. Marks carry their numbers in `data-tip`, which the page's script shows.
"""

import html
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.experiments._words import number
from jaxfair.report import _series

WIDTH, HEIGHT = 380, 250  # of a panel; text of 12 units is readable at 360 pixels
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 24, 38
BAR, BETWEEN, LABEL = 13, 12, 16  # heights in a chart of rows
MOST_POINTS = 400  # of a series; more are drawn as counts on a grid
GRID = (48, 32)
HEAD = "whisker head"  # class of an arrow
NUMBER = 44  # room for a number at the end of a row


def chart(figure: Figure, table: Table) -> str:
  """The figure as HTML; empty if the table has nothing for it."""
  figure = _series.settled(figure, table)
  found = _series.panels(figure, table)
  if not found:
    return ""
  named = [one.x for panel in found for one in panel.series]
  draw = _rows if any(isinstance(x, str) for own in named for x in own) else _plane
  drawn = "".join(
    f"<figure>{panel.title and f'<figcaption>{_text(panel.title)}</figcaption>'}"
    f"{draw(figure, panel, found)}</figure>"
    for panel in found
  )
  beyond = "<p class='caption'>An arrow: the interval goes on beyond the axis.</p>"
  return (
    f"<div class='chart' id='figure-{_text(figure.name)}'>{_legend(figure, found)}"
    f"<div class='panels'>{drawn}</div>{beyond if HEAD in drawn else ''}</div>"
  )


def _legend(figure: Figure, panels: Sequence[_series.Panel]) -> str:
  """Every series once, also those that some panels lack; a click hides one."""
  if figure.color in (None, figure.x):  # the names are beside the rows
    return ""
  orders = {one.name: one.order for panel in panels for one in panel.series}
  items = "".join(
    f"<button type='button' data-series='{order}' aria-pressed='true'>"
    f"<svg class='s{order % 8}' viewBox='0 0 12 12' aria-hidden='true'>{_mark(6, 6, order)}</svg>"
    f"{_text(name)}</button>"
    for name, order in orders.items()
  )
  return f"<p class='legend'><span>{_text(_series.words(figure.color or ''))}</span>{items}</p>"


def _rows(figure: Figure, panel: _series.Panel, panels: Sequence[_series.Panel]) -> str:
  """Names below each other, so that any number of them fits on a phone."""
  scale = _Scale.of_rows(figure, panels)
  start, end = 4.0, WIDTH - NUMBER - 4.0
  names = list(dict.fromkeys(_series.label(x) for one in panel.series for x in one.x))
  parts, y = [], float(TOP)
  zero = scale.at(0.0 if scale.low <= 0 <= scale.high else scale.low, start, end)
  for name in names:
    parts.append(f"<text class='name' x='4' y='{y + 11:.0f}'>{_text(name, 52)}</text>")
    y += LABEL
    for one in panel.series:
      own = [i for i, x in enumerate(one.x) if _series.label(x) == name]
      if figure.mark == "point" and len(own) > MOST_POINTS:
        own = own[:: math.ceil(len(own) / MOST_POINTS)]
      body = [_row(figure, one, i, y, zero, scale, (start, end)) for i in own]
      parts.append(_group(one, body))
      y += BAR if own else 0
    y += BETWEEN
  height = y + BOTTOM - 10
  grid = [
    f"<path class='grid' d='M{x:.1f} {TOP - 4}V{y - 6:.0f}'/>"
    f"<text x='{x:.1f}' y='{y + 8:.0f}' text-anchor='middle'>{_text(told)}</text>"
    for x, told in scale.ticks(start, end, most=5)
  ]
  if figure.reference is not None and scale.low <= figure.reference <= scale.high:
    x = scale.at(figure.reference, start, end)
    grid.append(f"<path class='reference' d='M{x:.1f} {TOP - 4}V{y - 6:.0f}'/>")
  title = _title(_series.axis_title(figure, "y"), (start + end) / 2, height - 4, "middle")
  return _svg(figure, height, [*grid, *parts, title])


def _row(
  figure: Figure,
  one: _series.Series,
  i: int,
  y: float,
  zero: float,
  scale: "_Scale",
  ends: tuple[float, float],
) -> str:
  at, middle = scale.at(one.y[i], *ends), y + BAR / 2
  low, high = (scale.at(v, *ends) if math.isfinite(v) else at for v in (one.low[i], one.high[i]))
  if figure.mark == "bar":
    left, wide = min(zero, at), abs(at - zero)
    body = f"<rect x='{left:.1f}' y='{y + 1:.1f}' width='{wide:.1f}' height='{BAR - 2}'/>"
  else:
    body = _mark(at, middle, one.order)
  if high > low:
    body += f"<path class='whisker' d='M{low:.1f} {middle:.1f}H{high:.1f}'/>"
    body += _arrows(one.low[i], one.high[i], middle, scale, ends)
  if figure.mark != "point":
    x = max(at, high, zero) + 4
    body += f"<text class='value' x='{x:.1f}' y='{middle + 4:.1f}'>{number(one.y[i])}</text>"
  return f"<g data-tip='{_text(_told(one, i))}'>{body}</g>"


def _arrows(low: float, high: float, y: float, scale: "_Scale", ends: tuple[float, float]) -> str:
  """Heads where an interval goes on beyond the axis."""
  out = [(ends[0], 5)] if low < scale.low else []
  out += [(ends[1], -5)] if high > scale.high else []
  return "".join(
    f"<path class='{HEAD}' d='M{x + back:.1f} {y - 3:.1f}L{x:.1f} {y:.1f}l{back} 3'/>"
    for x, back in out
  )


def _plane(figure: Figure, panel: _series.Panel, panels: Sequence[_series.Panel]) -> str:
  """Numbers on both axes: lines with bands, or points."""
  across, up = _Scale.of_plane(figure, panels)
  box = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP)
  parts = [
    f"<path class='grid' d='M{LEFT} {y:.1f}H{WIDTH - RIGHT}'/>"
    f"<text x='{LEFT - 5}' y='{y + 4:.1f}' text-anchor='end'>{_text(told)}</text>"
    for y, told in up.ticks(box[2], box[3], most=6)
  ]
  parts += [
    f"<path class='grid' d='M{x:.1f} {box[2]}v4'/>"
    f"<text x='{x:.1f}' y='{box[2] + 15}' text-anchor='middle'>{_text(told)}</text>"
    for x, told in across.ticks(box[0], box[1], most=6)
  ]
  if figure.reference is not None and up.low <= figure.reference <= up.high:
    y = up.at(figure.reference, box[2], box[3])
    parts.append(f"<path class='reference' d='M{LEFT} {y:.1f}H{WIDTH - RIGHT}'/>")
  for one in panel.series:
    places = [
      (across.at(float(x), *box[:2]), up.at(y, *box[2:])) for x, y in zip(one.x, one.y, strict=True)
    ]
    draw = _points if figure.mark == "point" else _line
    parts.append(_group(one, draw(one, places, up, box)))
  parts.append(
    _title(_series.axis_title(figure, "x"), (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "middle")
  )
  parts.append(_title(_series.axis_title(figure, "y"), 2, 13, "start"))
  return _svg(figure, HEIGHT, parts)


def _line(
  one: _series.Series, places: list[tuple[float, float]], up: "_Scale", box: tuple[float, ...]
) -> Iterator[str]:
  known = [i for i in range(len(places)) if math.isfinite(one.low[i])]
  ends = {i: (up.at(one.low[i], *box[2:]), up.at(one.high[i], *box[2:])) for i in known}
  if len(known) > 1:
    there = " ".join(f"{places[i][0]:.1f},{ends[i][1]:.1f}" for i in known)
    back = " ".join(f"{places[i][0]:.1f},{ends[i][0]:.1f}" for i in reversed(known))
    yield f"<polygon class='band' points='{there} {back}'/>"
  elif known:  # a band would have no width
    ((low, high),) = ends.values()
    yield f"<path class='whisker' d='M{places[known[0]][0]:.1f} {low:.1f}V{high:.1f}'/>"
  path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
  yield f"<polyline points='{path}'/>"
  few = len(places) <= MOST_POINTS
  for i, (x, y) in enumerate(places if few else ()):
    yield f"<g data-tip='{_text(_told(one, i))}'>{_mark(x, y, one.order)}</g>"


def _points(
  one: _series.Series, places: list[tuple[float, float]], up: "_Scale", box: tuple[float, ...]
) -> Iterator[str]:
  del up
  if len(places) <= MOST_POINTS:
    for i, (x, y) in enumerate(places):
      yield f"<g data-tip='{_text(_told(one, i))}' opacity='.75'>{_mark(x, y, one.order)}</g>"
    return
  ends = ((box[0], box[1]), (box[3], box[2]))
  counts, edges = np.histogramdd(np.array(places), bins=GRID, range=ends)
  middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
  for i, j in np.argwhere(counts > 0):
    share = math.sqrt(counts[i, j] / counts.max())
    yield (
      f"<circle data-tip='{_text(one.name)}: {counts[i, j]:.0f} points here' opacity='.75' "
      f"cx='{middles[0][i]:.0f}' cy='{middles[1][j]:.0f}' r='{1 + 3 * share:.1f}'/>"
    )


class _Scale:
  """From values to places on an axis."""

  def __init__(self, low: float, high: float, *, log: bool = False, pad: float = 0.0):
    self.log = log and low > 0
    f = self._f
    if not high > low:
      low, high = (low / 2, high * 2) if self.log else (low - 0.5, high + 0.5)
    room = pad * (f(high) - f(low))
    self._start, self._size = f(low) - room, f(high) - f(low) + 2 * room
    self.low, self.high = self._inverse(self._start), self._inverse(self._start + self._size)

  @classmethod
  def of_rows(cls, figure: Figure, panels: Sequence[_series.Panel]) -> "_Scale":
    values, ends = _extent(figure, panels)
    if figure.mark == "bar" and not figure.log_y:
      values = np.r_[values, 0.0]
    low, high = _limited(values, ends)
    return cls(low, high, log=figure.log_y)

  @classmethod
  def of_plane(cls, figure: Figure, panels: Sequence[_series.Panel]) -> tuple["_Scale", "_Scale"]:
    values, ends = _extent(figure, panels)
    xs = np.array([float(x) for panel in panels for one in panel.series for x in one.x])
    low, high = _limited(values, ends)
    across = cls(float(xs.min()), float(xs.max()), log=figure.log_x, pad=0.03)
    return across, cls(low, high, log=figure.log_y, pad=0.04)

  def _f(self, value: float) -> float:
    return math.log10(value) if self.log else value

  def _inverse(self, value: float) -> float:
    return 10.0**value if self.log else value

  def at(self, value: float, start: float, end: float) -> float:
    """The place of a value, kept within the frame."""
    if self.log and value <= 0:
      return start
    share = min(max((self._f(float(value)) - self._start) / self._size, 0.0), 1.0)
    return start + share * (end - start)

  def ticks(self, start: float, end: float, *, most: int) -> list[tuple[float, str]]:
    """Places and texts of a few round numbers."""
    values = _log_ticks(self.low, self.high, most) if self.log else []
    values = values or _round_ticks(self.low, self.high, most)
    return [(self.at(v, start, end), _short(v)) for v in values]


def _extent(figure: Figure, panels: Sequence[_series.Panel]) -> tuple[np.ndarray, np.ndarray]:
  """All means (and the reference), and all ends of intervals."""
  drawn = [one for panel in panels for one in panel.series]
  means = np.concatenate([one.y for one in drawn])
  if figure.reference is not None:
    means = np.r_[means, figure.reference]
  ends = np.concatenate([np.r_[one.low, one.high] for one in drawn])
  if figure.log_y:
    means, ends = means[means > 0], ends[ends > 0]
  return means if len(means) else np.zeros(1), ends[np.isfinite(ends)]


def _limited(means: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
  """Ends of an axis: intervals of two seeds must not swamp the means."""
  low, high = float(means.min()), float(means.max())
  room = _series.WIDEST_BAND * (high - low) or math.inf
  if len(ends):
    low, high = max(low - room, min(low, ends.min())), min(high + room, max(high, ends.max()))
  return float(low), float(high)


def _round_ticks(low: float, high: float, most: int) -> list[float]:
  raw = (high - low) / most
  power = 10.0 ** math.floor(math.log10(raw))
  step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
  first = math.ceil(low / step - 1e-9)
  return [round((first + i) * step, 12) for i in range(math.floor(high / step + 1e-9) - first + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
  powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
  for steps in ((1, 2, 5), (1, 3), (1,)):
    found = [m * 10.0**p for p in powers for m in steps if low <= m * 10.0**p <= high]
    if len(found) <= most + 1:
      break
  found = found[:: math.ceil(len(found) / (most + 1))] if found else []
  return found if len(found) > 1 else []


def _mark(x: float, y: float, order: int) -> str:
  """A shape for each series, so that color is not needed to tell them apart."""
  match order % 4:
    case 0:
      return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.5'/>"
    case 1:
      return f"<rect x='{x - 3:.1f}' y='{y - 3:.1f}' width='6' height='6'/>"
    case 2:
      return f"<path d='M{x:.1f} {y - 4.5:.1f}l4.5 4.5l-4.5 4.5l-4.5 -4.5z'/>"
    case _:
      return f"<path d='M{x:.1f} {y - 4.2:.1f}l4.4 7.6h-8.8z'/>"


def _group(one: _series.Series, body: Iterable[str]) -> str:
  return f"<g class='s{one.order % 8}' data-series='{one.order}'>{''.join(body)}</g>"


def _told(one: _series.Series, i: int) -> str:
  found = f"{_series.label(one.x[i])}: {number(one.y[i])}"
  if math.isfinite(one.low[i]):
    found += f" [{number(one.low[i])}, {number(one.high[i])}]"
  return f"{one.name}, {found}" if one.name else found


def _title(text: str, x: float, y: float, anchor: str) -> str:
  return (
    f"<text class='title' x='{x:.0f}' y='{y:.0f}' text-anchor='{anchor}'>{_text(text, 62)}</text>"
  )


def _svg(figure: Figure, height: float, parts: Sequence[str]) -> str:
  label = _text(f"{figure.title}: {_series.axis_title(figure, 'y')}")
  body = "".join(parts)
  return f"<svg viewBox='0 0 {WIDTH} {height:.0f}' role='img' aria-label='{label}'>{body}</svg>"


def _short(value: float) -> str:
  """For an axis: 0.25, 500, 20k, 3M."""
  for least, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
    if abs(value) >= least:
      return f"{value / size:.4g}{unit}"
  return f"{value:.4g}"


def _text(text: str, most: int = 200) -> str:
  short = text if len(text) <= most else text[: most - 1] + "…"
  return html.escape(short, quote=True)
