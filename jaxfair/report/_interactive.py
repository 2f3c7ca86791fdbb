"""Figures for the page: the same series, with hover, zoom and a legend."""

import html
import math
from typing import Any

import numpy as np

from jaxfair.experiments import Figure, Table
from jaxfair.report import _series

PANEL = 300  # pixels a panel needs to be read; a phone scrolls sideways
# Named one by one: the default set has a button that uploads the data.
BUTTONS = ("toImage", "zoom2d", "pan2d", "resetScale2d")


def chart(figure: Figure, table: Table) -> str:
  """The figure as HTML; empty if the table has nothing for it."""
  canvas = draw(figure, table)
  if canvas is None:
    return ""
  config = {"responsive": True, "displaylogo": False, "modeBarButtons": [list(BUTTONS)]}
  drawn = canvas.to_html(
    full_html=False, include_plotlyjs=False, config=config, div_id=f"figure-{figure.name}"
  )
  width = PANEL * _series.columns(len(_series.panels(figure, table)))
  return f"<div class='wide'><div style='min-width:{width}px'>{drawn}</div></div>"


def draw(figure: Figure, table: Table) -> Any:
  """A plotly figure, or None if the table has nothing for it."""
  from plotly import graph_objects
  from plotly.subplots import make_subplots

  figure = _series.settled(figure, table)
  found = _series.panels(figure, table)
  if not found:
    return None
  across = _series.columns(len(found))
  down = math.ceil(len(found) / across)
  canvas = make_subplots(
    rows=down,
    cols=across,
    shared_xaxes="all",
    shared_yaxes="all",
    subplot_titles=[_text(panel.title) for panel in found],
  )
  named: set[str] = set()
  for i, panel in enumerate(found):
    row, column = i // across + 1, i % across + 1
    for one in panel.series:
      for trace in _traces(graph_objects, figure, one, one.name not in named):
        canvas.add_trace(trace, row=row, col=column)
      named.add(one.name)
    x_title, y_title = (_series.axis_title(figure, which) for which in "xy")
    canvas.update_xaxes(title_text=_text(x_title), row=row, col=column)
    if column == 1:
      canvas.update_yaxes(title_text=_text(y_title), row=row, col=column)
  canvas.update_xaxes(showticklabels=True)
  if figure.mark == "bar":
    canvas.update_xaxes(type="category")
  elif figure.log_x:
    canvas.update_xaxes(type="log")
  if figure.log_y:
    canvas.update_yaxes(type="log")
  ends = _series.view(figure, found)
  if ends is not None:
    canvas.update_yaxes(range=list(ends))
  if figure.reference is not None:
    canvas.add_hline(figure.reference, line_dash="dot", line_color="grey")
  canvas.update_layout(
    template="plotly_white",
    height=360 * down + 60,
    margin={"l": 60, "r": 20, "t": 60 if figure.facet else 40, "b": 90},
    font={"family": "system-ui, sans-serif", "size": 13, "color": _series.INK},
    legend={
      "title": {"text": _text(_series.words(figure.color or ""))},
      "orientation": "h",
      "yref": "container",
      "y": 0,
      "yanchor": "bottom",
      "x": 0,
      "xanchor": "left",
    },
    barmode="group",
  )
  return canvas


def _text(text: str) -> str:
  """Plotly reads markup in every text; a name is to be shown as it is."""
  return html.escape(text, quote=False)


def _traces(kinds: Any, figure: Figure, one: _series.Series, in_legend: bool) -> Any:
  name = _text(one.name)
  x = [_text(p) if isinstance(p, str) else p for p in one.x]
  common = {
    "x": x,
    "y": one.y.tolist(),
    "name": name,
    "legendgroup": name,
    "showlegend": in_legend and figure.color is not None,
  }
  symbol = _series.SYMBOLS[one.order % len(_series.SYMBOLS)]
  if figure.mark == "bar":
    return [
      kinds.Bar(
        **common,
        marker_color=one.color,
        error_y=_ends(one),
        hovertemplate="%{x}: %{y:.4g}<extra>%{fullData.name}</extra>",
      )
    ]
  marker = {"color": one.color, "symbol": symbol, "size": 7}
  if figure.mark == "point":
    return [kinds.Scatter(**common, mode="markers", marker=marker, opacity=0.75)]
  line = kinds.Scatter(**common, mode="lines+markers", marker=marker)
  known = np.flatnonzero(np.isfinite(one.low))
  if not len(known):
    return [line]
  if len(x) == 1:  # a band would have no width
    line.error_y = _ends(one)
    return [line]
  band = kinds.Scatter(
    x=[x[i] for i in (*known, *known[::-1])],
    y=np.concatenate([one.high[known], one.low[known][::-1]]).tolist(),
    fill="toself",
    fillcolor=one.color,
    opacity=0.2,
    line={"width": 0},
    mode="lines",
    hoverinfo="skip",
    showlegend=False,
    legendgroup=name,
  )
  return [band, line]


def _ends(one: _series.Series) -> dict[str, list[float]]:
  """How far intervals reach above and below."""
  up, down = np.nan_to_num(one.high - one.y), np.nan_to_num(one.y - one.low)
  return {"array": up.tolist(), "arrayminus": down.tolist()}
