"""Figures that a study draws itself: matplotlib as a picture, plotly as part of the page."""

import base64
import html
import io
import pathlib
from typing import Any

from jaxfair import checks
from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure, OwnFigure
from jaxfair.report import _svg


def chart(figure: Figure | OwnFigure, table: Table, *, folder: pathlib.Path | None = None) -> str:
  """Draws a figure of either kind; the HTML of it, or "" if the table has nothing for it.

  Args:
    figure: from a study.
    table: all rows of a run.
    folder: also keeps the study's own figures there, as NAME.png or NAME.html.

  Raises:
    ArgumentError: if the function returned something else than a figure.
  """
  if isinstance(figure, Figure):
    return _svg.chart(figure, table)
  drawn = figure.draw(table)
  if drawn is None:
    return ""
  if hasattr(drawn, "savefig"):
    data, suffix = _png(drawn), "png"
    text = base64.b64encode(data).decode()
    part = f'<img src="data:image/png;base64,{text}" alt="{html.escape(figure.title)}">'
  elif hasattr(drawn, "to_html"):
    # With its script, so that the page opens offline: about 5 MB.
    part = drawn.to_html(full_html=False, include_plotlyjs=True)
    data, suffix = part.encode(), "html"
  else:
    raise checks.ArgumentError(
      f"figure {figure.name!r} returned {type(drawn).__name__}; return a matplotlib or plotly "
      "figure, or None to draw nothing"
    )
  if folder is not None:
    (folder / f"{figure.name}.{suffix}").write_bytes(data)
  return part


def _png(drawn: Any) -> bytes:
  """The picture of a matplotlib figure, which is closed if pyplot holds it."""
  out = io.BytesIO()
  drawn.savefig(out, format="png", dpi=150, metadata={"Software": None})
  if getattr(drawn, "number", None) is not None:  # made by pyplot, which keeps figures open
    import matplotlib.pyplot as plt

    plt.close(drawn)
  return out.getvalue()
