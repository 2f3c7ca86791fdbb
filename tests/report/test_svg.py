"""The page's figures: what is drawn where, how names are shown, how large they get."""

import html
import re
import xml.etree.ElementTree as xml  # noqa: N813

import numpy as np
import pytest

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.report import _svg

ROWS = Table(
  {
    "seed": [0, 1] * 4,
    "group": ["a", "a", "<b>&", "<b>&"] * 2,
    "panel": ["p"] * 4 + ["q"] * 4,
    "x": [1.0, 1.0, 10.0, 10.0] * 2,
    "value": [1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 7.5],
  }
)


def drawn(figure, table=ROWS):
  """The figure as a tree; it is well formed, or this raises."""
  return xml.fromstring(_svg.chart(figure, table))


def tips(tree):
  return [mark.get("data-tip") for mark in tree.iter() if mark.get("data-tip")]


def test_bars_show_means_and_their_intervals():
  tree = drawn(Figure("f", "F", x="group", y="value", where={"panel": "p"}))
  assert [tip.split(" [")[0] for tip in tips(tree)] == ["a: 1.500", "<b>&: 4.000"]
  # Student's interval of two seeds: mean +- 12.706 |a - b| / 2.
  low, high = map(float, re.findall(r"\[(.*), (.*)\]", tips(tree)[0])[0])
  assert (low, high) == pytest.approx((1.5 - 6.353, 1.5 + 6.353), rel=1e-3)
  bars = [float(bar.get("width")) for bar in tree.iter("rect")]
  assert bars[1] / bars[0] == pytest.approx(4 / 1.5, rel=0.01)
  assert [text.text for text in tree.iter("text") if text.get("class") == "value"] == [
    "1.500",
    "4.000",
  ]


def test_names_are_shown_as_they_are():
  text = _svg.chart(Figure("f", "F", x="group", y="value", color="group", facet="panel"), ROWS)
  assert "<b>" not in text
  assert html.escape("<b>&") in text
  assert "<button" not in text  # names that stand beside their rows need no legend


def test_each_series_is_in_the_legend_once_even_if_the_first_panel_lacks_it():
  part = Table.concat([ROWS.where(panel="p", group="a"), ROWS.where(panel="q")])
  figure = Figure("f", "F", x="x", y="value", color="group", facet="panel", mark="point")
  tree = drawn(figure, part)
  assert len([*tree.iter("button")]) == 2
  assert [caption.text for caption in tree.iter("figcaption")] == ["p", "q"]


def test_a_line_has_a_band_where_there_are_repetitions():
  figure = Figure(
    "f", "F", x="x", y="value", mark="line", where={"panel": "p"}, log_x=True, reference=2.0
  )
  tree = drawn(figure)
  (band,) = tree.iter("polygon")
  assert len(band.get("points").split()) == 4
  assert [path.get("class") for path in tree.iter("path")].count("reference") == 1
  (line,) = tree.iter("polyline")
  (x0, y0), (x1, y1) = (map(float, place.split(",")) for place in line.get("points").split())
  assert x0 < x1
  assert y0 > y1  # up is more
  # x = 1 has two repetitions, x = 10 only one: no band, but an interval.
  single = Table({n: ROWS.where(panel="p")[n][:3] for n in ROWS.names})
  tree = drawn(figure, single)
  assert [*tree.iter("polygon")] == []
  assert [path.get("class") for path in tree.iter("path")].count("whisker") == 1


def test_a_line_over_one_value_becomes_rows_with_intervals():
  single = Figure("f", "F", x="seed", y="value", mark="line", color="group")
  rows = Table({"group": ["a", "a", "b", "b"], "seed": [1.0] * 4, "value": [1.0, 2, 3, 5]})
  tree = drawn(single, rows)
  assert [text.text for text in tree.iter("text") if text.get("class") == "name"] == ["a", "b"]
  assert len([path for path in tree.iter("path") if path.get("class") == "whisker"]) == 2


def test_an_interval_that_goes_beyond_the_axis_ends_in_an_arrow():
  # Student's interval of two seeds is far wider than the bars.
  rows = {"group": ["a", "a", "b", "b"], "value": [0.1, 0.3, 0.1, 0.1], "seed": [0, 1, 0, 1]}
  figure = Figure("f", "F", mark="bar", x="group", y="value")
  tree = drawn(figure, Table(rows))
  classes = [path.get("class") for path in tree.iter("path")]
  assert classes.count("whisker head") == 2  # both ends of a; b has no width
  assert [p.text for p in tree.iter("p")] == ["An arrow: the interval goes on beyond the axis."]


def test_panels_share_their_axes():
  figure = Figure("f", "F", x="x", y="value", facet="panel", mark="point")
  ticks = [[text.text for text in svg.iter("text")] for svg in drawn(figure).iter("svg")]
  assert ticks[0] == ticks[1]


def test_many_points_are_counted_on_a_grid():
  rng = np.random.default_rng(0)
  many = Table({"x": rng.normal(size=50_000), "value": rng.normal(size=50_000)})
  figure = Figure("f", "F", x="x", y="value", mark="point")
  text = _svg.chart(figure, many)
  assert len(text) < 200_000
  counts = [
    int(re.search(r"(\d+) points here", tip).group(1)) for tip in tips(xml.fromstring(text))
  ]
  assert sum(counts) == 50_000


@pytest.mark.parametrize(
  ("low", "high", "log"),
  [(0.0, 1.0, False), (-3.0, 7.5, False), (0.02, 900.0, True), (0.5, 0.5, True)],
)
def test_ticks_are_few_round_numbers_within_the_axis(low, high, log):
  scale = _svg._Scale(low, high, log=log)
  ticks = scale.ticks(0.0, 100.0, most=6)
  assert 2 <= len(ticks) <= 8
  for place, told in ticks:
    assert 0 <= place <= 100
    assert len(told) <= 5
    assert scale.low - 1e-9 <= float(told) <= scale.high + 1e-9


def test_nothing_is_drawn_for_nothing():
  assert _svg.chart(Figure("f", "F", x="none", y="value"), ROWS) == ""
