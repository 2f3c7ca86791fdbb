"""What a figure shows: means with Student's intervals, panel by panel."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.report import _series

VALUES = {
  ("m", "a"): [0.1, 0.2, 0.4],
  ("m", "b"): [0.5, 0.5, 0.8],
  ("l", "a"): [0.3, 0.1, 0.2],
  ("l", "b"): [0.9, 0.7, 0.7],
}


def table(values=VALUES):
  rows = [
    (model, group, seed, value)
    for (model, group), some in values.items()
    for seed, value in enumerate(some)
  ]
  columns = zip(*rows, strict=True)
  names = ("model", "group", "seed", "value")
  return Table(dict(zip(names, columns, strict=True)))


BARS = Figure("f", "F", x="group", y="value", color="model")


def test_bars_are_means_with_student_s_interval():
  [panel] = _series.panels(BARS, table())
  assert [one.name for one in panel.series] == ["m", "l"]
  for one in panel.series:
    assert one.x == ["a", "b"]
    for i, group in enumerate(one.x):
      values = VALUES[one.name, group]
      low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
      np.testing.assert_allclose([one.y[i], one.low[i], one.high[i]], [np.mean(values), low, high])


def test_a_facet_is_a_panel_and_keeps_its_colors():
  figure = Figure("f", "F", x="seed", y="value", color="group", facet="model")
  lacking = {k: v for k, v in VALUES.items() if k != ("m", "a")}
  first, second = _series.panels(figure, table(lacking))
  assert (first.title, second.title) == ("m", "l")
  assert [one.name for one in first.series] == ["b"]
  colors = {one.name: one.color for one in second.series}
  assert first.series[0].color == colors["b"]
  assert colors["a"] != colors["b"]


def test_lines_are_ordered_by_x_and_points_are_not_averaged():
  rows = Table({"x": [3, 1, 2, 1], "y": [30, 10, 20, 14]})
  line = Figure("f", "F", x="x", y="y", mark="line")
  [panel] = _series.panels(line, rows)
  assert panel.series[0].x == [1, 2, 3]
  np.testing.assert_array_equal(panel.series[0].y, [12, 20, 30])
  assert np.isnan(panel.series[0].low[1])  # one repetition has no interval
  points = Figure("f", "F", x="x", y="y", mark="point")
  [panel] = _series.panels(points, rows)
  assert panel.series[0].x == [3, 1, 2, 1]
  assert panel.series[0].y.tolist() == [30, 10, 20, 14]


def test_only_wanted_and_known_rows_are_shown():
  figure = Figure("f", "F", x="group", y="value", where={"model": "m"})
  values = VALUES | {("m", "a"): [math.nan, 0.2, math.inf]}
  [panel] = _series.panels(figure, table(values))
  assert panel.series[0].y[0] == 0.2
  assert len(panel.series) == 1


@pytest.mark.parametrize(
  "figure",
  [
    Figure("f", "F", x="none", y="value"),
    Figure("f", "F", x="group", y="none"),
    Figure("f", "F", x="group", y="value", color="none"),
    Figure("f", "F", x="group", y="value", facet="none"),
    Figure("f", "F", x="group", y="value", where={"none": 1}),
    Figure("f", "F", x="group", y="value", where={"model": "x"}),
    Figure("f", "F", x="group", y="model"),  # text has no height
  ],
)
def test_what_the_table_lacks_is_not_drawn(figure):
  assert _series.panels(figure, table()) == []


def test_points_without_a_place_are_left_out():
  rows = Table({"x": [1, math.nan, 3], "y": [1, 2, math.nan]})
  [panel] = _series.panels(Figure("f", "F", x="x", y="y", mark="point"), rows)
  assert panel.series[0].x == [1]


def test_a_missing_color_is_a_series_of_its_own():
  rows = Table({"epsilon": [1, math.nan], "g": ["a", "a"], "v": [1, 2]})
  [panel] = _series.panels(Figure("f", "F", x="g", y="v", color="epsilon"), rows)
  assert [(s.name, s.y.tolist()) for s in panel.series] == [("1", [1]), ("none", [2])]


def test_more_series_than_colors_start_over():
  rows = Table({"c": range(10), "x": ["a"] * 10, "v": range(10)})
  [panel] = _series.panels(Figure("f", "F", x="x", y="v", color="c"), rows)
  assert panel.series[8].color == _series.PALETTE[0]


def test_axes_are_named_in_words():
  assert _series.axis_title(Figure("f", "F", "group", "a_b_c"), "y") == "a b c"
  figure = Figure("f", "F", "x", "y", x_title="Privacy loss")
  assert _series.axis_title(figure, "x") == "Privacy loss"
  assert _series.label(2.0) == "2"
  assert _series.label(0.1) == "0.1"


def test_figures_of_one_page_agree_on_colors():
  rows = Table({"g": ["a"] * 3, "m": ["x", "y", "z"], "v": [1.0, 2.0, 3.0]})
  rows = rows.plus(cost=np.array([np.nan, 2.0, 3.0]))
  told = []
  for value in ("v", "cost"):
    figure = Figure("f", "F", x="g", y=value, color="m")
    [panel] = _series.panels(figure, rows)
    told.append({one.name: one.color for one in panel.series})
  assert list(told[1]) == ["y", "z"]
  assert told[1].items() <= told[0].items()


def test_a_panel_of_a_number_says_of_what():
  rows = Table({"g": ["a", "a"], "noise_scale": [0.5, 2.0], "v": [1.0, 2.0]})
  found = _series.panels(Figure("f", "F", x="g", y="v", facet="noise_scale"), rows)
  assert [panel.title for panel in found] == ["noise scale 0.5", "noise scale 2"]


def test_lines_over_one_x_become_points_side_by_side():
  lines = Figure("f", "F", x="epsilon", y="value", mark="line", color="model", log_x=True)
  both = Table.concat([table().plus(epsilon=[e] * 12) for e in (1.0, 2.0)])
  assert _series.settled(lines, both) == lines
  one = both.where(epsilon=1.0)
  settled = _series.settled(lines, one)
  assert _series.axis_title(settled, "x") == "model (epsilon 1)"
  assert not settled.log_x
  [panel] = _series.panels(settled, one)
  assert [(some.name, some.x) for some in panel.series] == [("m", ["m"]), ("l", ["l"])]
  assert _series.settled(BARS, one) == BARS


def test_four_panels_make_a_square():
  assert [_series.columns(n) for n in (1, 2, 3, 4, 5, 7)] == [1, 2, 3, 2, 3, 3]


LINES = Figure("f", "F", x="seed", y="value", color="model", mark="line")


def wide(spread):
  """Two lines, at 0 to 0.3 and 0.1 to 0.4, with repeats so far apart."""
  found = [
    (model, x, sign, 0.1 * x + shift + sign * spread)
    for model, shift in (("m", 0.0), ("l", 0.1))
    for x in range(4)
    for sign in (-1, 1)
  ]
  names = ("model", "seed", "repeat", "value")
  return Table(dict(zip(names, zip(*found, strict=True), strict=True)))


def test_the_axis_follows_the_means_where_intervals_would_swamp_them():
  found = _series.panels(LINES, wide(0.3))
  assert found[0].series[0].high.max() > 3
  np.testing.assert_allclose(_series.view(LINES, found), (-0.6, 1.0))
  kept = dataclasses.replace(LINES, reference=2.0)
  low, high = _series.view(kept, found)
  assert low < 0 < 2 < high


def test_the_axis_is_left_alone_where_intervals_can_be_seen():
  assert _series.view(LINES, _series.panels(LINES, wide(0.01))) is None
  for figure in (BARS, dataclasses.replace(LINES, log_y=True)):
    assert _series.view(figure, _series.panels(figure, table())) is None
  flat = Table({"seed": [1, 1, 2, 2], "value": [0.0, 0.0, 0.0, 0.0]})
  figure = dataclasses.replace(LINES, color=None)
  assert _series.view(figure, _series.panels(figure, flat)) is None


def test_the_axis_stops_where_the_intervals_end():
  found = _series.panels(LINES, wide(0.05))  # up only as far as they go
  one_sided = [
    panel._replace(series=[one._replace(low=one.y) for one in panel.series]) for panel in found
  ]
  low, high = _series.view(LINES, one_sided)
  assert low == 0.0
  assert high < 1.0 + 1e-9
