"""The page's figures: what is drawn, how names are shown, no cloud."""

import json
import re

import numpy as np

from jaxfair.experiments import Figure, Table
from jaxfair.report import _interactive

ROWS = Table(
  {
    "seed": [0, 1] * 4,
    "group": ["a", "a", "<b>&", "<b>&"] * 2,
    "panel": ["p"] * 4 + ["q"] * 4,
    "x": [1.0, 1.0, 10.0, 10.0] * 2,
    "value": [1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 7.5],
  }
)


def test_bars_show_means_and_their_intervals():
  figure = Figure("f", "F", x="group", y="value", where={"panel": "p"})
  [bar] = _interactive.draw(figure, ROWS).data
  assert bar.type == "bar"
  assert list(bar.y) == [1.5, 4.0]
  np.testing.assert_allclose(bar.error_y.array, bar.error_y.arrayminus)
  assert min(bar.error_y.array) > 0


def test_names_are_shown_as_they_are():
  figure = Figure("f", "F", x="group", y="value", color="group", facet="panel")
  canvas = _interactive.draw(figure, ROWS)
  names = {trace.name for trace in canvas.data}
  assert names == {"a", "&lt;b&gt;&amp;"}
  assert {x for trace in canvas.data for x in trace.x} == names


def test_each_series_is_in_the_legend_once_even_if_the_first_panel_lacks_it():
  part = Table.concat([ROWS.where(panel="p", group="a"), ROWS.where(panel="q")])
  figure = Figure("f", "F", x="x", y="value", color="group", facet="panel", mark="point")
  canvas = _interactive.draw(figure, part)
  shown = [trace.name for trace in canvas.data if trace.showlegend]
  assert sorted(shown) == ["&lt;b&gt;&amp;", "a"]


def test_a_line_has_a_band_where_there_are_repetitions():
  figure = Figure(
    "f", "F", x="x", y="value", mark="line", where={"panel": "p"}, log_x=True, reference=2.0
  )
  canvas = _interactive.draw(figure, ROWS)
  band, line = canvas.data
  assert band.fill == "toself"
  assert list(band.x) == [1, 10, 10, 1]
  assert list(line.x) == [1, 10]
  assert canvas.layout.xaxis.type == "log"
  assert len(canvas.layout.shapes) == 1
  # x = 1 has two repetitions, x = 10 only one: no band there.
  single = Table({n: ROWS.where(panel="p")[n][:3] for n in ROWS.names})
  band, line = _interactive.draw(figure, single).data
  assert list(band.x) == [1, 1]
  alone = Table({n: ROWS[n][1:3] for n in ROWS.names})
  [line] = _interactive.draw(figure, alone).data
  assert line.mode == "lines+markers"


def test_a_single_point_has_its_interval():
  single = Figure("f", "F", x="seed", y="value", mark="line", color="group")
  rows = Table({"group": ["a", "a", "b", "b"], "seed": [1.0] * 4, "value": [1.0, 2, 3, 5]})
  traces = _interactive.draw(single, rows).data
  assert [list(trace.x) for trace in traces] == [["a"], ["b"]]
  assert all(trace.error_y.array[0] > 0 for trace in traces)


def test_panels_share_their_axes():
  figure = Figure("f", "F", x="x", y="value", facet="panel", mark="point")
  layout = _interactive.draw(figure, ROWS).layout
  assert layout.xaxis2.matches == "x"
  assert layout.yaxis2.matches == "y"
  assert {note.text for note in layout.annotations} == {"p", "q"}


def test_no_button_sends_data_anywhere():
  figure = Figure("own", "F", x="group", y="value")
  html = _interactive.chart(figure, ROWS)
  config = json.loads(re.findall(r"\{[^{}]*\"modeBarButtons\"[^{}]*\}", html)[0])
  assert config["modeBarButtons"] == [list(_interactive.BUTTONS)]
  assert not any("cloud" in name.lower() for name in _interactive.BUTTONS)
  assert 'id="figure-own"' in html


def test_nothing_is_drawn_for_nothing():
  figure = Figure("f", "F", x="none", y="value")
  assert _interactive.draw(figure, ROWS) is None
  assert _interactive.chart(figure, ROWS) == ""
