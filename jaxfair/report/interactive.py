"""Figures for the page: the same series, with hover, zoom and a legend."""

import math
from typing import Any

import numpy as np

from jaxfair.report import series
from jaxfair.studies import Figure, Table


def draw(figure: Figure, table: Table) -> Any:
  """A plotly figure, or None if the table has nothing for it."""
  from plotly import graph_objects
  from plotly.subplots import make_subplots

  found = series.panels(figure, table)
  if not found:
    return None
  across = min(len(found), 3)
  down = math.ceil(len(found) / across)
  canvas = make_subplots(
    rows=down, cols=across, subplot_titles=[panel.title for panel in found]
  )
  for i, panel in enumerate(found):
    place = {"row": i // across + 1, "col": i % across + 1}
    for one in panel.series:
      for trace in _traces(graph_objects, figure, one, first=i == 0):
        canvas.add_trace(trace, **place)
    canvas.update_xaxes(title_text=series.axis_title(figure, "x"), **place)
    canvas.update_yaxes(title_text=series.axis_title(figure, "y"), **place)
  if figure.log_x:
    canvas.update_xaxes(type="log")
  if figure.log_y:
    canvas.update_yaxes(type="log")
  if figure.reference is not None:
    canvas.add_hline(figure.reference, line_dash="dot", line_color="grey")
  canvas.update_layout(
    template="plotly_white",
    height=360 * down + 40,
    margin={"l": 60, "r": 20, "t": 40, "b": 50},
    font={"family": "system-ui, sans-serif", "size": 13},
    legend={"title": {"text": series.words(figure.colour or "")}},
    barmode="group",
  )
  return canvas


def _traces(kinds: Any, figure: Figure, one: series.Series, first: bool) -> Any:
  common = {
    "x": one.x, "y": one.y.tolist(), "name": one.name, "legendgroup": one.name,
    "showlegend": first and figure.colour is not None,
  }  # fmt: skip
  symbol = series.SYMBOLS[one.order % len(series.SYMBOLS)]
  if figure.mark == "bar":
    up, down = np.nan_to_num(one.high - one.y), np.nan_to_num(one.y - one.low)
    return [
      kinds.Bar(
        **common, marker_color=one.colour,
        error_y={"array": up.tolist(), "arrayminus": down.tolist()},
        hovertemplate="%{x}: %{y:.4g}<extra>%{fullData.name}</extra>",
      )
    ]  # fmt: skip
  marker = {"color": one.colour, "symbol": symbol, "size": 7}
  if figure.mark == "point":
    return [
      kinds.Scatter(**common, mode="markers", marker=marker, opacity=0.75)
    ]
  line = kinds.Scatter(**common, mode="lines+markers", marker=marker)
  if np.isnan(one.low).all():
    return [line]
  band = kinds.Scatter(
    x=one.x + one.x[::-1],
    y=np.concatenate([one.high, one.low[::-1]]).tolist(),
    fill="toself", fillcolor=one.colour, opacity=0.2, line={"width": 0},
    hoverinfo="skip", showlegend=False, legendgroup=one.name,
  )  # fmt: skip
  return [band, line]
