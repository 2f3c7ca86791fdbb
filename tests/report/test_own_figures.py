"""Figures that a study draws itself."""

import base64
import dataclasses
import re
import types

import pytest
from matplotlib.figure import Figure as Canvas

from helpers.toy_study import Toy
from jaxfair import checks, experiments, report
from jaxfair.experiments import _reading, _runs
from jaxfair.experiments._figures import OwnFigure


def histogram(table):
  """How the <values> spread.

  Each bar counts
  draws.
  """
  canvas = Canvas(figsize=(2, 1))
  canvas.subplots().hist(table["value"])
  return canvas


def interactive(table):
  """Values, to hover over."""
  return types.SimpleNamespace(to_html=lambda **how: f"<div>{sorted(how)} {len(table)}</div>")


def nothing(table):
  """Nothing to see."""


def page_of(folder, *figures):
  toy = Toy()
  study = dataclasses.replace(toy.study, figures=(*toy.study.figures, *figures))
  made = _runs.plan(study, {})
  experiments.execute(made, folder, say=lambda message: None)
  return report.write(_reading.read_run(folder, study=study)).read_text("utf-8")


def test_functions_of_the_table_are_drawn_into_the_page(tmp_path):
  page = page_of(tmp_path, histogram, interactive, nothing)
  inside = re.search(r'<img src="data:image/png;base64,([^"]+)" alt="How the &lt;values', page)
  png = base64.b64decode(inside.group(1))
  assert png.startswith(b"\x89PNG")
  assert png == (tmp_path / "figures" / "histogram.png").read_bytes()
  assert "<h2>How the &lt;values&gt; spread</h2>" in page
  assert "Each bar counts draws." in page
  assert "<div>['full_html', 'include_plotlyjs'] 24</div>" in page
  assert (tmp_path / "figures" / "interactive.html").exists()
  assert "Nothing to see" not in page
  assert (tmp_path / "figures" / "values.png").exists()  # those by columns are drawn as before


def test_figures_of_pyplot_are_closed(tmp_path):
  import matplotlib

  matplotlib.use("agg")
  import matplotlib.pyplot as plt

  def drawn(table):
    """Values."""
    canvas, axis = plt.subplots()
    axis.plot(table["value"])
    return canvas

  page_of(tmp_path, drawn)
  assert plt.get_fignums() == []


def test_what_is_no_figure_is_told(tmp_path):
  with pytest.raises(
    checks.ArgumentError, match="figure 'wrong' returned int; return a matplotlib"
  ):
    page_of(tmp_path, OwnFigure("wrong", "Wrong", lambda table: 3))
  assert (tmp_path / "results.csv").exists()
