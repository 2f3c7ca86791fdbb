"""PNG files: drawn, legible names, nothing where there is nothing."""

import itertools

import matplotlib.image
import numpy as np
import pytest

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Figure
from jaxfair.report import _static

MARKS = ("bar", "line", "point")


def rows(names=("a", "b"), panels=("p",)):
  grid = list(itertools.product(panels, names, (1.0, 10.0), range(3)))
  names_of_columns = ("panel", "c", "x", "seed")
  columns = dict(zip(names_of_columns, zip(*grid, strict=True), strict=True))
  value = [x + 0.1 * seed + names.index(c) for _, c, x, seed in grid]
  return Table(columns | {"v": value})


def drawn(path, figure, table):
  """The picture's pixels, and how many are in color."""
  assert _static.save(figure, table, path)
  assert path.read_bytes().startswith(b"\x89PNG")
  pixels = matplotlib.image.imread(path)[..., :3]
  return pixels, int((np.ptp(pixels, axis=-1) > 0.3).sum())


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("log", [False, True])
def test_every_mark_is_drawn_in_color(tmp_path, mark, log):
  figure = Figure(
    "f", "Title", x="x", y="v", color="c", mark=mark, log_x=log, log_y=log, reference=1.5
  )
  _, colors = drawn(tmp_path / "f.png", figure, rows())
  assert colors > 200


@pytest.mark.slow
def test_panels_stand_side_by_side_and_then_below(tmp_path):
  figure = Figure("f", "F", x="x", y="v", facet="panel", mark="point")
  one, _ = drawn(tmp_path / "1.png", figure, rows())
  four, _ = drawn(tmp_path / "4.png", figure, rows(panels=tuple("pqrs")))
  five, _ = drawn(tmp_path / "5.png", figure, rows(panels=tuple("pqrst")))
  assert four.shape[1] == 2 * one.shape[1]
  assert five.shape[1] == 3 * one.shape[1]
  assert four.shape[0] == five.shape[0] > 1.8 * one.shape[0]


@pytest.mark.slow
def test_names_are_text_not_formulas(tmp_path):
  names = ("$5 to $10", r"$\frac{$", "_hidden", "50%")
  figure = Figure("f", "Pay in $ and $", x="c", y="v", color="c", facet="c", x_title="$x$$")
  drawn(tmp_path / "f.png", figure, rows(names))


def test_nothing_is_written_for_nothing(tmp_path):
  figure = Figure("f", "F", x="none", y="v")
  assert _static.save(figure, rows(), tmp_path / "f.png") is False
  assert list(tmp_path.iterdir()) == []
